"""The fused stages of tf.data.experimental, which are others one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .graph import Unsupported, caller
from .trace import UnsupportedError

__all__ = ["map_and_batch", "parallel_interleave", "shuffle_and_repeat"]


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Callable[[Any], Any]:
    """map, then batch."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Callable[[Any], Any]:
    """shuffle, then repeat."""
    return lambda dataset: dataset.shuffle(buffer_size, seed=seed).repeat(count)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool | None = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Callable[[Any], Any]:
    """interleave. In blocks it goes on in another way than interleave where a dataset ends within one."""
    if block_length != 1 and not sloppy:
        why, remedy = "its blocks are others where a dataset ends", "use interleave(..., cycle_length=n, block_length=m)"
        raise UnsupportedError([Unsupported(caller(), "parallel_interleave", why, remedy)])
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)
