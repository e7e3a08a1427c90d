"""python -m tundish.port MODULE:FUNCTION: a tf.data program as a pipeline file, and the proof."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Error
from . import versions

if TYPE_CHECKING:
    from .porting import Ported

COMPLETE, INCOMPLETE, FAILED = 0, 1, 2
_OWN_FAULT = (
    "This is a fault of tundish port: the program is not to blame. Write the line in another way, or the stage by"
    " hand (tundish help stages), and please report it."
)


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    refused = versions.refusal(_installed)
    if refused is not None:
        return _fail(refused)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    from . import porting, program

    porting.patch()
    folder = os.path.relpath(os.path.dirname(options.output or "") or ".")
    with tempfile.TemporaryDirectory(prefix="tundish-port-") as compared_in:
        try:
            ported = porting.port(
                options.target,
                options.args,
                "" if folder == "." else folder,
                compared_in if options.check is not None else None,
                options.transform,
                porting.Place(options.replicas, options.map_path),
                options.python,
            )
            return _answer(options, ported, compared_in)
        except program.ProgramFailed as error:
            if error.was_raised and program.runs_without(options.target, options.args):
                return _fail(f"{error}\n{_OWN_FAULT}", INCOMPLETE)
            return _fail(str(error))
        except Error as error:
            return _fail(str(error))
        except Exception as error:  # of this package's own code: the program's are ProgramFailed
            traceback.print_exc()
            return _fail(f"{type(error).__name__}: {error}\n{_OWN_FAULT}", INCOMPLETE)


def _answer(options: argparse.Namespace, ported: Ported, compared_in: str) -> int:
    from . import report

    for note in ported.notes:
        print(f"note: {note}", file=sys.stderr)
    if ported.problems:
        lines = report.lines(ported.problems)
        count = "1 construct is" if len(lines) == 1 else f"{len(lines)} constructs are"
        print(f"{count} not carried over, so there is no pipeline file:", file=sys.stderr)
        print("\n".join(lines))
        return INCOMPLETE
    status = _deliver(options, ported)
    return status if status != COMPLETE or options.check is None else _check(ported, compared_in, options.check)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tundish port",
        description="Write the pipeline file of a tf.data program. The program is imported with TensorFlow, "
        "and its function called, which returns a dataset, or a mapping or tuple of them.",
        epilog="Exit status: 0 all is carried over, 1 not all (the list is printed), 2 the program failed.",
    )
    parser.add_argument("target", metavar="MODULE:FUNCTION", help="as input.py:make_dataset")
    parser.add_argument(
        "--args", nargs="+", default=[], metavar="VALUE", help="arguments of the function; NAME=VALUE by name"
    )
    parser.add_argument(
        "--transform",
        metavar="MODULE:FUNCTION",
        help="tf.Transform's preprocessing_fn, over the raw batches that the program's function gives",
    )
    parser.add_argument(
        "--replicas", type=_count, metavar="N", help="replicas of each node that the file says (default: the program's)"
    )
    parser.add_argument(
        "--map-path",
        action="append",
        default=[],
        type=_pair,
        metavar="OLD=NEW",
        help="in the file paths that begin with OLD begin with NEW, as /data=s3://bucket/data; may be repeated",
    )
    parser.add_argument(
        "--no-python",
        dest="python",
        action="store_false",
        help="list what has no stage, and do not leave it to TensorFlow in interpreters",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the pipeline file (default: standard output)")
    parser.add_argument(
        "--check", type=int, metavar="N", help="compare N batches of each stream with TensorFlow's, to the bit"
    )
    return parser.parse_args(arguments)


def _count(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of replicas")
    return int(word)


def _pair(word: str) -> tuple[str, str]:
    old, equals, new = word.partition("=")
    if not equals or not old or not new:
        raise argparse.ArgumentTypeError(f"{word!r} is not OLD=NEW")
    return old, new


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fail(text: str, status: int = FAILED) -> int:
    print(f"tundish port: {text}", file=sys.stderr)
    return status


def _deliver(options: argparse.Namespace, ported: Ported) -> int:
    if options.output is None and ported.files:
        return _fail(f"{', '.join(ported.files)} must lie beside the pipeline file: name it with -o FILE")
    try:
        if options.output is None:
            print(ported.text, end="", flush=True)
        else:
            _write(Path(options.output), ported.text, ported.files)
    except OSError as error:
        return _fail(f"cannot write {error.filename or options.output or 'the pipeline file'}: {error.strerror}")
    if options.output is not None and os.path.dirname(os.path.abspath(options.output)) != os.getcwd():
        print(f"note: relative paths begin at {os.getcwd()}: give --root {os.getcwd()}", file=sys.stderr)
    return COMPLETE


def _write(path: Path, text: str, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (path.parent / name).write_bytes(content)
    path.write_text(text, encoding="utf-8")


def _check(ported: Ported, folder: str, count: int) -> int:
    from .check import check, questions

    status = COMPLETE
    file = Path(folder, "pipeline.yaml")
    _write(file, ported.compared, ported.files)
    if ported.transform is not None:
        ported.transform.analyze(file)
    for question in questions(ported, file, os.getcwd()):
        if sys.stderr.isatty():  # a stream with Python in it takes as long as TensorFlow takes to start
            print(f"{question.stream}: comparing with TensorFlow", file=sys.stderr)
        checked = check(question, count)
        for line in checked.lines:
            print(f"{question.stream}: {line}", file=sys.stderr)
        if checked.failed:
            status = INCOMPLETE
    return status


if __name__ == "__main__":
    sys.exit(main())
