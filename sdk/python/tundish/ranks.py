"""The ranks of a job of torch's, which all run the same program."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import os
import secrets
import sys
import tempfile
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .errors import ArgumentError, ServerGone

__all__ = ["WAIT_S", "Node", "Ranks"]

WAIT_S = 600.0  # for another rank to come as far


class Ranks:
    """This job's: those of torch.distributed once that has begun, else of the environment."""

    def __init__(self, is_shared: bool) -> None:
        is_told = is_shared and bool(os.environ.get("RANK"))  # without it the rest may be another's
        self.world = _number("WORLD_SIZE", 1) if is_told else 1
        self.rank = _number("RANK", 0) if is_told else 0
        self._store: Callable[[], Any] = lambda: None
        distributed = sys.modules.get("torch.distributed")
        if not is_shared or (is_told and os.environ.get("LOCAL_WORLD_SIZE")) or distributed is None:
            return
        if distributed.is_available() and distributed.is_initialized():
            self.world, self.rank = distributed.get_world_size(), distributed.get_rank()
            # It may not outlive the process group, since it has the port of the next one.
            self._store = weakref.ref(distributed.distributed_c10d._get_default_store())

    def are(self, other: Ranks) -> bool:
        return (self.world, self.rank, self._store()) == (other.world, other.rank, other._store())

    @functools.cached_property
    def node(self) -> Node:
        store = self._store()
        if store is not None:
            if store not in _nodes:
                _nodes[store] = _node_by_names(store, self.world, self.rank)
            return _nodes[store]
        if self.world == 1:
            return Node(0, [0], "")
        local_world = _number("LOCAL_WORLD_SIZE", self.world)
        local = _number("LOCAL_RANK", self.rank % local_world)
        if not 0 <= local < local_world <= self.world or not local <= self.rank < self.world:
            raise ArgumentError(
                f"RANK {self.rank}, WORLD_SIZE {self.world}, LOCAL_RANK {local} and LOCAL_WORLD_SIZE {local_world} "
                "of the environment do not fit together"
            )
        names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_STEP_ID")
        words = [os.environ.get(name, "") for name in names]
        first = self.rank - local
        return Node(local, range(first, first + local_world), "/".join([*words, str(os.getppid())]))


@dataclasses.dataclass
class Node:
    """The ranks of this node."""

    local: int  # this one's place among them
    ranks: Sequence[int]
    job: str  # what no other job has, and each of its ranks knows

    @property
    def local_world(self) -> int:
        return len(self.ranks)


def _number(name: str, default: int) -> int:
    return int(os.environ.get(name) or default)


_nodes: weakref.WeakKeyDictionary[Any, Node] = weakref.WeakKeyDictionary()


def _node_by_names(store: Any, world: int, rank: int) -> Node:
    """Each rank tells the others the machine, and the folder, in which it finds the server."""
    folder = os.stat(tempfile.gettempdir())
    store.set(f"tundish/{rank}", f"{os.uname().nodename} {folder.st_dev} {folder.st_ino}/{secrets.token_hex(8)}")
    keys = [f"tundish/{other}" for other in range(world)]
    try:
        store.wait(keys, datetime.timedelta(seconds=WAIT_S))
    except RuntimeError as error:
        raise ServerGone(f"a rank has begun no loop in {WAIT_S:.0f} s: all ranks must begin the same loops") from error
    names = [store.get(key).decode().split("/") for key in keys]
    here = [other for other in range(world) if names[other][0] == names[rank][0]]
    return Node(here.index(rank), here, names[0][1])
