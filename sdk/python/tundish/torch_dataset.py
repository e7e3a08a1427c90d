"""tundish.torch.DataLoader of a map-style data set: a server of its own, whose interpreters make the batches.

The ranks of a node share that server: local rank 0 starts it, the others find it by a link whose name they all
know. Its pipeline is the source `numbers`, which has a list of each epoch's batches from rank 0, and a stage
`python`, `loading.Batches`. So any sampler decides the order, batches are collated for one rank at a time, and a
place is the epoch and the number of rows that all ranks have had.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import copy
import hashlib
import itertools
import json
import math
import operator
import os
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from . import loading
from .columns import Strings, lent
from .errors import ArgumentError, DataError, MisuseError, PlaceError, ServerGone, Timeout, tell_of_loader
from .node_server import NodeServer
from .ranks import Ranks
from .reader import Reader
from .torch import convert, gradient_state
from .torch_options import Loader, Option, active, collation, drawn_seed

__all__ = ["DatasetLoader"]

_FOREVER_S = 7 * 24 * 3600
_ROUND = 2**20  # numbers of rows in a batch of a batch_sampler
_MANY, _MANY_BATCHES = 2**24, 2**20  # of an epoch, besides sixteen rounds of the data set

# Loaders are numbered in the order in which a program makes them, which is the same on all ranks.
_numbers = itertools.count()


class _Sampler(Option):
    """The sampler. Ray's prepare_data_loader() asks for it, and makes a loader of torch's in this one's stead unless
    it is a DistributedSampler: it becomes the one that Ray would give that loader."""

    def __get__(self, loader: Any, owner: type | None = None) -> Any:
        asks = sys._getframe(1).f_globals.get("__name__")
        if asks in ("ray.train.torch.train_loop_utils", "ray.train.v2.torch.train_loop_utils"):
            loader._distribute()
        return loader.__dict__["sampler"]


class DatasetLoader(Loader):
    """See tundish.torch.DataLoader."""

    sampler = _Sampler()

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
        is_shared: bool = True,
    ) -> None:
        self._dataset = dataset
        self.__dict__.update(dataset=dataset, seed=seed)  # in vars(), for Lightning
        self.batch_size, self.drop_last = batch_size, bool(drop_last)
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self.multiprocessing_context, self.generator = multiprocessing_context, generator
        self._check(bool(shuffle), sampler, batch_sampler)
        self._seed = seed  # None: it is not drawn yet
        self._is_own_order = sampler is None and batch_sampler is None and generator is None
        self._shuffles = bool(shuffle)
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if type(batch_sampler) is BatchSampler:
            sampler, self.batch_size, self.drop_last = _parts(batch_sampler)
        self._takes_lists = batch_size is None and issubclass(type(sampler), BatchSampler)  # of the data set itself
        self._by_batches = self._takes_lists
        if batch_sampler is not None and type(batch_sampler) is not BatchSampler:
            self._by_batches, self.batch_size = True, None
        elif batch_sampler is not None:
            pass
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, self.drop_last)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.collate_fn = self._collation(collate_fn)
        self.is_shared = is_shared
        self._ranks = Ranks(is_shared)
        self._number = next(_numbers)
        self._server: NodeServer | None = None
        self._reader: Reader | None = None
        self._signature: Any = None
        self._epoch = 0  # of the loop that comes next
        self._kept_run = 0  # the first of the server's epochs whose files are there
        self._version = 0  # the epoch of the server since which the data set is as it is
        self._replaced: collections.deque[tuple[int, int]] = collections.deque()  # versions, and when they were
        self._sum: Any = None
        self._modules: dict[str, Any] = {}  # of the program, when the server began
        self._base = 0  # rows, or batches of a batch_sampler, that all ranks had before this loop
        self._steps = 0  # batches that this loop has given
        self._is_begun = False  # a loop is in the midst of an epoch
        self._draws: dict[str, Any] | None = None  # from which the sampler made this epoch's order
        self._drawn_to: dict[str, Any] | None = None  # where that has left its generators
        self._has_failed = False  # in this epoch
        self._resumed: dict[str, Any] | None = None
        self._order_now: Any = ()
        self._digest_now: str | None = None
        self._count = 0  # batches that this loop will give
        self._is_asked_again = False  # by set_epoch(), for the epoch that the loop is in
        self._is_closed = False
        self._owner = os.getpid()

    # A copy, a pickled one and a forked process's have the options and the place that was loaded, and a server of
    # their own.

    def __getstate__(self) -> dict[str, Any]:
        fresh: dict[str, Any] = {"_ranks": None, "_server": None, "_reader": None, "_order_now": (), "_digest_now": None}
        begin = {"_is_begun": False, "_base": 0, "_steps": 0, "_count": 0, "_modules": {}}
        return {**self.__dict__, **fresh, **begin}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "_number": next(_numbers), "_ranks": Ranks(state["is_shared"])})

    @property
    def end_of_dataloader(self) -> bool:
        """Whether the batch that the loop got last is the epoch's last."""
        return self._is_begun and self._steps == self._count

    @property
    def remainder(self) -> int:
        """-1: some rows come twice, to make ranks even, and which are the last is not for accelerate to tell."""
        count = len(self._order_now)
        return -1 if self._even_count(count) > count else 0

    def _check(self, shuffle: bool, sampler: Any, batch_sampler: Any) -> None:
        """Refuse as torch does, in its words, and where this cannot follow."""
        length = getattr(type(self._dataset), "__len__", None)
        self._refuse(
            (
                (sampler is not None and shuffle, "sampler option is mutually exclusive with shuffle"),
                (batch_sampler is not None
                 and (self.batch_size != 1 or shuffle or sampler is not None or self.drop_last),
                 "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"),
                (sampler is None and batch_sampler is None and length is None,
                 f"{type(self._dataset).__name__} has no __len__, which a loader without sampler needs"),
            )
        )  # fmt: skip

    def _collation(self, collate_fn: Any) -> Any:
        self._is_single = self.batch_size is None and (self._takes_lists or not self._by_batches)
        function, self._has_own_collation = collation(collate_fn, self._is_single)
        return function

    # Orders.

    def _order(self) -> Any:
        """The order of an epoch for all ranks together: an array of indices, or a list of batches."""
        if self._is_own_order:
            count = len(self._dataset)
            if not self._shuffles:
                return np.arange(count, dtype=np.int64)
            key = hashlib.blake2b(f"{self._seed} {self._epoch}".encode(), digest_size=16).digest()
            generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
            return generator.permutation(count)
        sampler = self._of_all(self._asked())
        limit = self._longest(sampler)
        if self._by_batches:
            order = [_indices(batch, limit) for batch in itertools.islice(sampler, limit)]
        else:
            order = _indices(sampler, limit)
        if len(order) == limit:
            raise ArgumentError(
                f"the sampler has not ended after {limit} indices, and a loop needs all of an epoch to begin: give "
                "the sampler an end, as by itertools.islice in its __iter__"
            )
        return order

    def _longest(self, sampler: Any) -> int:
        """The number of indices, or batches, after which a sampler is taken for one without end."""
        sized = [each for each in (self._dataset, sampler) if hasattr(type(each), "__len__")]
        return (_MANY_BATCHES if self._by_batches else _MANY) + 16 * max(map(len, sized), default=0)

    def _asked(self) -> Any:
        """The sampler that gives the units of an epoch."""
        return self.batch_sampler if self._by_batches and not self._takes_lists else self.sampler

    def _of_all(self, sampler: Any) -> Any:
        """The sampler as one rank alone would have it."""
        if isinstance(sampler, DistributedSampler):
            if sampler.num_replicas != self._ranks.world:
                raise ArgumentError(
                    f"the DistributedSampler has {sampler.num_replicas} replicas, and the job's ranks, as "
                    f"torch.distributed or WORLD_SIZE tells them, are {self._ranks.world}"
                )
            alone: Any = copy.copy(sampler)
            alone.num_replicas, alone.rank = 1, 0
            alone.num_samples = alone.total_size = len(sampler.dataset)  # type: ignore[arg-type]
            return alone
        inner = getattr(sampler, "sampler", None)
        if isinstance(inner, DistributedSampler):
            alone = copy.copy(sampler)
            alone.sampler = self._of_all(inner)
            return alone
        return sampler

    def _distribute(self) -> None:
        """Let the ranks have what torch's DistributedSampler would give them, in order."""
        sampler = self.__dict__["sampler"]
        if self._by_batches or isinstance(sampler, DistributedSampler):
            return
        shuffles = not isinstance(sampler, SequentialSampler)
        sampler = DistributedSampler(self._dataset, self._ranks.world, self._ranks.rank, shuffles)
        batches = None if self.batch_size is None else BatchSampler(sampler, self.batch_size, self.drop_last)
        self.__dict__.update(sampler=sampler, batch_sampler=batches, _is_own_order=False)

    def _drops_uneven(self) -> bool:
        return isinstance(self.sampler, DistributedSampler) and self.sampler.drop_last

    def _even_count(self, count: int) -> int:
        """The number of rows, or batches, for all ranks, as DistributedSampler has it."""
        world = self._ranks.world
        if self._drops_uneven() and count % world:
            return max(0, math.ceil((count - world) / world)) * world
        return math.ceil(count / world) * world

    def _step_count(self, count: int) -> int:
        share = self._even_count(count) // self._ranks.world
        if self._by_batches or self.batch_size is None:
            return share
        whole, rest = divmod(share, int(self.batch_size))
        return whole + (rest > 0 and not self.drop_last)

    def __len__(self) -> int:
        """The batches of an epoch for this rank. TypeError if the sampler has no length."""
        self._find_ranks()
        return self._step_count(len(self._of_all(self._asked())))

    def _of_node(self, order: Any) -> loading.Order:
        """The batches of this node's ranks, from where this loop begins."""
        count, ranks = len(order), self._ranks
        steps = self._step_count(count - self._base)
        first = np.arange(steps, dtype=np.int64)[:, None] * ranks.world
        local = np.asarray(ranks.node.ranks)
        assert self._seed is not None
        if self._by_batches:
            units = (self._base + first + local).reshape(-1) % count
            batches = [order[unit] for unit in units.tolist()]
            ends = np.cumsum([len(batch) for batch in batches])
            indices = np.concatenate(batches)
            return loading.Order(
                self._seed, self._epoch, count * _ROUND, units * _ROUND, ends, indices, self._version
            )
        size = self.batch_size or 1
        places = (first * size + local)[:, :, None] + np.arange(size) * ranks.world
        is_there = places < self._even_count(count - self._base)  # the last step may have fewer rows
        places += self._base
        ends = np.cumsum(is_there.sum(-1))
        positions = places[:, :, 0].reshape(-1)
        return loading.Order(
            self._seed, self._epoch, count, positions, ends, order[places[is_there] % count], self._version
        )

    def _write_order(self, order: Any, run: int) -> None:
        assert self._server is not None
        folder = self._server.folder
        if self._ranks.node.local_world > 1:
            loading.save(os.path.join(folder, f"drawn-{run}"), (_digest(order), self._draws))
        if run > 0:
            self._save_changed(folder, run)
        loading.write_order(folder, run, self._of_node(order))
        while self._kept_run < self._server.first_run():
            loading.remove_order(folder, self._kept_run)
            self._kept_run += 1
        while self._replaced and self._replaced[0][0] <= self._kept_run:
            os.unlink(os.path.join(folder, f"objects-{self._replaced.popleft()[1]}"))

    def _objects(self) -> tuple[Any, Any, Any]:
        return self._dataset, self.collate_fn, self.worker_init_fn

    def _save_changed(self, folder: str, run: int) -> None:
        """The data set and its functions, where the program has changed them since the epoch before: torch's
        workers see that, unless they persist."""
        if self.persistent_workers or loading.sum_of(self._objects()) in (None, self._sum):
            return
        self._replaced.append((run, self._version))
        self._sum = loading.save(os.path.join(folder, f"objects-{run}"), self._objects())
        self._version = run

    # Loops.

    def __iter__(self) -> Iterator[Any]:
        self._check_open()
        self._loop += 1
        return self._batches_of_loop(self._loop)

    def _check_open(self) -> None:
        self._own()
        if self._is_closed:
            raise MisuseError("the loader is closed, or has failed among several ranks: make another")

    def _find_ranks(self) -> None:
        """Lightning begins torch.distributed, and the other ranks, after the program has made its loaders."""
        ranks = Ranks(self.is_shared)
        if self._is_begun or ranks.are(self._ranks):
            return
        if self._reader is not None:
            self._reader.close()
        if self._server is not None:
            self._server.stop()
        self._reader = self._server = None
        self._ranks = ranks

    def _begin(self) -> int:
        """Begin the next epoch. Returns its steps."""
        if self._is_begun:
            self._leave()
        self._find_ranks()
        self._base, self._steps = 0, 0
        self._take_seed(self._drawn_seed())  # samplers draw next
        order = self._resume() if self._resumed is not None else self._drawn_order()
        self._drawn_to = _generators_of(self._samplers())
        steps = self._step_count(len(order) - self._base)
        if steps > 0:
            self._serve(order)
        self._is_begun = True
        self._order_now, self._digest_now, self._count = order, None, steps
        return steps

    def _take_seed(self, drawn: int | None) -> None:
        """Where none was given: drawn, as torch draws it, and among several ranks, whose generators nobody has
        compared, the loader's number."""
        if self._seed is None and drawn is not None:
            self._seed = self._number if self._ranks.world > 1 else drawn

    def _drawn_order(self) -> Any:
        self._draws = None if self._is_own_order else _draws_of(self._samplers())
        return self._order()

    def _samplers(self) -> list[Any]:
        found = (self.batch_sampler, self.sampler, getattr(self.batch_sampler, "sampler", None))
        return [sampler for n, sampler in enumerate(found) if sampler is not None and sampler not in found[:n]]

    def _resume(self) -> Any:
        state, self._resumed = self._resumed, None
        assert state is not None
        self._epoch, self._base, self._draws = state["epoch"], state["taken"], state["draws"]
        if self._draws is None:
            order = self._order()
        else:
            with _drawing(self._samplers(), self._draws):
                order = self._order()
        if len(order) != state["count"]:
            unit = "batches" if self._by_batches else "rows"
            raise PlaceError(f"the place is of an epoch of {state['count']} {unit}, and this one has {len(order)}")
        if _digest(order) != state["order"]:
            raise PlaceError("the sampler gives another order than the one that the place is of: seed it")
        return order

    def _batches_of_loop(self, loop: int) -> Iterator[Any]:
        self._check_loop(loop)
        state = gradient_state()
        passes_over = self._is_loaded and (self._by_trainer or state is not None)
        self._is_loaded = False
        steps = self._begin()
        if passes_over and steps == 0:
            self._is_begun = False
            self._epoch += 1
            steps = self._begin()
        with active(state, self):
            yield from self._batches_of_epoch(loop, steps)

    def _batches_of_epoch(self, loop: int, steps: int) -> Iterator[Any]:
        batches = iter(self._reader) if self._reader is not None and steps > 0 else iter(())
        while self._steps < steps:
            self._check_loop(loop)
            try:
                batch = self._next(batches)
            except BaseException as error:
                self._has_failed = isinstance(error, DataError)
                self._drop()
                raise
            if batch is None:
                raise ServerGone(f"the epoch ended after {self._steps} of {steps} batches")
            assert self._server is not None
            self._server.run = batch.epoch
            made = self._made(batch)
            del batch
            self._steps += 1
            self._server.had(self._steps)
            if self._noted is not None:
                self._noted.append(self.place)
            yield made
        self._is_begun = self._is_asked_again = False
        self._epoch += 1
        self._base = self._steps = 0
        self._next(batches)  # the epoch's end
        if self._server is not None:
            self._server.ended()

    def _drop(self) -> None:
        """A batch failed, after which the stream has ended, or stands nobody knows where. The next loop begins
        with a server of its own."""
        if self._reader is not None:
            self._reader.close()
        if self._ranks.node.local_world > 1:
            self._is_closed = True
            if self._ranks.node.local > 0 and self._server is not None:
                self._server.stop()
            return  # the other ranks read still
        if self._server is not None:
            self._server.stop()
        self._reader = self._server = None

    def _next(self, batches: Iterator[Any]) -> Any:
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return next(batches, None)
            except Timeout:  # a batch may take long, or another rank
                if 0 < self.timeout and deadline < time.monotonic():
                    raise
            except DataError as error:
                error.args = (_of_program(str(error)),)
                raise
            except ServerGone as gone:
                tell_of_loader(gone, self._ranks.node.local_world == 1)
                raise

    def _leave(self) -> None:
        """Go on to the next epoch in the midst of one. Items that were asked for are not made any more."""
        if self._draws is not None and any(self._draws["generators"]):
            self._draw_less(self._draws)
        self._is_begun = self._has_failed = False
        self._epoch += not self._is_asked_again
        self._is_asked_again = False
        if self._server is not None and self._server.run >= 0:
            self._server.cut(self._steps)

    def _draw_less(self, draws: dict[str, Any]) -> None:
        """Leave the samplers' generators as torch does: its loader asks for no more of an order than it reads ahead.
        Here they have drawn all of it, unless the program has drawn from them, too, since then."""
        if _generators_of(self._samplers()) != self._drawn_to:
            return
        ahead = self._steps + self._has_failed + (self.prefetch_factor or 2) * self.num_workers
        with _drawing(self._samplers(), draws):
            for _ in itertools.islice(self._of_all(self._asked()), self._base + ahead * self._step_units()):
                pass

    # The server.

    def _serve(self, order: Any) -> None:
        is_alone = self._ranks.node.local_world == 1
        if is_alone and not self.persistent_workers and loading.were_reloaded(self._modules):
            self._drop()
        if self._server is not None:
            if self._ranks.node.local == 0:
                self._write_order(order, self._server.run + 1)
            return
        try:
            self._begin_to_serve(order)
        except BaseException:
            self._server = None  # the next loop tries it again
            raise

    def _begin_to_serve(self, order: Any) -> None:
        ranks, self._modules = self._ranks, loading.modules()
        first = (order[0] if self._by_batches else order[: 1 if self._is_single else self.batch_size]).tolist()
        if ranks.node.local > 0:
            self._signature = self._learn(first)
            self._server = NodeServer(ranks, self._number)  # waits for it
        else:
            self._server = NodeServer(ranks, self._number)
            self._kept_run = self._version = 0
            self._replaced.clear()
            self._sum = loading.save(os.path.join(self._server.folder, "objects-0"), self._objects())
            self._signature = self._learn(first)
            self._write_order(order, 0)
            self._server.start(self._text(), self._facts())
        self._reader = self._server.open(ranks.node.local)

    def _learn(self, indices: list[int]) -> Any:
        """The signature of a batch, by making one. The program's random numbers stay as they are."""
        if not self._has_own_collation and not self._takes_lists:
            indices = indices[:1]
        with _drawing([], _draws_of([])):
            items = self._items(indices)
        if self._ranks.node.local == 0:
            self._warn_of_own_draws(indices if self._takes_lists else indices[:1], items[0])
        with _drawing([], _draws_of([])):
            made = self.collate_fn(items[0] if self._is_single else items)
        try:
            return loading.flatten(made)[0]
        except loading.Unfit:
            return None

    def _items(self, indices: list[int]) -> Any:
        if self._takes_lists:
            return [self._dataset[indices]]
        if not self._is_single and getattr(self._dataset, "__getitems__", None):
            return self._dataset.__getitems__(indices)
        return [self._dataset[index] for index in indices]

    def _warn_of_own_draws(self, indices: list[int], item: Any) -> None:
        """If the item is another one when it is made again, of the same seeds."""
        try:
            with _drawing([], _draws_of([])):
                again = self._items(indices)[0]
            found = [loading.flatten(loading.convert(each)) for each in (item, again)]
        except Exception:  # it cannot be compared
            return
        (signature, leaves), (other, others) = found
        if signature != other or any(map(_differ, leaves, others)):
            warnings.warn(
                "tundish: an item that is made twice, of the same seeds, differs: it draws from a generator of its "
                "own, and will draw other numbers after a resume and with other num_workers. Seed that in "
                "__getitem__, as by albumentations' transform.set_random_seed(random.getrandbits(32))",
                RuntimeWarning,
                stacklevel=2,
            )

    def _facts(self) -> dict[str, Any]:
        return {
            "signature": self._signature,
            "seed": self._seed,
            "stride": 1 if self._by_batches else self._ranks.world,
            "is_single": self._is_single,
            "takes_lists": self._takes_lists,
            "workers": self.num_workers,
        }

    def _text(self) -> str:
        assert self._server is not None
        python: dict[str, Any] = {
            "call": "tundish.loading:Batches",
            "arguments": {"folder": self._server.folder},
            "output": loading.columns(self._signature),
            "rows": "batch",
            "timeout": f"{math.ceil(self.timeout * 1000) or _FOREVER_S * 1000}ms",
        }
        if self._start_method() == "forkserver":
            python["warm"] = "fork"
        if self.num_workers > 0:
            python["workers"] = min(self.num_workers, 256)
        slots = (self.prefetch_factor or 2) * max(self.num_workers, 1)
        stream = {
            "dataset": [{"numbers": "order-{epoch}.npy"}, {"batch": 1}, {"python": python}],
            "distribute": {"replicas": self._ranks.node.local_world, "from_function": True},
            "deliver": {"slots": max(3, min(slots, 64))},
        }
        return json.dumps({"streams": {"train": stream}})

    def _made(self, batch: Any) -> Any:
        other = batch[loading.OTHER]
        if len(other):
            import pickle

            return self._pinned(pickle.loads(bytes(other)))
        shapes = iter(batch[loading.SHAPES].tolist())
        leaves = (_leaf(lent(batch, str(number)), shapes) for number in itertools.count())
        return self._pinned(loading.nest(self._signature, leaves))

    # Places.

    def set_epoch(self, epoch: int) -> None:
        """The number of the epoch that the next loop begins, by which it is shuffled. It is passed on to the
        sampler. Without it each loop begins the next one."""
        self._own()
        if self._is_begun and epoch != self._epoch:
            self._leave()
        self._is_asked_again = self._is_begun
        if self._resumed is not None and self._resumed["epoch"] != epoch:
            self._pass_over_rest()
        self._epoch = epoch
        for sampler in self._samplers():
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that the loop got, for any number of ranks: plain numbers and texts,
        and what the sampler drew from."""
        if self._resumed is not None:
            return dict(self._resumed)
        if self._seed is None:
            generator = self.generator or torch.default_generator
            self._take_seed(drawn_seed(torch.Generator().set_state(generator.get_state())))
        begin = {"version": 1, "seed": self._seed, "epoch": self._epoch}
        if not self._is_begun:
            return {**begin, "taken": 0, "count": None, "order": None, "draws": _generators_of(self._samplers())}
        count = len(self._order_now)
        digest, draws = self._drawn()
        taken = min(self._base + self._steps * self._step_units(), count)
        return {**begin, "taken": taken, "count": count, "order": digest, "draws": draws}

    def _drawn(self) -> tuple[str, dict[str, Any] | None]:
        """The digest of this epoch's order, and what it was drawn from. Local rank 0 has drawn for all of the
        node: what the others drew may be another order."""
        if self._ranks.node.local == 0 or self._server is None or self._steps == 0:
            if self._digest_now is None:
                self._digest_now = _digest(self._order_now)
            return self._digest_now, self._draws
        found: tuple[str, dict[str, Any] | None] = loading.load(
            os.path.join(self._server.folder, f"drawn-{self._server.run}")
        )
        return found

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at a place that state_dict() gave, on this number of ranks or another, in the next loop. Raises
        PlaceError if it is none, and, in the loop, if the data set or the sampler is another."""
        if not isinstance(state, dict) or state.get("version") != 1 or "taken" not in state:
            raise PlaceError("the state is not one that state_dict() of a DataLoader of a data set returned")
        self._own()
        if self._is_begun:
            self._leave()
        self._note_load(sys._getframe(1))
        self._epoch, self._seed = state["epoch"], state.get("seed", self._seed or 0)
        self._has_seeded = state["epoch"] > 0 or state["count"] is not None
        self._resumed = None if state["count"] is None else dict(state)
        if self._resumed is None and state["draws"] is not None:
            _set_generators(self._samplers(), state["draws"])

    def _pass_over_rest(self) -> None:
        state, self._resumed = self._resumed, None
        if state is None:
            return
        if state["draws"] is not None and any(state["draws"]["generators"]):  # they have drawn this epoch's order
            with _drawing(self._samplers(), state["draws"]):
                self._order()
        self._epoch += 1

    def _step_units(self) -> int:
        """The indices, or batches, that a step of all ranks takes."""
        return self._ranks.world * (1 if self._by_batches else self.batch_size or 1)

    def close(self) -> None:
        """End the server, or leave it. A second call does nothing."""
        self._own()
        self._is_closed = True
        if self._reader is not None:
            self._reader.close()
        if self._server is not None:
            self._server.stop()


