"""The programs of Tundish: tundish, tundish-launch and tundish-admin."""

import os
import sys
from pathlib import Path


def run():
    """Become the program that this was called as."""
    program = str(Path(__file__).parent / "bin" / Path(sys.argv[0]).name)
    if program.endswith("-launch"):  # is Python itself
        os.execv(sys.executable, [sys.executable, program, *sys.argv[1:]])
    os.execv(program, [sys.argv[0], *sys.argv[1:]])
