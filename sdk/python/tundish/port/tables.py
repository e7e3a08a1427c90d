"""tf.lookup's tables: what they were made of."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from .proxy import has_proxy
from .tracing import argument, current


@dataclass(eq=False)
class Made:
    """An object of tf.lookup: its public name and the arguments of its constructor."""

    name: str
    arguments: dict[str, Any]


INITIALIZERS = ("TextFileInitializer", "KeyValueTensorInitializer")
TABLES = ("StaticHashTable", "StaticVocabularyTable")


def patch() -> None:
    for name in (*INITIALIZERS, *TABLES):
        cls = getattr(tf.lookup, name)
        cls.__init__ = _noting(f"tf.lookup.{name}", cls.__init__)
    for name in TABLES:
        cls = getattr(tf.lookup, name)
        cls.lookup = _recording(f"tf.lookup.{name}.lookup", cls.lookup)
        cls.__getitem__ = lambda self, keys: self.lookup(keys)


def made(value: Any) -> Made | None:
    return getattr(value, "_tundish_made", None)


def _noting(name: str, function: Any) -> Any:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        arguments = dict(signature.bind(self, *args, **kwargs).arguments)
        arguments.pop("self")
        function(self, *args, **kwargs)
        if made(self) is None:  # a subclass notes its own first
            described = {key: made(value) or argument(value) for key, value in arguments.items()}
            object.__setattr__(self, "_tundish_made", Made(name, described))

    return initialize


def _recording(name: str, function: Any) -> Any:
    @functools.wraps(function)
    def lookup(self: Any, keys: Any, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None or not (has_proxy(keys) or not trace.busy):
            return function(self, keys, *args, **kwargs)
        return trace.call(name, functools.partial(function, self), (keys, *args), kwargs, made(self))

    return lookup
