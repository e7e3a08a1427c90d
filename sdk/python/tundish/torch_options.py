"""The parts that loaders of data sets have in common: torch's options, in torch's words, and the answers to libraries
of trainers."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from . import loading
from .errors import ArgumentError, MisuseError
from .torch import EachBatch, itself, takes_torchs_only

__all__ = ["Loader", "Option", "active", "collation", "drawn_seed"]

_SET_ONCE = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class Option:
    """One of torch's options, as the program gave it. To accelerate's skip_first_batches() it is that of a
    loader whose items are this one's batches (`dataset`)."""

    def __init__(self, of_batches: Any = None) -> None:
        self._of_batches = of_batches

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, loader: Any, owner: type | None = None) -> Any:
        return self._of_batches if _asks_to_skip(sys._getframe(1)) else loader.__dict__[self._name]

    def __set__(self, loader: Any, value: Any) -> None:
        loader.__dict__[self._name] = value


def _asks_to_skip(frame: Any) -> bool:
    return bool(frame.f_globals.get("__name__") == "accelerate.data_loader")


class Loader:
    """The parts that loaders have for data sets of each kind: options, `with`, places, and answers to libraries of
    trainers."""

    batch_size, drop_last, collate_fn = Option(), Option(False), Option(itself)
    num_workers, prefetch_factor, persistent_workers = Option(0), Option(), Option(False)
    pin_memory, pin_memory_device, timeout = Option(False), Option(""), Option(0)
    worker_init_fn, multiprocessing_context, generator = Option(), Option(), Option()

    # accelerate asks for this, as of a loader of a stream: its prepare() leaves this one as it is, and states hold
    # its place.
    _is_accelerate_prepared = True  # its ranks are dealt already
    use_stateful_dataloader = True

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        """Lightning, too, asks for torch's before it makes the loader again without its order, as overfit_batches
        wants it, of the options that vars() tells."""
        frame = sys._getframe(1)
        is_torchs = frame.f_code.co_name == "_get_dataloader_init_args_and_kwargs" or takes_torchs_only(frame)
        return torch.utils.data.DataLoader if is_torchs else type(self)

    _dataset: Any
    _is_loaded = False  # a place, and no loop has begun since
    _by_trainer = False  # who means the next epoch where nothing is left of the place's
    _noted: collections.deque[str] | None = None
    _skipped = 0
    _loop = 0
    _has_seeded = False  # the workers of a loop before
    _owner: int

    def _drawn_seed(self) -> int | None:
        """The seed that torch draws for the workers of a loop; None: they persist, and had theirs."""
        if self.persistent_workers and self._has_seeded:
            return None
        self._has_seeded = True
        return drawn_seed(self.generator)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SET_ONCE and "_owner" in self.__dict__:
            raise ArgumentError(f"{name} cannot be set after a DataLoader is made: make another")
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _owner=os.getpid())

    def _own(self) -> None:
        """In a fork of the program: let the loader be a copy, whose server is not the program's."""
        if self._owner != os.getpid():
            self.__setstate__(self.__getstate__())  # type: ignore[arg-type]

    def _check_loop(self, loop: int) -> None:
        if loop != self._loop:
            raise MisuseError("another loop over this loader has begun: of two at once make two loaders")

    @property
    def dataset(self) -> Any:
        return EachBatch(self) if _asks_to_skip(sys._getframe(1)) else self._dataset

    # Places.

    def state_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise NotImplementedError

    def _pass_over_rest(self) -> None:
        """Begin the next epoch, not that of the place that was loaded."""
        raise NotImplementedError

    def _note_load(self, caller: Any) -> None:
        """A place comes, which the frame `caller` loads."""
        self._loop += 1
        self._is_loaded = True
        name = caller.f_globals.get("__name__", "")
        self._by_trainer = name.endswith("utilities.combined_loader")  # Lightning's

    @property
    def place(self) -> str:
        return json.dumps(self.state_dict())

    # The callbacks for Lightning and transformers ask for it.

    def note_places(self) -> None:
        """From the next loop on take_noted() gives the place after each batch, in their order."""
        self._noted = collections.deque(maxlen=64)

    def take_noted(self) -> str | None:
        return self._noted.popleft() if self._noted else None

    def resume(self, place: str, *, is_over: bool = False, skipped: int = 0) -> None:
        """As a loader of a stream: go on at a place, or after its epoch, if the program has had what it wants of
        it. An epoch of which nothing is left is passed over. skipped: how many batches skip_first_batches() will
        leave out, which the place has behind it."""
        self._skipped = skipped
        self.load_state_dict(json.loads(place))
        self._by_trainer = True
        if is_over:
            self._pass_over_rest()

    def close(self) -> None: ...

    def __len__(self) -> int:
        raise NotImplementedError

    def steps(self) -> int | None:
        """len(), or None."""
        try:
            return len(self)
        except (TypeError, NotImplementedError):
            return None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _refuse(self, own: Iterable[tuple[bool, str]]) -> None:
        """Raise what is wrong in these options, and then in the loader's own."""
        name = self._start_method()
        for is_wrong, text in (
            (self.num_workers < 0, "num_workers option should be non-negative"),
            (self.timeout < 0, "timeout option should be non-negative"),
            (self.num_workers == 0 and self.prefetch_factor is not None,
             "prefetch_factor option could only be specified with num_workers > 0"),
            (self.persistent_workers and self.num_workers == 0,
             "persistent_workers option needs num_workers > 0"),
            *own,
            (self.batch_size is None and self.drop_last,
             "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"),
            (self.batch_size is not None and self.batch_size < 1, "batch_size should be a positive integer"),
            (name not in (None, "spawn", "forkserver"),
             f"multiprocessing_context {name!r}: interpreters are started by the server, which never forks the program"),
            (bool(self.pin_memory_device), "pin_memory_device: tensors are pinned for the current device"),
        ):  # fmt: skip
            if is_wrong:
                raise ArgumentError(text)

    def _start_method(self) -> str | None:
        context = self.multiprocessing_context
        name: str | None = context if context is None or isinstance(context, str) else context.get_start_method()
        return name

    def _pinned(self, made: Any) -> Any:
        if self.pin_memory and torch.cuda.is_available():
            from torch.utils.data._utils.pin_memory import pin_memory

            return pin_memory(made)  # type: ignore[no-untyped-call]
        return made


@contextlib.contextmanager
def active(state: Any, loader: Loader) -> Iterator[None]:
    """accelerate's state asks this loader while the program is in it."""
    if state is not None:
        state._remove_dataloader(loader)
        state._add_dataloader(loader)
    try:
        yield
    finally:
        if state is not None:
            state._remove_dataloader(loader)


def collation(collate_fn: Callable[..., Any] | None, is_single: bool) -> tuple[Callable[..., Any], bool]:
    """The function that workers call, and whether it is the program's own."""
    from torch.utils.data import default_collate, default_convert

    own = loading.convert if is_single else loading.collate
    if collate_fn not in (None, own, default_convert if is_single else default_collate):
        assert collate_fn is not None
        return collate_fn, True
    return own, False


def drawn_seed(generator: torch.Generator | None) -> int:
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
