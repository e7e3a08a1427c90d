"""Functions, generators and data sets of a program with tundish.data, as interpreters of the server call them.

They are named, as "augment:train", or pickled: in the pipeline file, as base64, or in a file beside it.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["Mapped", "indexable"]


class Mapped:
    """The function of Dataset.map_python, on rows. takes, gives: the nests of the columns' names, in which lists
    are tuples."""

    def __init__(
        self,
        takes: Any,
        gives: Any,
        call: str | None = None,
        file: str | None = None,
        pickled: str | None = None,
    ) -> None:
        self._function: Callable[..., Any] = _found(call, file, pickled)
        self._takes, self._gives = takes, dict(_paths(gives))
        self._draws = "rng" in inspect.signature(self._function).parameters
        self.tundish_name = _told(self._function)
        self.tundish_source = file if call is None else inspect.getsourcefile(inspect.unwrap(self._function))

    def __call__(self, row: dict[str, Any], rng: Any = None) -> dict[str, Any]:
        element = _nest(self._takes, row)
        arguments = element if isinstance(element, tuple) else (element,)
        made = self._function(*arguments, rng=rng) if self._draws else self._function(*arguments)
        return {name: _at(made, path, name) for name, path in self._gives.items()}


def indexable(file: str | None = None, pickled: str | None = None) -> Any:
    """A data set that was pickled."""
    return _found(None, file, pickled)


def _told(function: Any) -> str:
    """The function's name for messages, with its line."""
    inner = inspect.unwrap(getattr(function, "func", function))  # of functools.partial
    name = getattr(inner, "__name__", type(inner).__name__)
    code = getattr(inner, "__code__", None)
    return name if code is None else f"{name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"


def _found(call: str | None, file: str | None, pickled: str | None) -> Any:
    if pickled is not None:
        return pickle.loads(base64.b64decode(pickled))
    if call is None:
        from .loading import load

        assert file is not None
        return load(file)
    module, _, path = call.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _paths(nest: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The columns, and the keys and numbers that lead to each."""
    if isinstance(nest, str):
        yield nest, path
        return
    for key, item in nest.items() if isinstance(nest, Mapping) else enumerate(nest):
        yield from _paths(item, (*path, key))


def _nest(names: Any, row: dict[str, Any]) -> Any:
    if isinstance(names, str):
        return row[names]
    if isinstance(names, Mapping):
        return {key: _nest(item, row) for key, item in names.items()}
    return tuple(_nest(item, row) for item in names)


def _at(made: Any, path: tuple[Any, ...], name: str) -> Any:
    try:
        for key in path:
            made = made[key]
    except (KeyError, IndexError, TypeError):
        raise ValueError(f"what it gives has nothing at {list(path)}, for column '{name}'") from None
    return made


def main(words: list[str]) -> None:
    """Write the elements of a generator to standard output."""
    from .rows import RowWriter

    job = json.loads(words[0])
    with RowWriter(job["spec"]) as rows:
        columns = dict(_paths(job["gives"]))
        for element in _found(job.get("call"), job.get("file"), job.get("pickled"))(*job.get("args", ())):
            rows.write(**{name: _at(element, path, name) for name, path in columns.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
