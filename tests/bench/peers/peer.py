"""What a cell's peer gives."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Batch:
    """One batch as numpy arrays, or lists of bytes for ids that are strings."""

    ids: object
    dense: object = None
    label: object = None

    @property
    def rows(self):
        return len(self.ids)


@dataclass(frozen=True)
class Peer:
    version: str
    epoch: Callable  # returns an iterator over the Batches of one pass
    stream: object = None  # for latencies: ids of one batch after the other, without end
    near: bool = False  # its pixels are not TensorFlow's to the bit
