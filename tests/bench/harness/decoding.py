"""The cell `parquet-decode`: decoding columns alone, in one thread, against pyarrow's.

In seconds of CPU, which do not depend on what else runs.
"""

import json
import subprocess
from pathlib import Path

from . import data
from .environments import Environments

_BENCH = Path(__file__).resolve().parents[1]


def measure(options):
    folder = data.ensure("parquet-columns", options.data, options.build)
    files = sorted(folder.glob("*.parquet"))
    own = _lines([options.build / "tests/bench/bench_parquet", *files])
    python = Environments(options.data / "environments").python_for("pyarrow")
    program = [python, "-m", "peers.decode_parquet", "read", *files]
    others = _lines(program) if options.peers else [{} for _ in files]
    for file, line, other in zip(files, own, others):
        show(file.stem, line["cpu_s"], other.get("cpu_s"), options.json)


def _lines(command):
    done = subprocess.run(command, cwd=_BENCH, stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def show(name, own, other, as_json):
    if as_json:
        print(json.dumps({"cell": "parquet-decode", "column": name, "cpu_s": own, "pyarrow": other}), flush=True)
        return
    text = f"parquet-decode {name:18} {own:8.3f} CPU s"
    print(text if other is None else f"{text}  pyarrow {other:8.3f}  ratio {other / own:.2f}", flush=True)
