"""A time limit for programs of tests: one that hangs is ended, and shows where it stood."""

import os
import signal
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

_LAST_WORDS_S = 10  # for Python's faulthandler


@contextmanager
def of(process, seconds):
    """End the process and all that it started, if they still run after that time.

    Yields a list that then names what ran. The process gets SIGABRT first: an interpreter with
    -X faulthandler prints where each of its threads is."""
    ran = []

    def end():
        started = _descendants(process.pid)
        ran.extend(f"{pid} {_command(pid)}" for pid in started)
        process.send_signal(signal.SIGABRT)
        try:
            process.wait(_LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            pass
        for pid in started:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield ran
    finally:
        timer.cancel()


def _descendants(pid):
    """The process and what descends from it, itself first."""
    found = [pid]
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(stat.parent.name))
    for one in found:
        found += children.get(one, [])
    return found


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "(ended)"
