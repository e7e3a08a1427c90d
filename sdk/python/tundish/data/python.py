"""The parts that a program with tundish.data leaves to Python: functions, generators and data sets of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from . import nest
from .dtypes import as_dtype
from .graph import Field, Name, Node, Origin, Spec

__all__ = ["COMMAND", "TensorSpec", "generated", "indexed", "mapped"]

# The package is where the server's caller has it.
COMMAND = (
    "sh",
    "-c",
    'PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$TUNDISH_PYTHONPATH" exec "${TUNDISH_PYTHON:-python3}" -m "$0" "$1"',
)


def TensorSpec(shape: Any = None, dtype: Any = "float32", name: str | None = None) -> Spec:
    """tf.TensorSpec, for output_signature."""
    return Spec(as_dtype(dtype), None if shape is None else tuple(shape))


def mapped(before: Node, function: Any, signature: Any, seed: int | None, origin: Origin) -> Node:
    """The elements that a function makes, as the signature says."""
    fields = _fields(signature)
    params: dict[str, Any] = {"call": "tundish.elements:Mapped", "arguments": {}}
    params["object"] = _named(function, "map_python")
    params |= {} if seed is None else {"seed": seed}
    return Node("python", params, (before,), fields, origin, {"gives": fields, "nests": True})


def generated(generator: Any, args: Any, signature: Any, origin: Origin) -> Node:
    """The elements of a generator, which a process of its own runs in each epoch."""
    job = {"args": list(args)} if args else {}
    params = {"module": "tundish.elements", "job": job, "object": _named(generator, "from_generator")}
    return Node("program", params, (), _fields(signature), origin, {"nests": True})


def indexed(source: Any, origin: Origin) -> Node:
    """The items of a data set, of which some are looked at."""
    from .. import described
    from ..loading import pickled

    count = len(source)
    if count == 0:
        raise ValueError("the data set has no items, so that its columns cannot be seen")
    samples = described.samples(source.__getitem__, sorted({0, count // 3, count // 2, count - 1}))
    structure = _structure(samples[0], described.columns(samples))
    if type(samples[0]) is tuple and all(isinstance(each, Field) for each in structure):
        for number, each in enumerate(structure):  # whose columns go by their places
            each.name.text, each.name.is_chosen = f"value_{number}", False
    return Node("python_dataset", {"object": (None, pickled(source))}, (), structure, origin)


def _structure(item: Any, specs: Mapping[str, Any], path: tuple[str, ...] = ()) -> Any:
    from ..described import items_of

    items = items_of(item)
    if items is None:
        name = ".".join(path) or "value"
        return Field(Name(name), Spec(specs[name]["dtype"], tuple(specs[name]["shape"])))
    found = {key: _structure(each, specs, (*path, str(key))) for key, each in items}
    if isinstance(item, tuple):
        return type(item)(*found.values()) if hasattr(item, "_fields") else tuple(found.values())
    return found


def _fields(signature: Any) -> Any:
    """The components that a signature says: a nest of what has a dtype and a shape."""
    taken: set[str] = set()

    def field(path: tuple[Any, ...], spec: Any) -> Field:
        if not hasattr(spec, "dtype") or getattr(spec, "shape", None) is None:
            raise TypeError(f"output_signature: {spec!r} is no TensorSpec(shape, dtype) of a known number of dimensions")
        keys = [str(key) for key in path if isinstance(key, str)]
        text = keys[-1] if keys else "_".join(["value", *map(str, path)])
        while text in taken:
            text += "_"
        taken.add(text)
        return Field(Name(text, bool(keys)), Spec(as_dtype(spec.dtype), tuple(spec.shape)))

    made = iter([field(path, spec) for path, spec in nest.paths(signature)])
    return nest.transform(lambda _: next(made), signature)


def _named(function: Any, method: str) -> tuple[str | None, bytes | None]:
    """The text for a pipeline file: its name, if it can be imported by it, else its bytes."""
    if isinstance(function, str):
        if ":" not in function:
            raise ValueError(f"{method}: {function!r} is not MODULE:FUNCTION, as \"augment:train\"")
        return function, None
    if not callable(function):
        raise TypeError(f"{method} takes a function, or its name as \"augment:train\", not {type(function).__name__}")
    from ..loading import pickled

    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module not in (None, "__main__") and _is_there(sys.modules.get(module), name, function):
        return f"{module}:{name}", None
    return None, pickled(function, f"{method}: {name or type(function).__name__}")


def _is_there(module: Any, name: str, function: Callable[..., Any]) -> bool:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is function
