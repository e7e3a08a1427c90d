"""Batches as torch tensors.

    from tundish.torch import DataLoader

    for x, y in DataLoader("train", columns=("x", "label")):
        ...

The same class takes a map-style data set and torch's own options, and makes its batches in a server's
interpreters:

    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4)

torch has no read-only tensors, and a write to a batch's memory ends the process (SIGSEGV). So tensors
are copies unless `zero_copy=True` is asked for: one copy, which frees the batch's slot at once.
"""

from __future__ import annotations

import collections
import itertools
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import dlpack

import tundish

from .columns import Ragged, Sparse, Strings, lender, lent, require
from .options import names_of, refuse_unknown
from .reader import is_file, require_source

__all__ = ["DataLoader", "convert"]

# Options of torch's DataLoader, and where Tundish has them instead.
_IN_THE_FILE = "its place is the pipeline file, as a stage of this stream"
_IN_THE_SERVER = "the server makes batches ahead in threads of its own (deliver.slots, --threads)"
_ELSEWHERE = {
    "batch_size": _IN_THE_FILE,
    "shuffle": _IN_THE_FILE,
    "drop_last": _IN_THE_FILE,
    "sampler": _IN_THE_FILE,
    "batch_sampler": _IN_THE_FILE,
    "generator": "seeds are in the pipeline file",
    "collate_fn": "collate= takes a function of the dict of columns",
    "num_workers": _IN_THE_SERVER,
    "prefetch_factor": _IN_THE_SERVER,
    "persistent_workers": _IN_THE_SERVER,
    "worker_init_fn": _IN_THE_SERVER,
    "multiprocessing_context": _IN_THE_SERVER,
    "in_order": "batches come in the order that the pipeline file sets",
    "dataset": "the pipeline file says what is read, and the source is a stream's name",
    "pin_memory_device": "device= has batches copied there",
    "snapshot_every_n_steps": "state_dict() is the place of the last step, and made when it is asked for",
}


def convert(column: Any) -> Any:
    """A column, or batch.array(name), as torch has it, in new memory that may be written to.

    dense: a tensor of the same shape and dtype.
    ragged: a nested tensor of layout jagged; with several ragged dimensions, or a torch that has no
        such layout, Ragged with tensors for values and row_splits.
    sparse: a tensor of layout COO.
    strings: Strings, or Ragged or Sparse of them, copied as well: torch has no strings.
    Raises TypeError for a dtype that this torch does not know (uint16, uint32, uint64 before 2.3).
    """
    return _assembled(column, _copied)


def _copied(numbers: Any) -> torch.Tensor:
    if isinstance(numbers, tundish.DeviceArray):
        return dlpack.from_dlpack(numbers)
    array = lender(numbers)
    if array is not None:
        # The memory of earlier tensors is taken again: see src/spare.h. The older kind of capsule, which
        # every torch takes: of a copy the newer one would tell nothing more.
        return dlpack.from_dlpack(array.__dlpack__(copy=True))
    if numbers.dtype.kind == "V":  # bfloat16, which torch does not take from numpy
        return _copied(numbers.view(np.int16)).view(torch.bfloat16)
    # An array that may be written to is a batch's no more, as after widening.
    return torch.from_numpy(numbers if numbers.flags.writeable else numbers.copy())


def _pinned(column: Any) -> torch.Tensor:
    numbers = np.asarray(column)
    if numbers.dtype.kind == "V":
        return _pinned(numbers.view(np.int16)).view(torch.bfloat16)
    dtype = torch.from_numpy(np.empty(0, numbers.dtype)).dtype
    tensor = torch.empty(numbers.shape, dtype=dtype, pin_memory=True)
    np.copyto(tensor.numpy(), numbers)
    return tensor


def _shared(numbers: Any) -> torch.Tensor:
    array = lender(numbers)
    # torch passes over the flag of the newer capsules that says read-only.
    return _copied(numbers) if array is None else dlpack.from_dlpack(array.__dlpack__(copy=False))


