"""The server of a tundish.torch.DataLoader: one on each node, which local rank 0 starts and the others find by a
link whose name they all know. It ends when each rank of the node has had as many batches as local rank 0, or is
gone: ranks without collectives between them do not go in step.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import multiprocessing.util
import os
import shutil
import socket
import stat
import struct
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import loading, serving
from .errors import ServerGone
from .ranks import WAIT_S, Node, Ranks
from .reader import Reader, open as open_reader

__all__ = ["NodeServer"]

_LINK = "{}tundish-ranks-{}-{}"
_POLL_S = 0.02
_LATE_S = 60.0  # for a rank that was never seen, when local rank 0 leaves


class NodeServer:
    """A loader's server and its folder, which all ranks of the node see."""

    def __init__(self, ranks: Ranks, number: int) -> None:
        node = ranks.node
        self.run = -1  # the server's number of the epoch that is read
        self._local = node.local
        self._link = _link(node, ranks.world, number) if node.local_world > 1 else None
        self._server: serving.Server | None = None
        self._leave: Callable[[], object]
        if self._link is not None and node.local > 0:
            self.folder = _await(self._link)
            self._leave = weakref.finalize(self, os.close, _arrive(self.folder, node.local))
            self._map()
            return
        if self._link is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._link)
        self.folder, lock = serving.short_folder()  # sweeps, too
        _sweep()
        self._remove = weakref.finalize(self, _remove, self.folder, lock, self._link, os.getpid())
        for name, value in (("cuts", loading.WANTED_ALL), ("had", 0)):
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(struct.pack("<q", value) * node.local_world)
        self._map()

    def _map(self) -> None:
        """Words of all ranks: after which batch one wants no more of an epoch, and the batches that it has had."""
        self._cuts, self._had = (
            np.memmap(os.path.join(self.folder, name), np.int64, "r+") for name in ("cuts", "had")
        )

    def start(self, text: str, facts: dict[str, Any]) -> None:
        loading.save(os.path.join(self.folder, "loader"), facts)
        self._server = serving.serve(text=text, root=self.folder, socket=os.path.join(self.folder, "server"))
        if self._link is not None:
            os.symlink(self.folder, f"{self._link}.new")
            os.rename(f"{self._link}.new", self._link)
        # At the program's end before the server's own end, which was registered before. A process of
        # multiprocessing ends without what weakref registers.
        self._leave = weakref.finalize(self, _await_others, self.folder, self._had, os.getpid())
        multiprocessing.util.Finalize(self, self._leave, exitpriority=1)

    def open(self, local: int) -> Reader:
        if self._server is not None:
            return self._server.open("train", replica=local)
        return open_reader("train", server=os.path.join(self.folder, "server"), replica=local)

    def cut(self, steps: int) -> None:
        """This rank has had this number of steps of the epoch, and wants no more."""
        self._cuts[self._local] = self.run << 32 | steps

    def had(self, steps: int) -> None:
        """This rank has had this number of steps of the epoch."""
        self._had[self._local] = self.run << 32 | steps

    def ended(self) -> None:
        """This rank has had all of this epoch."""
        self._had[self._local] = self.run + 1 << 32

    def first_run(self) -> int:
        """The first of the server's epochs of which a rank of this node may want a batch still."""
        return int(self._had.min()) >> 32

    def stop(self) -> None:
        """End the server, once the others have had as many batches, or leave it."""
        self._leave()
        if self._server is not None:
            self._server.stop()
            self._remove()


def _arrive(folder: str, local: int) -> int:
    """A descriptor that is locked as long as the rank uses the server."""
    path = os.path.join(folder, f"rank-{local}")
    here = os.open(f"{path}.new", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(here, fcntl.LOCK_EX)
    os.rename(f"{path}.new", path)
    return here


def _is_gone(folder: str, local: int) -> bool | None:
    """None: it has not come yet."""
    try:
        there = os.open(os.path.join(folder, f"rank-{local}"), os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(there, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(there)


def _await_others(folder: str, had: Any, owner: int) -> None:
    if os.getpid() != owner:
        return
    late = time.monotonic() + _LATE_S
    for local in range(1, len(had)):
        while had[local] < had[0] and not (is_gone := _is_gone(folder, local)):
            if is_gone is None and late < time.monotonic():
                warnings.warn(
                    f"tundish: local rank {local} took no batch of a loader that this one has closed, and its "
                    "server ends: with is_shared=False a loader is of one rank",
                    RuntimeWarning,
                    stacklevel=2,
                )
                break
            time.sleep(_POLL_S)


def _link(node: Node, world: int, number: int) -> str:
    """A path that the ranks of this node know, and no other job's."""
    key = "/".join([node.job, str(node.ranks[0]), str(world), str(number)])
    name = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    return _LINK.format(os.path.join(tempfile.gettempdir(), ""), os.getuid(), name)


def _sweep() -> None:
    """Remove the links of jobs that were killed."""
    for link in glob.glob(_LINK.format(glob.escape(os.path.join(tempfile.gettempdir(), "")), os.getuid(), "*")):
        with contextlib.suppress(OSError):
            if os.lstat(link).st_uid == os.getuid() and not os.path.exists(link):
                os.unlink(link)


def _await(link: str) -> str:
    """The folder of the server that local rank 0 starts."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            folder = os.readlink(link)
            is_own = os.lstat(link).st_uid == os.getuid() == os.stat(folder).st_uid
            if is_own and _listens(os.path.join(folder, "server")):
                return folder
        time.sleep(_POLL_S)
    raise ServerGone(f"local rank 0 has started no server in {WAIT_S:.0f} s: all ranks must begin the same loops")


def _listens(path: str) -> bool:
    if not stat.S_ISSOCK(os.stat(path).st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as tried:
        try:
            tried.connect(path)
        except ConnectionRefusedError:
            return False
        except OSError:  # of another kind, where somebody listens all the same
            return True
    return True


def _remove(folder: str, lock: int, link: str | None, owner: int) -> None:
    if os.getpid() != owner:
        return
    if link is not None:
        with contextlib.suppress(OSError):
            if os.readlink(link) == folder:
                os.unlink(link)
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
