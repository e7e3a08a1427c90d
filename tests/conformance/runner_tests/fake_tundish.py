#!/usr/bin/env python3
"""Stands in for tundish: prints what lies beside the pipeline file it is given.

NAME.out is what `peek` prints, NAME.learned/ what `analyze` leaves; NAME.sh, if there, is run
in place of both. Without NAME.learned/ the command `analyze` does not exist. NAME.calls keeps
the arguments of every call.
"""

import shutil
import subprocess
import sys
from pathlib import Path


def main():
    command, pipeline = sys.argv[1], Path(sys.argv[2])
    with open(pipeline.with_suffix(".calls"), "a", encoding="utf-8") as calls:
        print(*sys.argv[1:], file=calls)
    script = pipeline.with_suffix(".sh")
    if script.exists():
        return subprocess.call(["sh", script])
    if command == "analyze":
        learned = pipeline.with_suffix(".learned")
        if not learned.is_dir():
            print("tundish: there is no command 'analyze'; see 'tundish help'", file=sys.stderr)
            return 2
        target = sys.argv[sys.argv.index("--analysis") + 1]
        shutil.copytree(learned, target, dirs_exist_ok=True)
        return 0
    text = pipeline.with_suffix(".out").read_text(encoding="utf-8")
    sys.stdout.write(text)
    return 1 if '"refused"' in text else 0


if __name__ == "__main__":
    sys.exit(main())