# Takes a capsule, without the work of torch's own function for other objects.
_taken: Callable[[Any], torch.Tensor] = getattr(torch._C, "_from_dlpack", dlpack.from_dlpack)


def _assembled(column: Any, tensor_of: Callable[[Any], torch.Tensor], is_split: bool = False) -> Any:
    strings = column if isinstance(column, Strings) else getattr(column, "values", None)
    if isinstance(strings, Strings):
        lent = tensor_of is _shared or isinstance(strings.bytes, tundish.DeviceArray)
        return column if lent else column.copy()
    if not isinstance(column, (Ragged, Sparse)):
        return tensor_of(column)
    values = tensor_of(column.values)
    if isinstance(column, Sparse):
        indices = tensor_of(column.indices).T
        return torch.sparse_coo_tensor(indices, values, column.shape, check_invariants=False)
    splits = tuple(tensor_of(splits) for splits in column.row_splits)
    if len(splits) == 1 and is_split:
        return values, splits[0]
    if len(splits) == 1 and hasattr(torch.nested, "nested_tensor_from_jagged"):
        return torch.nested.nested_tensor_from_jagged(values, splits[0])
    return Ragged(values, splits)


def itself(batch: Any) -> Any:
    return batch


def _is_data_set(source: Any) -> bool:
    """Whether it is one of torch's, and no stream."""
    if source is None or isinstance(source, str | tundish.Reader):
        return False
    if isinstance(source, torch.utils.data.IterableDataset):
        return True
    if not hasattr(type(source), "__getitem__"):
        if hasattr(type(source), "__iter__") and not type(source).__module__.startswith("tundish."):
            raise tundish.ArgumentError(
                f"{type(source).__name__} is iterable, and no torch.utils.data.IterableDataset: derive its class "
                "from that; a map-style data set has __getitem__"
            )
        return False
    return True


def _refuse_option(name: str) -> None:
    if name in _ELSEWHERE:
        raise tundish.ArgumentError(f"this DataLoader has no {name}: {_ELSEWHERE[name]}")
    own = names_of(DataLoader.__init__)[1:]  # without the source
    refuse_unknown("this DataLoader", [name], [*names_of(tundish.open)[1:], *own, *_ELSEWHERE])


# Those with a reader that they opened.
_opened: weakref.WeakSet[DataLoader] = weakref.WeakSet()
_REPLICA = ("server", "stream", "session", "group", "replica")


