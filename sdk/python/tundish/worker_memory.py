"""Memory in which workers of iterating.py put large batches, where the loader reads them: the server then has rows
of a few bytes, and gives them their order.

Each worker has some regions of a file without a name. It takes one that is free, by a number out of a pipe with a
name, and the loader puts the number back when it has done with the batch. So a worker makes no more batches ahead
than it has regions.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ALIGN", "Address", "Lent", "Memory", "Region"]

ALIGN = 64


class Address(NamedTuple):
    file: str
    pipe: str


class Region(NamedTuple):
    number: int
    begin: int
    size: int


class Memory:
    """The loader's side of one worker's."""

    def __init__(self, pipe: str, count: int) -> None:
        os.mkfifo(pipe, 0o600)
        self._pipe = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        self._file = os.memfd_create("tundish batches")
        self._mapped: Any = None
        self.address = Address(f"/proc/{os.getpid()}/fd/{self._file}", pipe)
        os.write(self._pipe, bytes(range(count)))

    def bytes_of(self, region: Region) -> Any:
        if self._mapped is None or len(self._mapped) < region.begin + region.size:
            self._mapped = mmap.mmap(self._file, 0)  # a batch that is read holds the one before
        return np.frombuffer(self._mapped, np.uint8, region.size, region.begin)

    def give_back(self, region: Region) -> None:
        os.write(self._pipe, bytes([region.number]))

    def close(self) -> None:
        for descriptor in (self._pipe, self._file):
            os.close(descriptor)


class Lent:
    """The worker's side."""

    def __init__(self, address: Address) -> None:
        self._file = os.open(address.file, os.O_RDWR | os.O_CLOEXEC)
        self._pipe = os.open(address.pipe, os.O_RDONLY | os.O_CLOEXEC)
        self._mapped: Any = None
        self._regions: dict[int, Region] = {}

    @staticmethod
    def at(address: Address) -> Lent | None:
        """None: another process's files cannot be opened here."""
        with contextlib.suppress(OSError):
            return Lent(address)
        return None

    def take(self, size: int) -> tuple[Region, Any]:
        """A region of this size and its bytes. Waits while none is free."""
        number = os.read(self._pipe, 1)[0]
        region = self._regions.get(number, Region(number, 0, 0))
        if region.size < size:
            begin = os.fstat(self._file).st_size
            region = Region(number, begin, -(-size * 9 // 8 // mmap.PAGESIZE) * mmap.PAGESIZE)
            os.ftruncate(self._file, begin + region.size)
            self._mapped = mmap.mmap(self._file, 0)
            self._regions[number] = region
        return region._replace(size=size), np.frombuffer(self._mapped, np.uint8, size, region.begin)
