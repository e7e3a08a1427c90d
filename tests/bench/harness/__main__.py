"""Measure cells of the benchmark: Tundish, what the machine allows and, if asked, its peers."""

import argparse
import sys
from pathlib import Path

from . import cells, data, report
from .environments import Environments
from .measure import Failure
from .subjects import Peer, Tundish, measure_limit


def main():
    options = _options()
    failed = False
    for cell in options.cells:
        folder = data.ensure(cell.data, options.data, options.build)
        limit = _attempt(cell, "limit", lambda: measure_limit(cell, folder, options.build))
        own = _attempt(
            cell, "tundish", lambda: Tundish(options.build).measure(cell, folder, options.passes)
        )
        peers = _measure_peers(cell, folder, options) if options.peers else []
        failed |= not _report(cell, own, limit, peers, options.json)
    return 1 if failed else 0


def _measure_peers(cell, folder, options):
    environments = Environments(options.data / "environments")
    lines = []
    for name in cell.peers:
        measurement = _attempt(
            cell,
            name,
            lambda: Peer(name, cell, environments).measure(cell, folder, options.passes),
        )
        if measurement:
            lines.append(report.line_of(cell, name, measurement))
    return lines


def _attempt(cell, name, measure):
    try:
        return measure()
    except (Failure, OSError) as error:
        print(f"bench: {cell.name}: {name}: {error}", file=sys.stderr)
        return None


def _report(cell, own, limit, peers, as_json):
    """Print a cell's lines. True if Tundish ran and every output was the same."""
    if own is None:
        for line in peers:
            report.print_line(line, as_json)
        return False
    limit = limit and report.line_of(cell, "limit", limit)
    line = report.line_of(cell, "tundish", own)
    same = True
    for peer in peers:
        wrong = report.differences(line, peer)
        if wrong:
            print(
                f"bench: {cell.name}: {peer['peer']} delivered something else: {', '.join(wrong)}",
                file=sys.stderr,
            )
            same = False
    report.add_ratios(line, peers, limit)
    for one in (line, *([limit] if limit else []), *peers):
        report.print_line(one, as_json)
    return same


def _options():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "cells", nargs="*", metavar="CELL", help=", ".join(cell.name for cell in cells.ALL)
    )
    parser.add_argument("--peers", action="store_true", help="measure the peers too")
    parser.add_argument("--data", type=Path, metavar="DIR", help="default: BUILD/bench")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--passes", type=int, default=5, metavar="N", help="timed (default: 5)")
    parser.add_argument("--build", type=Path, default=Path("build"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        options.cells = cells.choose(options.cells)
    except KeyError as error:
        parser.error(error.args[0])
    options.build = options.build.resolve()
    options.data = (options.data or options.build / "bench").resolve()
    return options


if __name__ == "__main__":
    sys.exit(main())
