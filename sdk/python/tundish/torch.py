"""Batches as torch tensors.

    from tundish.torch import DataLoader

    for x, y in DataLoader("train", columns=("x", "label")):
        ...

torch has no read-only tensors, and a write to a batch's memory ends the process (SIGSEGV). So tensors
are copies unless `zero_copy=True` is asked for: one copy, which frees the batch's slot at once.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import dlpack

import tundish

from .columns import Ragged, Sparse, Strings, lender, lent, require

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
    # What may be written to is a batch's no more, as after widening.
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
    return _copied(numbers) if array is None else dlpack.from_dlpack(array.__dlpack__())


def _assembled(column: Any, tensor_of: Callable[[Any], torch.Tensor]) -> Any:
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
    if len(splits) == 1 and hasattr(torch.nested, "nested_tensor_from_jagged"):
        return torch.nested.nested_tensor_from_jagged(values, splits[0])
    return Ragged(values, splits)


# Those with a reader that they opened.
_opened: weakref.WeakSet[DataLoader] = weakref.WeakSet()
_REPLICA = ("server", "stream", "session", "group", "replica")


class DataLoader:
    """The batches of a reader as tensors: an iterable that takes torch.utils.data.DataLoader's place.

    source: a stream's name, which is opened with `open_options` (those of tundish.open), or a Reader
        of format "numpy". None: the stream that the environment names.
    columns: names. A batch is then a tuple of these columns; without it a dict of all.
    collate: called with the dict of the columns (of those in `columns`, or of all); what it returns is
        what the loop gets.
    pin_memory: copy into page-locked memory, from which copies to a GPU run beside other work. It is
        ignored without CUDA, as in torch.
    zero_copy: tensors of the batch's own memory, which is read-only: an operation in place, and
        `out=`, ends the process (SIGSEGV). A tensor keeps its batch's slot until it is gone.
    device: "cuda" or "cuda:N", an option of tundish.open: tensors are there when the stream that is
        current then comes to their use. They are the batch's own memory on the device, which may be
        written to, and keep it until they are gone.

    Each `for` is one epoch; beginning anew in the midst of one passes over the rest of it. `len()` is
    the number of steps of an epoch where the pipeline tells it, else TypeError. Strings stay Strings.

    state_dict() and load_state_dict() are torchdata's Stateful: the place after the last batch that
    the loop got, small and made at once. Loading takes effect at the next `for`.

    Each trainer reads its own replica, so nothing may cut the rows again: accelerate's prepare() returns
    this loader unchanged, and Lightning and others add no sampler. There are no worker processes.

    `reader` is the Reader; the one of a stream's name is opened at its first use, by a loop, len() or
    state_dict(), and closed by close(), at the end of a `with`, or with the loader. It is closed, too, when
    another loader of this program opens the same replica, as one that is made anew for each epoch does,
    unless a loop over it is in the midst of an epoch. Its errors are those of tundish. ArgumentError: an option that is not for this, or one
    of torch's that Tundish has elsewhere.
    """

    _is_accelerate_prepared = True  # accelerate asks for this before it shards a loader

    def __init__(
        self,
        source: tundish.Reader | str | None = None,
        *,
        columns: Sequence[str] | None = None,
        collate: Callable[[dict[str, Any]], Any] | None = None,
        pin_memory: bool = False,
        zero_copy: bool = False,
        **open_options: Any,
    ) -> None:
        for name in open_options:
            if name in _ELSEWHERE:
                raise tundish.ArgumentError(f"this DataLoader has no {name}: {_ELSEWHERE[name]}")
        if zero_copy and pin_memory:
            raise tundish.ArgumentError("zero_copy shares the memory that pin_memory copies: take one")
        self._options = {"stream": source, **open_options}
        self._reader: tundish.Reader | None = None
        self._opens = not isinstance(source, tundish.Reader)
        self._is_closed = False
        self._count = 0  # batches of the epoch that a loop is in; 0: none is
        if isinstance(source, tundish.Reader):
            if open_options:
                names = ", ".join(open_options)
                raise tundish.ArgumentError(f"the reader is open already: {names} came too late")
            require(source, columns or (), on_devices=True)
            self._reader = source
        self._columns = None if columns is None else tuple(columns)
        self._collate = collate
        self._tensor_of: Callable[[Any], torch.Tensor] = _shared if zero_copy else _copied
        device = source.device if isinstance(source, tundish.Reader) else open_options.get("device")
        if device not in (None, "cpu") and (pin_memory or zero_copy):
            option = "pin_memory" if pin_memory else "zero_copy"
            sentence = f"{option} is for batches in the CPU's memory: leave it out with device="
            raise tundish.ArgumentError(sentence)
        if pin_memory and torch.cuda.is_available():
            self._tensor_of = _pinned

    @property
    def reader(self) -> tundish.Reader:
        """The Reader, which is opened when it is first needed."""
        if self._is_closed:
            raise tundish.MisuseError("the loader is closed: make another")
        if self._reader is None:
            self._take_over()
            reader = tundish.open(**self._options)
            require(reader, self._columns or (), on_devices=True)
            self._reader = reader
            _opened.add(self)
        return self._reader

    def _take_over(self) -> None:
        """Close the reader of an earlier loader of this replica, which its owner may hold still."""
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
            return False
        try:
            return self._count < len(self._reader)
        except (TypeError, tundish.MisuseError):  # no length is known; another thread reads
            return True

    def _ended(self) -> Iterator[Any]:
        self._count = 0
        yield from ()

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.reader)
        self._count = 0
        return itertools.chain(map(self._made, batches), self._ended())

    def __len__(self) -> int:
        return len(self.reader)

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that was returned: {"version": 1, "place": str}."""
        state: dict[str, Any] = self.reader.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at a place that state_dict() gave, from the next `for` on.

        With several replicas call it before anything that opens the reader: while another replica reads
        from the start, the server refuses a place (PlaceError).
        """
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
        self._count += 1
        names = batch if self._columns is None else self._columns
        made = {name: _assembled(lent(batch, name), self._tensor_of) for name in names}
        if self._collate is not None:
            return self._collate(made)
        return made if self._columns is None else tuple(made.values())
