"""Make the packages of the kind named on the command line, and try them."""

import argparse
import subprocess
import sys

from . import deb, image, source, wheel

KINDS = {"deb": deb.make, "image": image.make, "wheel": wheel.make}


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/package",
        description="Make what users install, into dist/, and try it as they would.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="kinds:\n" + "".join(f"  {name:8} {make.__doc__}\n" for name, make in KINDS.items()),
    )
    parser.add_argument("--deps", action="store_true", help="first install what only packaging needs")
    parser.add_argument("kind", choices=KINDS, metavar="KIND")
    try:
        KINDS[parser.parse_args().kind]()
    except subprocess.CalledProcessError as error:
        words = " ".join(map(str, error.cmd))
        print(f"package: status {error.returncode} of: {words}", file=sys.stderr)
        return 1
    except source.Missing as error:
        print(f"package: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
