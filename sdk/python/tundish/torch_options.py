"""The parts that loaders of data sets have in common: torch's options, in torch's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from . import loading
from .errors import ArgumentError

__all__ = ["Loader", "collation", "drawn_seed"]


class Loader:
    """Options that are the same for data sets of each kind, and `with`."""

    batch_size: Any
    drop_last: Any
    num_workers: Any
    prefetch_factor: Any
    persistent_workers: Any
    pin_memory: Any
    pin_memory_device: Any
    timeout: Any
    multiprocessing_context: Any

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


def collation(collate_fn: Callable[..., Any] | None, is_single: bool) -> tuple[Callable[..., Any], bool]:
    """The function that workers call, and whether it is the program's own."""
    from torch.utils.data import default_collate, default_convert

    if collate_fn not in (None, default_convert if is_single else default_collate):
        assert collate_fn is not None
        return collate_fn, True
    return loading.convert if is_single else loading.collate, False


def drawn_seed(generator: torch.Generator | None) -> int:
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
