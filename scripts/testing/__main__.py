"""Run the suites named on the command line and add them up."""

import argparse
import sys
import time

from . import coverage, suites
from .tally import Tally


def main():
    options = _options()
    if options.coverage:
        total = coverage.measure()
        print(f"\n{total}")
        return 1 if total.failed else 0
    names = options.suite or (suites.QUICK if options.quick else list(suites.ALL))
    total = Tally()
    for name in names:
        print(f"\n== {name}: {suites.ALL[name].__doc__}", flush=True)
        start = time.monotonic()
        tally = suites.ALL[name]()
        print(f"== {name}: {tally} in {time.monotonic() - start:.0f} s", flush=True)
        total.add(tally)
    if total.notes:
        print("\nFailed or skipped:")
        for note in total.notes:
            print(f"  {note}")
    print(f"\n{total}")
    return 1 if total.failed else 0


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
