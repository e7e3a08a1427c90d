"""A build that takes minutes: its words go to a log, and how far it is to the terminal."""

import re
import subprocess
import sys

from . import source

_EVERY_S = 20
_LAST_LINES = 60
_STEP = re.compile(r"\[(\d+/\d+)\]")


def run(command, log, **options):
    """Run it as subprocess.check_call would, with all that it prints in the file `log`."""
    shown = log.relative_to(source.REPOSITORY) if log.is_relative_to(source.REPOSITORY) else log
    print(f"package: building, which takes minutes; log: {shown}", flush=True)
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, **options)
        try:
            while process.poll() is None:
                _wait(process, log)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        sys.stderr.write("".join(log.read_text(errors="replace").splitlines(True)[-_LAST_LINES:]))
        raise subprocess.CalledProcessError(1, [*command, f"(all of its words: {log})"])


def _wait(process, log):
    try:
        process.wait(_EVERY_S)
    except subprocess.TimeoutExpired:
        steps = _STEP.findall(log.read_text(errors="replace"))
        if steps:
            print(f"package: step {steps[-1]}", flush=True)
