"""Measure cells of the benchmark: Tundish, what the machine allows and, if asked, its peers."""

import argparse
import subprocess
import sys
from functools import partial
from pathlib import Path

from . import admin, admin_large, cells, columns, compression, cores, data, decoding, fetch, gpu, groups
from . import growth, helpers, learning, nodes, python, python_rows, remote, report, resume, stages
from .environments import Environments
from .measure import Failure
from .subjects import Peer, Tundish, measure_limit


def _measure_recovery(options):
    """How soon others and a successor know of a killed trainer: a program that prints its line."""
    programs = options.build
    subprocess.run([programs / "tests/bench/recovery", programs / "server/tundish"], check=True)


# Cells that are not data served to one trainer, with no loop beside them.
_OWN = {
    "resume": resume.measure,
    "groups": groups.measure,
    "growth": growth.measure,
    "nodes": nodes.measure,
    "helpers": helpers.measure,
    "recovery": _measure_recovery,
    "admin": admin.measure,
    "admin-large": admin_large.measure,
    "columns": columns.measure,
    "cores": cores.measure,
    "parquet-decode": decoding.measure,
    "python": python.measure_small,
    "python-rows": python_rows.measure,
    "compression": compression.measure,
    "gpu": gpu.measure,
    "remote": remote.measure,
    "fetch-once": fetch.measure,
    **{name: partial(learning.measure, name) for name in learning.CELLS},
}


def main():
    options = _options()
    environments = Environments(options.data / "environments")
    good = True
    for cell in options.cells:
        try:
            if isinstance(cell, str):
                _OWN[cell](options)
            else:
                good &= _measure(cell, environments, options)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"bench: {getattr(cell, 'name', cell)}: {error}", file=sys.stderr)
            good = False
    return 0 if good else 1


def _measure(cell, environments, options):
    """Print a cell's lines, each as it is known. True if Tundish ran and all outputs were alike."""
    if cell.mode == "python":
        return python.measure(cell, environments, options)
    if cell.name == "order":
        stages.measure(options)
    folder = data.ensure(cell.data, options.data, options.build)
    if options.threads:
        return _measure_threads(cell, folder, options)
    own = _attempt(
        cell, "tundish", lambda: Tundish(options.build).measure(cell, folder, options.passes)
    )
    limit = _attempt(cell, "limit", lambda: measure_limit(cell, folder, options.build))
    if limit:
        report.print_line(limit, options.json)
    good, peers = "error" not in own, []
    for name in cell.peers if options.peers else ():
        peer = _attempt(
            cell, name, lambda: Peer(name, cell, environments).measure(cell, folder, options.passes)
        )
        peers.append(peer)
        wrong = report.differences(own, peer)
        if wrong:
            peer["differs"] = wrong
            good = False
        report.print_line(peer, options.json)
    report.add_ratios(own, peers, limit)
    report.print_line(own, options.json)
    return good


def _measure_threads(cell, folder, options):
    """A line for each number of the server's threads, with how many of them were busy."""
    lines = []
    for count in options.threads:
        served = Tundish(options.build, count)
        line = _attempt(cell, "tundish", lambda: served.measure(cell, folder, options.passes))
        lines.append(report.line_of_threads(line, count, lines[0] if lines else line))
        report.print_line(lines[-1], options.json)
    return not any("error" in line for line in lines)


def _attempt(cell, name, measure):
    """A subject's line, also where it did not run; None where there is nothing to measure."""
    try:
        measurement = measure()
    except (Failure, OSError) as error:
        return report.line_of_failure(cell, name, error)
    return measurement and report.line_of(cell, name, measurement)


def _options():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "cells",
        nargs="*",
        metavar="CELL",
        help="default: all of " + ", ".join([*(cell.name for cell in cells.ALL), *_OWN]),
    )
    parser.add_argument("--peers", action="store_true", help="measure the peers too")
    parser.add_argument("--data", type=Path, metavar="DIR", help="default: BUILD/bench")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument(
        "--threads",
        type=lambda text: [int(word) for word in text.split(",")],
        metavar="N,N",
        help="of the server (python-rows: interpreters): Tundish alone is measured with each number, some"
        " seconds; of an area only the cells that have passes",
    )
    parser.add_argument("--passes", type=int, default=5, metavar="N", help="timed (default: 5)")
    parser.add_argument(
        "--seconds", type=float, default=5, metavar="S",
        help="of admin's and nodes' windows (default: 5); gpu's have two fifths of it",
    )
    parser.add_argument(
        "--rate", type=float, default=500, metavar="N", help="admin's requests a second (default: 500)"
    )
    parser.add_argument("--build", type=Path, default=Path("build"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        options.cells = _choose(options.cells, bool(options.threads))
    except KeyError as error:
        parser.error(error.args[0])
    options.build = options.build.resolve()
    options.data = (options.data or options.build / "bench").resolve()
    return options


def _choose(names, threads):
    """The cells named, or all. `python` is a cell of its own and an area."""
    own = [name for name in _OWN if not names or name in names]
    others = [name for name in names if name not in _OWN or name == "python"]
    chosen = cells.choose(others) if others or not names else []
    return [cell for cell in chosen if not threads or cell.mode == "passes" or cell.name in names] + own


if __name__ == "__main__":
    sys.exit(main())
