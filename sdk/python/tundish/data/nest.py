"""Elements as tf.data has them: a component, or tuples and dictionaries of components."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["flatten", "paths", "transform"]


def flatten(nest: Any) -> list[Any]:
    """The leaves, in the order in which they stand."""
    return [leaf for _, leaf in paths(nest)]


def paths(nest: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each leaf with the keys and numbers that lead to it."""
    if isinstance(nest, Mapping):
        for key, item in nest.items():
            yield from paths(item, (*path, key))
    elif isinstance(nest, tuple):
        for number, item in enumerate(nest):
            yield from paths(item, (*path, number))
    else:
        yield path, nest


def transform(change: Callable[[Any], Any], nest: Any) -> Any:
    """The same nest with each leaf changed."""
    if isinstance(nest, Mapping):
        return {key: transform(change, item) for key, item in nest.items()}
    if isinstance(nest, tuple):
        items = [transform(change, item) for item in nest]
        return type(nest)(*items) if hasattr(nest, "_fields") else tuple(items)
    return change(nest)
