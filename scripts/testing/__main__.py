"""Run the suites named on the command line and add them up."""

import argparse
import sys

from . import beside, coverage, durations, suites
from .tally import Tally

_SLOWEST = 10
_REPORTED = 40  # lines of a failure, at the end of what is printed


def main():
    options = _options()
    if options.coverage:
        total = coverage.measure()
        print(f"\n{total}")
        return 1 if total.failed else 0
    names = options.suite or (suites.QUICK if options.quick else list(suites.ALL))
    apart = [name for name in names if name in beside.SUITES] if set(names) - set(beside.SUITES) else []
    names = [name for name in names if name not in apart]
    total = Tally()
    suites.build_ahead(names[1:])
    others = beside.Beside(apart)
    for number, name in enumerate(names, 1):
        if name not in suites.QUICK:
            others.begin()
        left = durations.left(names[number - 1 :], durations.known())
        print(f"\n== {name} (suite {number} of {len(names)}{left}): {suites.ALL[name].__doc__}", flush=True)
        ended(total, name, *beside.run(name))
        for suite in others.ended():
            ended(total, *suite)
    others.begin()
    for suite in others.ended(all_of_them=True):
        ended(total, *suite)
    for report in total.reports:
        print("", *shortened(report), sep="\n")
    slowest = sorted(total.parts, reverse=True)[:_SLOWEST]
    print("\nThe slowest parts:" if slowest else "")
    for seconds, part in slowest:
        print(f"  {seconds:5.0f} s  {part}")
    if suites.ahead_s:
        print(f"\nBuilding ahead took {suites.ahead_s:.0f} s of the processors.")
    if total.notes:
        print("\nFailed or skipped:")
        for note in total.notes:
            print(f"  {note}")
    print(f"\n{total}")
    return 1 if total.failed else 0


def shortened(report):
    left = len(report) - _REPORTED
    half = _REPORTED // 2
    return [*report[:half], f"({left} lines of it are above)", *report[-half:]] if left > 0 else report


def ended(total, name, tally, wall, printed=None):
    """Count a suite, and show what it printed, if it ran beside others."""
    if printed is not None:
        print(f"\n== {name} (beside the others): {suites.ALL[name].__doc__}\n{printed}", end="", flush=True)
    if not tally.failed:  # a suite that fails may have ended early
        durations.note(name, wall)
    total.add(tally)


def _options():
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description="Run the tests; all suites unless some are named.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="suites:\n" + "".join(f"  {n:12} {f.__doc__}\n" for n, f in suites.ALL.items()),
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"only {', '.join(suites.QUICK)}, unless named"
    )
    parser.add_argument(
        "--coverage", action="store_true", help="print the line coverage of each folder instead"
    )
    parser.add_argument("suite", nargs="*", metavar="SUITE")
    options = parser.parse_args()
    unknown = [name for name in options.suite if name not in suites.ALL]
    if unknown:
        parser.error(f"no such suite: {', '.join(unknown)}; there are {', '.join(suites.ALL)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
