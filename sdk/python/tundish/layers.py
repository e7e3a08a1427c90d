"""Keras' preprocessing layers for a function that tundish.data traces, without Keras.

from tundish import layers

lookup = layers.StringLookup(vocabulary="vocabulary.txt")
ds = ds.map(lambda row: {"word": lookup(row["word"])})
"""

from __future__ import annotations

from typing import Any

from .data.namespace import Namespace

__all__: list[str] = []
_names = Namespace("tf.keras.layers")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)


def __dir__() -> list[str]:
    return dir(_names)
