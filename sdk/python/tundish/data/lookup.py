"""tf.lookup's tables, for functions that are traced."""

from __future__ import annotations

import os
from typing import Any

from .dtypes import as_dtype, of_value
from .graph import Column
from .lowering import record

__all__ = ["KeyValueTensorInitializer", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex", "TextFileInitializer"]


class TextFileIndex:
    """Parts of a line."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class KeyValueTensorInitializer:
    """Keys and their values."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        listed = [each.tolist() if hasattr(each, "tolist") else list(each) for each in (keys, values)]
        dtype = of_value(values) if value_dtype is None else as_dtype(value_dtype)
        self.table = {"keys": listed[0], "values": listed[1], "size": len(listed[0]), "dtype": dtype}


class TextFileInitializer:
    """The lines of a file and their numbers."""

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        path = os.fspath(filename)
        with open(path, "rb") as file:
            size = file.read().rstrip(b"\n").count(b"\n") + 1
        is_whole = (key_index, value_index) == (TextFileIndex.WHOLE_LINE, TextFileIndex.LINE_NUMBER)
        is_whole &= vocab_size in (None, size) and not value_index_offset
        keys = path if is_whole else None
        self.table = {"keys": keys, "values": None, "size": size, "dtype": as_dtype(value_dtype)}


Initializer = KeyValueTensorInitializer | TextFileInitializer


class StaticHashTable:
    """Values by their keys, and one for all others."""

    def __init__(
        self, initializer: Initializer, default_value: Any, name: str | None = None, experimental_is_anonymous: bool = False
    ) -> None:
        self._table = initializer.table
        self._default = default_value

    def lookup(self, keys: Column, name: str | None = None) -> Any:
        options = {"table": self._table, "default_value": self._default}
        return record("tf.lookup.StaticHashTable.lookup", (keys,), options)

    __getitem__ = lookup


class StaticVocabularyTable:
    """Numbers of keys, and buckets for all others."""

    def __init__(
        self,
        initializer: Initializer,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        self._table = initializer.table
        self._buckets = num_oov_buckets

    def lookup(self, keys: Column, name: str | None = None) -> Any:
        options = {"table": self._table, "num_oov_buckets": self._buckets}
        return record("tf.lookup.StaticVocabularyTable.lookup", (keys,), options)

    __getitem__ = lookup
