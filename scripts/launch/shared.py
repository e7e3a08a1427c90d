"""Files through which launchers on one host find each other."""

import fcntl
import hashlib
import json
import os
import socket
import stat
import time
from pathlib import Path

from .job import LATE_WORKERS_S
from .processes import ENDING, END_NOW, LaunchError, is_running, next_signal, say
from .slurm import slurm_step
from .tf_config import tf_config


class SharedServer:
    """A server that the launchers of a host's workers share. The first launcher starts it, and stays
    as long as others read. They meet at a file. The launcher that serves locks byte 0, those that read
    lock byte 1. The file's text is the relation between the trainers and the server's socket. After
    TEXT_BYTES there is a byte for each worker that has attached."""

    TEXT_BYTES = 4096

    def __init__(self, path, workers):
        self.path = path
        self.workers = workers
        self.file = None

    def enter(self):
        """Returns True if this launcher serves. False: it reads, and self.words() are complete."""
        while True:
            self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            if self.lock(0, fcntl.LOCK_EX):
                if is_at(self.path, self.file):
                    os.ftruncate(self.file, 0)
                    return True
            elif self.lock(1, fcntl.LOCK_SH) and self.words():
                os.pwrite(self.file, b"x", self.TEXT_BYTES + self.workers[0])
                return False
            os.close(self.file)
            number = next_signal(timeout_s=0.05)
            if number in ENDING or number == END_NOW:
                raise LaunchError("stopped before the server was ready", 128 + number)

    def lock(self, byte, how):
        try:
            fcntl.lockf(self.file, how | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def words(self):
        text = os.pread(self.file, self.TEXT_BYTES, 0).rstrip(b"\0").decode()
        return text[:-1].split(" ", 1) if text.endswith("\n") else []

    def open_to_others(self, relation, socket_path):
        os.pwrite(self.file, f"{relation} {socket_path}\n".encode(), 0)

    def missing(self):
        """Returns the other workers that have not attached."""
        return [worker for worker in self.workers[1:]
                if os.pread(self.file, 1, self.TEXT_BYTES + worker) != b"x"]

    def leave(self, server, late_s, at_once):
        """The launcher that serves waits until no other worker reads or will read. at_once: it does not
        wait."""
        deadline = time.monotonic() + late_s
        if late_s > 0 and not at_once and self.missing():
            say(f"waits {late_s} s for workers of this host that have not come: "
                f"{', '.join(map(str, self.missing()))}")
        while is_running(server) and not at_once:
            is_late = time.monotonic() >= deadline
            if (is_late or not self.missing()) and self.lock(1, fcntl.LOCK_EX):
                break
            number = next_signal(timeout_s=0.05)
            if number in ENDING or number == END_NOW:
                break
        os.ftruncate(self.file, 0)
        os.unlink(self.path)


class TrainerRegistry:
    """A file that is locked while the trainers of a task run, and holds their exit status afterwards. The
    task's own launcher reads it if the first task's launcher has started the trainers."""

    TEXT_BYTES = 40

    def __init__(self, path):
        self.path = path
        self.file = None

    def begin(self, pid):
        while self.file is None or not is_at(self.path, self.file):
            if self.file is not None:
                os.close(self.file)
            self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            fcntl.lockf(self.file, fcntl.LOCK_EX)
        self.write(str(pid))

    def end(self, pid, status):
        self.write(f"{pid} {status}")

    def write(self, text):
        """Write atomically: another process reads either the old text or the new one."""
        os.pwrite(self.file, f"{text:{self.TEXT_BYTES}}\n".encode(), 0)

    def look(self):
        """Returns the process that runs the trainers, or None, and their exit status, or None."""
        try:
            self.file = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None, None
        try:
            return self.read()
        finally:
            os.close(self.file)

    def read(self):
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            words = self.words()
            return (int(words[0]) if words else None), None
        words = self.words()
        is_fresh = time.time() - os.fstat(self.file).st_mtime < LATE_WORKERS_S
        if words and is_at(self.path, self.file):
            os.unlink(self.path)
        return None, int(words[1]) if len(words) == 2 and is_fresh else None

    def words(self):
        return os.pread(self.file, 100, 0).decode().split()


def is_at(path, file):
    """Is the open file still the one at this path?"""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def meeting_file(options, for_server):
    """The file where launchers of a cluster's workers meet if they serve the same in the same way."""
    cluster = tf_config().get("cluster") or slurm_step()
    what = [cluster, socket.gethostname(), os.path.abspath(options.file), options.stream, for_server]
    name = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
    folder = Path(f"/tmp/tundish-{os.geteuid()}")  # however the launcher was started, also by ssh
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ValueError(f"cannot make {folder}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ValueError(f"{folder} is not a folder that only its owner, this user, may write to")
    return str(folder / f"cluster-{name}")
