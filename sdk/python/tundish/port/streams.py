"""The datasets that the user's function gave, as streams with names."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

_SUFFIXES = ("_dataset", "_ds", "_data", "dataset_", "ds_")
_PLAIN = ("dataset", "ds", "data", "")


def named(result: Any, function: Any, is_stream: Any) -> dict[str, Any]:
    """The datasets of a result by the names of streams: keys of a mapping, else the names in the
    function's `return`; one alone is `train`."""
    if is_stream(result):
        return {"train": result}
    if isinstance(result, Mapping):
        return {str(name): each for name, each in result.items() if is_stream(each)}
    if isinstance(result, (tuple, list)):
        fields = getattr(result, "_fields", None) or _returned(function, len(result))
        pairs = [(name, each) for name, each in zip(fields, result, strict=True) if is_stream(each)]
        if len({name for name, _ in pairs}) < len(pairs):
            pairs = [(f"stream{i}", each) for i, (_, each) in enumerate(pairs)]
        return dict(pairs) if len(pairs) != 1 else {"train": pairs[0][1]}
    return {}


def is_dataset(value: Any) -> bool:
    return isinstance(value, tf.data.Dataset)


def _returned(function: Any, count: int) -> list[str]:
    """The variables that the function returns."""
    plain = [f"stream{i}" for i in range(count)]
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return plain
    returns = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    if len(returns) != 1 or not isinstance(returns[0], ast.Tuple) or len(returns[0].elts) != count:
        return plain
    names = [each.id if isinstance(each, ast.Name) else "" for each in returns[0].elts]
    return [_stream(name) or default for name, default in zip(names, plain, strict=True)]


def _stream(name: str) -> str:
    for part in _SUFFIXES:
        name = name.removesuffix(part) if part.startswith("_") else name.removeprefix(part)
    return "" if name in _PLAIN else name