class DataLoader:
    """The batches of a reader as tensors: an iterable that takes torch.utils.data.DataLoader's place.

    source: a stream's name, which is opened with `open_options` (those of tundish.open), or a Reader
        of format "numpy". None: the stream that the environment names. A pipeline file ("photos.yaml"): a
        server of its own, which ends with the loader.
    columns: names. A batch is then a tuple of these columns; without it a dict of all.
    collate: called with the dict of the columns (of those in `columns`, or of all); what it returns is
        what the loop gets.
    pin_memory: copy into page-locked memory, from which copies to a GPU run beside other work. It is
        ignored without CUDA, as in torch.
    zero_copy: tensors of the batch's own memory, which is read-only: an operation in place, and
        `out=`, ends the process (SIGSEGV). A tensor keeps its batch's slot until it is gone.
    ragged: "nested" makes nested tensors of ragged columns; "splits" makes (values, offsets), as TorchRec's
        JaggedTensor wants them. With several ragged dimensions they are Ragged of tensors in both.
    length: what len() is where the pipeline does not tell the steps of an epoch; some libraries read ahead
        without it. Its answer counts more.
    device: "cuda" or "cuda:N", an option of tundish.open: tensors are there when the stream that is
        current then comes to their use. They are the batch's own memory on the device, which may be
        written to, and keep it until they are gone.

    Each `for` is one epoch; beginning again in the midst of one passes over the rest of it. `len()` is
    the number of steps of an epoch where the pipeline tells it, else TypeError. Strings stay Strings.

    state_dict() and load_state_dict() are torchdata's Stateful: the place after the last batch that
    the loop got, small and made at once. Loading takes effect at once, also in a loop that runs.

    Each trainer reads its own replica, so nothing may cut the rows again: accelerate's prepare() returns
    this loader unchanged, and Lightning and others add no sampler. There are no worker processes. The
    objects that prepare() was given are part of save_state() and load_state(), accumulate() steps at the
    epoch's end, and gather_for_metrics() drops nothing, since no row comes twice.

    With a map-style data set (`__getitem__` and `__len__`, or a sampler) for its source it takes the options
    of torch.utils.data.DataLoader, in their order, and batches are torch's, value for value: items, default
    collation, collate_fn, samplers, batch_sampler, drop_last, len(). A server of its own makes them; it ends
    with close(), and with this process.

    dataset, collate_fn, worker_init_fn: are sent to interpreters once, by name where they can be imported,
        else by value (cloudpickle). `__getitem__` must depend on its index alone; random, numpy.random and
        torch are seeded for each item, by its place in the epoch: what it draws depends on the seed, and on
        neither workers nor ranks. Batches that differ from the first one in their nest or dtypes come as well,
        more slowly.
    shuffle: in an order that the seed and the epoch's number decide; with generator= in torch's order.
    seed: of orders and of what items draw. None: torch's generator draws it when the loader is first used, so
        that a new loader has another, and torch.manual_seed() the same in each run; among several ranks
        it is the number of the loader in the program.
    sampler, batch_sampler: asked once for each epoch, at its beginning, for all its indices, which are integers. So
        they must end. With batch_size=None, a BatchSampler as sampler asks the data set for lists of indices.
    num_workers: interpreters of the node, for all its ranks; 0: one for each processor, of which torch's
        get_worker_info() knows none, and for which worker_init_fn is not called.
    prefetch_factor: batches made ahead for each of them.
    timeout: as in torch, and the longest that one batch may take to be made.
    persistent_workers: interpreters persist in any case. False: they see what the program has changed, between two
        epochs, in the data set and its functions, which are pickled at each epoch's beginning to find that out.
    in_order: batches come in order, whatever it says.
    multiprocessing_context: "forkserver": interpreters are forks of one that has the data set, and share its
        memory. "spawn", and None: each has its own. "fork" is refused.
    is_shared: ranks of a job (torch.distributed's, or RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE of the
        environment, when the loop begins) share a server on each node, and deal the rows as DistributedSampler does,
        which may be given and is not needed; batch_size is that of a rank. All ranks make the same loaders and run
        the same loops. False: this process has all rows.

    set_epoch() is DistributedSampler's. state_dict() holds the place after the last batch for any number of
    ranks, the seed, and what the sampler drew from; load_state_dict() takes effect in the next loop.

    With an IterableDataset it takes the same options, but for is_shared, and those that torch refuses. num_workers
    processes iterate over copies of it, which are pickled at each epoch's beginning, and their batches come in turn,
    as torch's; 0 is one process without get_worker_info(). Each rank has its own. Numbers drawn in a first
    epoch are torch's for num_workers > 0. state_dict() holds the batches of each worker, which a loader with the same
    num_workers and batch_size makes again and passes over; so do accelerate's states.

    `reader` is the Reader; the one of a stream's name is opened at its first use, by a loop, len() or
    state_dict(), and closed by close(), at the end of a `with`, or with the loader. It is closed, too, when
    another loader of this program opens the same replica, as one that is made again for each epoch does,
    unless a loop over it is in the midst of an epoch. Its errors are those of tundish. ArgumentError: an option that is not for this, or one
    of torch's that Tundish has elsewhere.
    """

    _is_accelerate_prepared = True  # accelerate asks for this before it shards a loader

    def __new__(cls, source: Any = None, *torchs: Any, **options: Any) -> Any:
        if "dataset" in options:
            source = options.pop("dataset")
        if not _is_data_set(source):
            return super().__new__(cls)
        kind: Any
        if isinstance(source, torch.utils.data.IterableDataset):
            from .torch_iterable import IterableLoader as kind
        else:
            from .torch_dataset import DatasetLoader as kind

        refuse_unknown("tundish.torch.DataLoader() of a data set", options, names_of(kind.__init__))
        return kind(source, *torchs, **options)

    def __init__(
        self,
        source: Any = None,
        *,
        columns: Sequence[str] | None = None,
        collate: Callable[[dict[str, Any]], Any] | None = None,
        pin_memory: bool = False,
        zero_copy: bool = False,
        ragged: str = "nested",
        length: int | None = None,
        **open_options: Any,
    ) -> None:
        for name in open_options:
            _refuse_option(name)
        require_source(source, "DataLoader", tundish.Reader)
        if ragged not in ("nested", "splits"):
            raise tundish.ArgumentError(f"ragged is 'nested' or 'splits', not {ragged!r}")
        if length is not None and length < 0:
            raise tundish.ArgumentError(f"length is the number of steps of an epoch, not {length}")
        if zero_copy and pin_memory:
            raise tundish.ArgumentError("zero_copy shares the memory that pin_memory copies: take one")
        self._options = {"stream": source, **open_options}
        self._reader: tundish.Reader | None = None
        self._opens = not isinstance(source, tundish.Reader)
        self._is_closed = False
        self._count = 0  # steps of the epoch that a loop is in; 0: none is
        self._was_loaded = False  # a place, and no loop has begun since
        self._ahead: tuple[str, bool] | None = None  # the place before the batch that is read ahead, and
        # whether there is none
        self._is_resumed = False  # by a callback
        self._skipped = 0
        self._is_noted = False
        self._noted: collections.deque[str] = collections.deque(maxlen=64)
        if isinstance(source, tundish.Reader):
            if open_options:
                names = ", ".join(open_options)
                raise tundish.ArgumentError(f"the reader is open already: {names} came too late")
            self._reader = source
        self._columns = None if columns is None else tuple(columns)
        self._collate = collate
        self._length = length
        self._is_split = ragged == "splits"
        self._tensor_of: Callable[[Any], torch.Tensor] = _shared if zero_copy else _copied
        device = source.device if isinstance(source, tundish.Reader) else open_options.get("device")
        if device not in (None, "cpu") and (pin_memory or zero_copy):
            option = "pin_memory" if pin_memory else "zero_copy"
            sentence = f"{option} is for batches in the CPU's memory: leave it out with device="
            raise tundish.ArgumentError(sentence)
        if pin_memory and torch.cuda.is_available():
            self._tensor_of = _pinned
        if self._reader is not None:
            self._sort_columns(self._reader)

    @property
    def reader(self) -> tundish.Reader:
        """The Reader, which is opened when it is first needed."""
        if self._is_closed:
            raise tundish.MisuseError("the loader is closed: make another")
        if self._reader is None:
            self._take_over()
            reader = tundish.open(**self._options)
            self._sort_columns(reader)
            self._options["place"] = None  # another reader of this loader begins where that one does
            self._reader = reader
            _opened.add(self)
        return self._reader

    def _take_over(self) -> None:
        """Close the reader of an earlier loader of this replica, which its owner may hold still."""
        if is_file(self._options["stream"]):
            return
        for other in list(_opened):
            if (
                other._reader is not None
                and not other._is_in_epoch()
                and all(other._options.get(name) == self._options.get(name) for name in _REPLICA)
            ):
                other._reader.close()
                other._reader = None
                _opened.discard(other)

    def _is_in_epoch(self) -> bool:
        if self._reader is None or self._reader.closed or self._count == 0:
            return False  # len() opens one
        try:
            return self._count < len(self)
        except (TypeError, tundish.MisuseError):  # no length is known; another thread reads
            return True

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.reader)
        self._count = 0
        self._ahead = None
        self._noted.clear()
        return _Epoch(self, batches)

    def _next(self, batches: Iterator[tundish.Batch]) -> list[Any] | None:
        """The loop's next batch, in a list that gives it up."""
        batch = next(batches, None)
        if batch is None:
            return None
        self._count = batch.step + 1
        made = [self._made(batch)]
        if self._is_noted:
            self._noted.append(self.reader.place)
        return made

    def steps(self) -> int | None:
        """len(), or None."""
        try:
            return len(self)
        except TypeError:
            return None

    def __len__(self) -> int:
        steps = self.reader.info.epoch_steps if self._length is not None else -1
        return len(self.reader) if self._length is None or steps >= 0 else self._length

    @property
    def place(self) -> str:
        place: str = self.state_dict()["place"]
        return place

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that was returned: {"version": 1, "place": str}."""
        state: dict[str, Any] = self.reader.state_dict()
        if self._ahead is not None and not self.reader._has_pending:
            state["place"] = self._ahead[0]
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at a place that state_dict() gave, in a new `for` and in one that runs.

        With several replicas call it before anything that opens the reader: while another replica reads
        from the start, the server refuses a place (PlaceError).
        """
        self._was_loaded = True
        if self._reader is not None:
            self._reader.load_state_dict(state)
        elif state.get("version") == 1 and "place" in state:
            self._options["place"] = state["place"]
        else:
            raise tundish.PlaceError("the state is not one that state_dict() returned")

    def close(self) -> None:
        """Leave the group, by closing the reader that this loader opened; one that it was given is the
        caller's. Tensors stay valid. A second call does nothing."""
        self._is_closed = True
        if self._opens and self._reader is not None:
            self._reader.close()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _made(self, batch: tundish.Batch) -> Any:
        if self._collate is None and self._columns is not None and self._columns == self._numbers:
            return tuple(map(_taken, batch._copies(self._numbers)))
        made = dict.fromkeys(self._names)
        if self._numbers:
            made.update(zip(self._numbers, map(_taken, batch._copies(self._numbers))))
        for name in self._others:
            made[name] = _assembled(lent(batch, name), self._tensor_of, self._is_split)
        if self._collate is not None:
            return self._collate(made)
        return made if self._columns is None else tuple(made.values())

    def _sort_columns(self, reader: tundish.Reader) -> None:
        """Columns of dense numbers are copied by one call for all."""
        require(reader, self._columns or (), on_devices=True)
        self._names = tuple(reader.spec) if self._columns is None else self._columns
        copied = reader.numbers if self._tensor_of is _copied else ()
        self._numbers = tuple(dict.fromkeys(name for name in self._names if name in copied))
        self._others = [name for name in self._names if name not in copied]

    # accelerate asks this. Its prepare() keeps what isinstance() calls torch's, to save it and to load it
    # with the rest of a state. To all others, who would put a sampler into it, this is not one.

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        return torch.utils.data.DataLoader if takes_torchs_only(sys._getframe(1)) else type(self)

    @property
    def dataset(self) -> torch.utils.data.IterableDataset[Any]:
        """The batches, for accelerate's skip_first_batches."""
        return EachBatch(self)

    @property
    def end_of_dataloader(self) -> bool:
        """Whether the batch that the loop got last is the epoch's last."""
        return self._count == self.steps() if self._ahead is None else self._ahead[1]

    use_stateful_dataloader = True  # save_state() and load_state() ask for the state
    remainder = 0  # no row comes twice to make batches even
    batch_size = None
    drop_last = False
    prefetch_factor = None
    sampler = None  # Ray's prepare_data_loader() asks for it
    collate_fn = staticmethod(itself)

    # The callbacks for Lightning and transformers ask for it.

    def note_places(self) -> None:
        """From the next loop on take_noted() gives the place after each batch, in their order."""
        self._is_noted = True

    def take_noted(self) -> str | None:
        return self._noted.popleft() if self._noted else None

    def resume(self, place: str, *, is_over: bool = False, skipped: int = 0) -> None:
        """Go on at a place, or after its epoch, if the program has had what it wants of it. An epoch of
        which nothing is left is passed over. skipped: how many batches skip_first_batches() will leave
        out, which the place has behind it."""
        self.load_state_dict({"version": 1, "place": place})
        self._is_resumed = True
        self._skipped = skipped
        if is_over:
            self.reader.restart()


