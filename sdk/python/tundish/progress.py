"""A line that says what a long wait is for, where a person looks: on a terminal or in a notebook."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Callable

from . import errors, programs

AFTER_S = 1.0  # shorter waits need no word
EVERY_S = 0.5
WIDTH = 78

_WHO_WAITS = re.compile(r"^waiting: .*? of its time: ")  # it is this program that waits
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\S+ (?:notice|warning|error|debug) ")


class Waiting:
    """While something starts: call look() now and then, and close() at last."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()
        self._due = self._began + AFTER_S
        self._shown = 0
        self._stream = sys.stderr if is_seen(sys.stderr) else None

    def look(self, log: Callable[[], str]) -> None:
        """Show how long it has taken, and the last line of a log, which is asked for if it is shown."""
        now = time.monotonic()
        if self._stream is None or now < self._due:
            return
        self._due = now + EVERY_S
        last = _STAMP.sub("", log().strip().rpartition("\n")[2])
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


class FirstBatch:
    """While a reader waits for its first batch: what `tundish status` says, asked in a process of its own."""

    def __init__(self, server: str | None) -> None:
        self._waiting = Waiting("tundish: the first batch")
        self._words = ["status", "--short", "--interval", "300", *(["--socket", server] if server else [])]
        self._asked: subprocess.Popen[str] | None = None
        self._said = ""

    def look(self) -> None:
        self._waiting.look(self._verdict)

    def close(self) -> None:
        self._waiting.close()
        if self._asked is not None:
            self._asked.kill()
            self._asked.communicate()

    def _verdict(self) -> str:
        """The last answer, at first none; never waits for one."""
        if self._asked is not None and self._asked.poll() is not None:
            self._said = _WHO_WAITS.sub("", self._asked.communicate()[0]) or self._said
            self._asked = None
        if self._asked is None:
            with contextlib.suppress(OSError, errors.Error):  # the program is not installed here
                self._asked = subprocess.Popen(
                    [programs.find(), *self._words],
                    env=programs.environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
        return self._said


def is_seen(stream: object) -> bool:
    """Does a person see it as it is written?"""
    if type(stream).__module__.partition(".")[0] == "ipykernel":
        return True
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False
