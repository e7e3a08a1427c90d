"""Folders of servers that Python started, of which none stays after a process that was killed.

A folder is locked as long as its owner or its server lives: by the kernel, so that it holds whatever ends
them, and in whichever container they are. One that nobody has locked is removed by the next that is made.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile

_PREFIX = "tundish-serve-"


def make(parent: str | None = None) -> tuple[str, int]:
    """A new folder that only this user may enter, in `parent` or else in the folder for temporary files;
    and the descriptor of its lock, which the caller closes, and gives to processes that use the folder."""
    parent = parent or tempfile.gettempdir()
    _sweep(parent)
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(folder):
                return folder, lock
            os.close(lock)
        # Another process swept before the lock was taken.


def _sweep(parent: str) -> None:
    for folder in glob.glob(os.path.join(glob.escape(parent), f"{_PREFIX}*")):
        with contextlib.suppress(OSError):  # of another user, in use, or gone
            _remove_unless_used(folder)


def _remove_unless_used(folder: str) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