def _parts(sampler: BatchSampler) -> tuple[Any, int, bool]:
    return sampler.sampler, sampler.batch_size, sampler.drop_last


def _leaf(column: Any, shapes: Iterator[int]) -> Any:
    if isinstance(column, Strings):
        return [bytes(text) for text in column]
    shape = [next(shapes) for _ in range(next(shapes))]
    tensor = convert(column)
    return tensor if len(shape) == 1 else tensor.reshape(shape)


def _indices(indices: Any, limit: int) -> Any:
    try:
        return np.fromiter(map(operator.index, itertools.islice(indices, limit)), np.int64)
    except (TypeError, OverflowError) as error:
        raise ArgumentError(f"the sampler gives what is no index: {error}: indices are integers") from None


def _of_program(sentence: str) -> str:
    """Without the pipeline, which the program has not written."""
    sentence = re.sub(r" \(python, line \d+ of \S+\)", "", sentence)
    return sentence.replace("tundish.loading:Batches: ", "").replace("program tundish.loading:Batches", "an interpreter")


def _differ(leaf: Any, other: Any) -> bool:
    return bool(leaf != other if isinstance(leaf, list) else leaf.tobytes() != other.tobytes())


def _digest(order: Any) -> str:
    """The digest of an epoch's order."""
    found = hashlib.blake2b(digest_size=8)
    for part in [order] if isinstance(order, np.ndarray) else order:
        found.update(part.tobytes())
        found.update(b"/")
    return found.hexdigest()


