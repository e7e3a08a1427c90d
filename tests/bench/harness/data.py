"""The files that cells read, made once for each folder."""

import shutil
import subprocess
import sys
from pathlib import Path

from . import rows_of_users
from .environments import Environments

_BENCH = Path(__file__).resolve().parents[1]

# Ten to 200,000 terms a column, in an order that mixes large and small.
_CARDINALITIES = [int(10 * 20000 ** (i * 7 % 26 / 25)) for i in range(26)]
_CLICKLOG = (
    "--rows", "1000000", "--shards", "4", "--min-count", "1", "--vocab-max", "50000",
    "--cardinalities", ",".join(map(str, _CARDINALITIES)),
)  # fmt: skip


def ensure(kind, folder, build):
    """The folder with one kind of data: clicks, images, jpegs, text, terms, blocks-KIB or
    parquet-CODEC, parquet-columns, or those of rows_of_users."""
    target = folder / kind
    if target.is_dir():
        return target
    print(f"bench: making {kind} in {folder}", file=sys.stderr, flush=True)
    part = folder / f"{kind}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    if kind == "parquet-columns":
        _run_pyarrow(folder, "decode_parquet", "make", part)
    elif kind in rows_of_users.MAKERS:
        rows_of_users.make(kind, part)
    elif kind.startswith("parquet-"):
        _write_parquet(kind.removeprefix("parquet-"), ensure("clicks", folder, build), part, folder)
    else:
        subprocess.run([*_command(kind, part, build / "tests" / "data")], check=True)
    part.rename(target)
    return target


def _write_parquet(codec, clicks, target, folder):
    """The click log as pyarrow writes it."""
    _run_pyarrow(folder, "write_parquet", clicks / "train.tsv", target / "train.parquet", codec)
    (target / "vocab").symlink_to(clicks / "vocab")


def _run_pyarrow(folder, module, *arguments):
    python = Environments(folder / "environments").python_for("pyarrow")
    subprocess.run([python, "-m", f"peers.{module}", *arguments], cwd=_BENCH, check=True)


def _command(kind, folder, programs):
    if kind == "none":
        return ["true"]
    if kind == "clicks":
        return [programs / "make_clicklog", "--out", folder, *_CLICKLOG]
    if kind == "jpegs":
        return [programs / "make_jpegs", folder]
    name, _, size = kind.partition("-")
    return [programs / "make_bench_data", name, folder, *([size] if size else [])]
