"""Run the suites named on the command line and add them up."""

import argparse
import resource
import sys
import time

from . import coverage, durations, suites
from .tally import Tally

_SLOWEST = 10


def main():
    options = _options()
    if options.coverage:
        total = coverage.measure()
        print(f"\n{total}")
        return 1 if total.failed else 0
    names = options.suite or (suites.QUICK if options.quick else list(suites.ALL))
    total = Tally()
    suites.build_ahead(names[1:])
    for number, name in enumerate(names, 1):
        left = durations.left(names[number - 1 :], durations.known())
        print(f"\n== {name} (suite {number} of {len(names)}{left}): {suites.ALL[name].__doc__}", flush=True)
        start, used = time.monotonic(), _processor_s()
        tally = suites.ALL[name]()
        wall, used = time.monotonic() - start, _processor_s() - used
        print(f"== {name}: {tally} in {wall:.0f} s, {used:.0f} s of the processors", flush=True)
        if not tally.failed:  # a suite that fails may have ended early
            durations.note(name, wall)
        total.add(tally)
    slowest = sorted(total.parts, reverse=True)[:_SLOWEST]
    print("\nThe slowest parts:" if slowest else "")
    for seconds, part in slowest:
        print(f"  {seconds:5.0f} s  {part}")
    if total.notes:
        print("\nFailed or skipped:")
        for note in total.notes:
            print(f"  {note}")
    print(f"\n{total}")
    return 1 if total.failed else 0


def _processor_s():
    """Of all processes that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