# Samplers draw from generators of their own, or from the program's.


def _text(tensor: torch.Tensor) -> str:
    return base64.b64encode(tensor.numpy().tobytes()).decode()


def _tensor(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)


def _draws_of(samplers: Sequence[Any]) -> dict[str, Any]:
    drawn: Any = np.random.get_state(legacy=True)
    kind, key, position, has_gauss, cached = drawn
    return {
        "torch": _text(torch.get_rng_state()),
        "random": json.dumps(random.getstate()),
        "numpy": [kind, base64.b64encode(key.tobytes()).decode(), position, has_gauss, cached],
        **_generators_of(samplers),
        "epochs": [getattr(sampler, "epoch", None) for sampler in samplers],
    }


def _generators_of(samplers: Sequence[Any]) -> dict[str, Any]:
    """Between two epochs, what the next order will be drawn from, as far as it is not the program's."""
    return {"generators": [_text(g.get_state()) if g is not None else None for g in map(_generator, samplers)]}


def _set_generators(samplers: Sequence[Any], draws: dict[str, Any]) -> None:
    for sampler, state in zip(samplers, draws["generators"], strict=False):
        if state is not None and _generator(sampler) is not None:
            sampler.generator.set_state(_tensor(state))


def _generator(sampler: Any) -> Any:
    found = getattr(sampler, "generator", None)
    return found if isinstance(found, torch.Generator) else None


def _set_program(draws: dict[str, Any]) -> None:
    torch.set_rng_state(_tensor(draws["torch"]))
    version, words, gauss = json.loads(draws["random"])
    random.setstate((version, tuple(words), gauss))
    kind, key, *rest = draws["numpy"]
    np.random.set_state((kind, np.frombuffer(base64.b64decode(key), np.uint32), *rest))


@contextlib.contextmanager
def _drawing(samplers: Sequence[Any], draws: dict[str, Any]) -> Iterator[None]:
    """Draw again as then. The program's own generators are afterwards as they were before."""
    before = _draws_of([])
    try:
        _set_program(draws)
        _set_generators(samplers, draws)
        for sampler, epoch in zip(samplers, draws["epochs"], strict=False):
            if epoch is not None:
                sampler.epoch = epoch
        yield
    finally:
        _set_program(before)
