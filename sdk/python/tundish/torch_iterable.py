"""tundish.torch.DataLoader of an IterableDataset: a server of its own, with a process for each worker.

Each process iterates over a copy of the data set, as torch's workers do, and its batches are rows of the
pipeline's source, `program`: see iterating.py. A place is the number of batches that the program has had of each
worker; one that is resumed makes these again and passes over them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import torch

from . import iterating, serving
from .errors import DataError, EndOfEpoch, MisuseError, PlaceError, ServerGone, tell_of_loader
from .reader import Reader
from .torch import gradient_state
from .torch_options import Loader, active, collation, drawn_seed
from .worker_memory import Memory

__all__ = ["IterableLoader"]

_MOST = 1024  # processes of a source
_MORE_REGIONS = 2  # one that is filled, and one that is read


class IterableLoader(Loader):
    """See tundish.torch.DataLoader."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
    ) -> None:
        self._dataset, self.sampler, self.batch_sampler = dataset, None, None
        self.__dict__.update(dataset=dataset, seed=seed)  # in vars(), for Lightning
        self.batch_size, self.drop_last = batch_size, bool(drop_last)
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self.multiprocessing_context, self.generator = multiprocessing_context, generator
        self._check(bool(shuffle), sampler, batch_sampler)
        self.collate_fn, _ = collation(collate_fn, batch_size is None)
        self._seed = seed  # None: it is not drawn yet
        self._epoch = 0  # of the loop that comes next, or of the one that goes on
        self._taken: list[int] | None = None  # batches of each worker; None: no loop is in the midst of an epoch
        self._first = 0  # the worker whose turn comes next
        self._resumed = False
        self._is_last = False  # the batch that the loop got last, as far as the loop looks ahead
        self._server: serving.Server | None = None
        self._forks: iterating.Forks | None = None
        self._folder: str | None = None  # of the server's epochs
        self._memories: list[Memory] = []  # of each worker
        self._reader: Reader | None = None
        self._run = 0  # the server's number of the next epoch
        self._is_closed = False
        self._owner = os.getpid()

    # A copy, a pickled one and a forked process's have the options and the place, and a server of their own.

    def __getstate__(self) -> dict[str, Any]:
        begin: dict[str, Any] = {"_taken": None, "_first": 0}
        if self._resumed and self._taken is not None:
            begin = {"_taken": list(self._taken)}
        fresh: dict[str, Any] = {"_server": None, "_reader": None, "_forks": None, "_folder": None, "_run": 0}
        return {**self.__dict__, **fresh, **begin, "_memories": []}

    def _check(self, shuffle: bool, sampler: Any, batch_sampler: Any) -> None:
        """Refuse as torch does, in its words, and where this cannot follow."""
        expected = "DataLoader with IterableDataset: expected unspecified"
        self._refuse(
            (
                (self.num_workers > _MOST, f"num_workers is at most {_MOST}"),
                (shuffle, f"{expected} shuffle option, but got shuffle=True"),
                (sampler is not None, f"{expected} sampler option, but got sampler={sampler}"),
                (batch_sampler is not None, f"{expected} batch_sampler option, but got batch_sampler={batch_sampler}"),
            )
        )

    def __len__(self) -> int:
        """The batches of an epoch, if the data set has a length, which is that of all workers together."""
        count, size = len(self._dataset), self.batch_size or 1
        return count // size if self.drop_last else math.ceil(count / size)

    # Loops.

    def __iter__(self) -> Iterator[Any]:
        self._own()
        if self._is_closed:
            raise MisuseError("the loader is closed: make another")
        self._loop += 1
        return self._batches_of_loop(self._loop)

    def _batches_of_loop(self, loop: int) -> Iterator[Any]:
        self._check_loop(loop)
        state = gradient_state()
        passes_over = self._is_loaded and (self._by_trainer or state is not None)
        self._is_loaded = False
        looks_ahead = state is not None and state.num_steps > 1  # accelerate asks which batch is the last
        with active(state, self):
            is_empty = not (yield from self._batches_of_epoch(loop, looks_ahead))
            if is_empty and passes_over:
                yield from self._batches_of_epoch(loop, looks_ahead)

    def _batches_of_epoch(self, loop: int, looks_ahead: bool) -> Generator[Any, None, int]:
        """Returns how many there were."""
        self._begin()
        given, taken = 0, self._taken
        assert taken is not None
        read = self._read(len(taken), self._first)
        for (number, made), self._is_last in _with_last(read) if looks_ahead else zip(read, itertools.repeat(False)):
            taken[number] += 1
            self._first = (number + 1) % len(taken)
            given += 1
            if self._noted is not None:
                self._noted.append(self.place)
            yield made
            self._check_loop(loop)
        self._taken, self._first = None, 0
        self._epoch += 1
        self._run += 1
        return given

    def _read(self, count: int, first: int) -> Iterator[tuple[int, Any]]:
        """Batches, each with the worker that made it."""
        for row in itertools.count(first):
            try:
                batch = self._next()
            except BaseException:
                self._drop()
                raise
            if batch is None:
                return
            number = row % count
            head, data = (np.asarray(batch[name]).reshape(-1) for name in ("head", "data"))
            made = iterating.read(head, data, self._memories[number])
            del batch, head, data
            if made is not iterating.NOTHING:  # else that worker has ended
                yield number, self._pinned(made)

    def _begin(self) -> None:
        """Begin the next epoch, or go on in the one that was loaded."""
        count = max(self.num_workers, 1)
        drawn = self._drawn_seed()
        if self._seed is None:
            self._seed = drawn
        if self._forks is not None and self._forks.is_outdated():
            self._drop()
        if self._taken is not None and not self._resumed:  # in the midst of one
            self._drop()
            self._epoch += 1
            self._taken = None
        self._resumed = False
        if self._taken is None:
            self._taken, self._first = [0] * count, 0
        try:
            if self._server is None:
                self._forks = iterating.Forks.of_program(type(self._dataset).__module__)
                self._folder = tempfile.mkdtemp(dir=self._forks.folder)
                ahead = (self.prefetch_factor or 2) + _MORE_REGIONS
                self._memories = [Memory(os.path.join(self._folder, f"free-{n}"), min(ahead, 256)) for n in range(count)]
                self._write_epoch()
                self._server = serving.serve(text=self._text(self._forks.address, count))
                self._server._uses = self._forks
                self._reader = self._server.open("train")
            else:
                self._write_epoch()
        except BaseException:
            self._drop()
            raise

    def _write_epoch(self) -> None:
        assert self._taken is not None and self._folder is not None
        epoch = iterating.Epoch(
            self._dataset, self.collate_fn, self.worker_init_fn, self.batch_size, self.drop_last,
            self.num_workers, self._seed_of_epoch(), self._first, self._taken,
            [memory.address for memory in self._memories],
        )  # fmt: skip
        iterating.write_epoch(self._folder, self._run, epoch)

    def _seed_of_epoch(self) -> int:
        """Workers' seeds are this one and their number: in the first epoch those of torch's workers."""
        assert self._seed is not None
        if self._epoch == 0:
            return self._seed
        digest = hashlib.blake2b(f"{self._seed} {self._epoch}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") >> 2

    def _text(self, address: str, count: int) -> str:
        # -S: the packages of the environment are the fork's.
        command = [sys.executable, "-I", "-S", "-c", iterating.CONNECT, address, self._folder]
        slots = (self.prefetch_factor or 2) * count
        stream = {
            "dataset": [{"program": {"command": command, "spec": iterating.SPEC, "processes": count}}, {"batch": 1}],
            "deliver": {"slots": max(3, min(slots, 64))},
        }
        return json.dumps({"streams": {"train": stream}})

    def _next(self) -> Any:
        if self._reader is None:
            raise MisuseError("the loader is closed: make another")
        try:
            return self._reader.next(timeout=self.timeout or None)
        except EndOfEpoch:
            return None
        except DataError as error:
            error.args = (_of_data_set(str(error)),)
            raise
        except ServerGone as gone:
            tell_of_loader(gone)
            raise

    def _drop(self) -> None:
        """The next loop begins with a server of its own."""
        if self._owner != os.getpid():
            return  # it is the program's, and this is a fork
        if self._reader is not None:
            self._reader.close()
        if self._server is not None:
            self._server.stop()
        self._reader = self._server = None
        self._run = 0
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        for memory in self._memories:
            memory.close()
        self._memories = []

    # Places.

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that the loop got: plain numbers."""
        if self._seed is None:
            generator = self.generator or torch.default_generator
            self._seed = drawn_seed(torch.Generator().set_state(generator.get_state()))
        return {
            "version": 1,
            "workers": self.num_workers,
            "batch_size": self.batch_size,
            "seed": self._seed,
            "epoch": self._epoch,
            "taken": None if self._taken is None else list(self._taken),
            "first": self._first,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at a place that state_dict() gave, with as many workers, in the next loop. Raises PlaceError if it
        is none."""
        if not isinstance(state, dict) or state.get("version") != 1 or "taken" not in state:
            raise PlaceError("the state is not one that state_dict() of a DataLoader of an IterableDataset returned")
        for name, mine in (("workers", self.num_workers), ("batch_size", self.batch_size)):
            if state["taken"] is not None and state[name] != mine:
                raise PlaceError(
                    f"the place is of a loader with {name} {state[name]}, and this one has {mine}: of an "
                    "IterableDataset they decide which batches there are"
                )
        taken = None if state["taken"] is None else list(state["taken"])
        if taken is not None and (len(taken) != max(self.num_workers, 1) or not 0 <= state["first"] < len(taken)):
            raise PlaceError("the place is damaged: it does not tell the batches of each worker")
        self._own()
        self._note_load(sys._getframe(1))
        self._drop()
        self._seed, self._epoch, self._taken = state["seed"], state["epoch"], taken
        self._first, self._resumed = state["first"], True
        self._has_seeded = self._epoch > 0 or taken is not None

    def _pass_over_rest(self) -> None:
        if self._taken is not None:
            self._taken, self._first = None, 0
            self._epoch += 1

    @property
    def end_of_dataloader(self) -> bool:
        """Whether the batch that the loop got last is the epoch's last, where accelerate accumulates gradients."""
        return self._is_last

    remainder = 0  # no row comes twice to make ranks even

    def close(self) -> None:
        """End the server and the processes. A second call does nothing."""
        self._own()
        self._is_closed = True
        self._drop()
        self._forks = None


def _with_last(batches: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
    """Each batch, and whether it is the last. An error comes after the batch before it."""
    batch, error = next(batches, None), None
    while batch is not None:
        try:
            after = next(batches, None)
        except Exception as failed:
            after, error = None, failed
        yield batch, after is None and error is None
        if error is not None:
            raise error
        batch = after


def _of_data_set(sentence: str) -> str:
    """Without the pipeline, which the program has not written."""
    program = re.escape(sys.executable)
    sentence = re.sub(rf"\S+:\d+:\d+: program: program {program}", "a worker", sentence)
    return re.sub(program + r", row \d+: | \(program, line \d+ of \S+\)", "", sentence)