class _Epoch:
    """One loop over a loader. After an error it goes on with the next batch, as a reader's does."""

    def __init__(self, loader: DataLoader, batches: Iterator[tundish.Batch]) -> None:
        self._loader = loader
        self._batches = batches
        self._state: Any = None
        self._has_begun = False
        self._passes_over = False
        self._looks_ahead = False
        self._after: list[Any] | None = None

    def __iter__(self) -> _Epoch:
        return self

    def _begin(self) -> None:
        loader, self._has_begun = self._loader, True
        self._state = gradient_state()
        if self._state is not None:  # accelerate asks it for the loader that the program is in
            self._state._remove_dataloader(loader)
            self._state._add_dataloader(loader)
            self._looks_ahead = self._state.num_steps > 1 and loader.steps() is None
        # If nothing is left of the epoch of a place that was loaded, they mean the next one.
        self._passes_over = loader._was_loaded and (loader._is_resumed or self._state is not None)
        loader._was_loaded = False

    def __next__(self) -> Any:
        loader = self._loader
        if not self._has_begun:
            self._begin()
        made = self._take()
        if made is None and self._passes_over:
            self._batches = iter(loader.reader)
            made = loader._next(self._batches)
        self._passes_over = False
        if made is None:
            self._end()
            raise StopIteration
        if self._looks_ahead:
            self._look_ahead(made)
        return made.pop()

    def _take(self) -> list[Any] | None:
        after, self._after = self._after, None
        is_good = after is not None and not self._loader.reader._has_pending  # no place was loaded
        return after if is_good else self._loader._next(self._batches)

    def _look_ahead(self, made: list[Any]) -> None:
        """Only reading tells whether a batch is the last: the place is meanwhile that before the next."""
        place = self._loader.reader.place
        self._after = made  # for the next call, if this fails
        self._after = self._loader._next(self._batches)
        self._loader._ahead = (place, self._after is None)

    def _end(self) -> None:
        self._loader._count = 0
        self._loader._ahead = None
        if self._state is not None:
            self._state._remove_dataloader(self._loader)


