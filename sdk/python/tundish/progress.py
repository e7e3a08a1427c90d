"""A line that says what a long wait is for, where a person looks: on a terminal or in a notebook."""

from __future__ import annotations

import re
import sys
import time

AFTER_S = 1.0  # shorter waits need no word
EVERY_S = 0.5
WIDTH = 78

_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\S+ (?:notice|warning|error|debug) ")


class Waiting:
    """While something starts: call look() now and then, and close() at last."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()
        self._due = self._began + AFTER_S
        self._shown = 0
        self._stream = sys.stderr if is_seen(sys.stderr) else None

    def look(self, log: str) -> None:
        """Show how long it has taken, and the last line of a log."""
        now = time.monotonic()
        if self._stream is None or now < self._due:
            return
        self._due = now + EVERY_S
        last = _STAMP.sub("", log.strip().rpartition("\n")[2])
        said = f"{self._what}, {now - self._began:.0f} s{': ' if last else ''}{last}"[:WIDTH]
        self._write("\r" + said.ljust(self._shown))
        self._shown = len(said)

    def close(self) -> None:
        if self._stream is not None and self._shown:
            self._write("\r" + " " * self._shown + "\r")

    def _write(self, text: str) -> None:
        assert self._stream is not None
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone, or the stream closed
            self._stream = None


def is_seen(stream: object) -> bool:
    """Does a person see it as it is written?"""
    if type(stream).__module__.partition(".")[0] == "ipykernel":
        return True
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False