def takes_torchs_only(frame: Any) -> bool:
    """accelerate, and Fabric of Lightning, leave a loader as it is that they take for torch's."""
    asks = frame.f_globals.get("__name__")
    return asks in ("accelerate.accelerator", "lightning_fabric.fabric", "lightning.fabric.fabric")


class EachBatch(torch.utils.data.IterableDataset[Any]):
    """A loader's batches as items, of which accelerate's skip_first_batches() leaves some out."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        skips = sys._getframe(1).f_back
        asks = skips and skips.f_back
        if not loader._skipped and asks and asks.f_globals.get("__name__") == "transformers.trainer":
            warnings.warn(
                "tundish: transformers goes on with the rows of the loader's first epoch, whichever the checkpoint is "
                "of: give Trainer callbacks=[tundish.transformers.SavePlace()] in both runs",
                RuntimeWarning,
                stacklevel=3,
            )

    def __iter__(self) -> Iterator[Any]:
        skipped, self.loader._skipped = self.loader._skipped, 0
        return itertools.chain(itertools.repeat(None, skipped), iter(self.loader))


def gradient_state() -> Any:
    """accelerate's, if the program has an Accelerator."""
    module = sys.modules.get("accelerate.state")
    made = module is not None and module.GradientState._shared_state
    return module.GradientState() if module is not None and made else None
