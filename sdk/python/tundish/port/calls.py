"""The steps of a traced function: calls of TensorFlow's and Keras' public functions on columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .origin import Origin


@dataclass(eq=False)
class Call:
    """One call. `specs` are TensorFlow's own TypeSpecs of what it gave, by the path of the value in the
    result: () if that is one value. An input of the function is a call named "input"."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    origin: Origin
    specs: dict[Path, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Value:
    """One value that a call gave."""

    call: Call
    path: Path


@dataclass(frozen=True)
class Opaque:
    """An argument that is known only while TensorFlow runs: a variable, another graph's tensor."""

    what: str
    remedy: str = "give a constant"


@dataclass
class Problem:
    """A construct that cannot be carried over."""

    origin: Origin
    name: str
    why: str
    remedy: str


@dataclass(eq=False)
class Traced:
    """A function of the user after its only run.

    `inputs` is the nest of Values that it got, one for each argument, `result` the nest that it gave:
    Values, constants, or a tf.data.Dataset. `variables`: the Values that its variables had at its end, and
    their names. operations: the types of those that TensorFlow made for it.
    """

    origin: Origin
    inputs: tuple[Any, ...] = ()
    result: Any = None
    function: Any = None
    variables: list[tuple[Any, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    operations: set[str] = field(default_factory=set)


Path = tuple[Any, ...]


def is_namedtuple(nest: Any) -> bool:
    return isinstance(nest, tuple) and hasattr(nest, "_fields")


def is_feature(nest: Any) -> bool:
    """Whether it is one of tf.io's features, which are tuples by chance."""
    return is_namedtuple(nest) and type(nest).__module__ == "tensorflow.python.ops.parsing_config"


def map_leaves(function: Callable[[Path, Any], Any], nest: Any, path: Path = ()) -> Any:
    """The same nest of mappings, lists and tuples with function(path, leaf) for each leaf."""
    if isinstance(nest, Mapping):
        pairs = {key: map_leaves(function, value, (*path, key)) for key, value in nest.items()}
        return pairs if type(nest) is dict else _alike(nest, pairs)
    if is_namedtuple(nest) and not is_feature(nest):
        return type(nest)(*(map_leaves(function, v, (*path, i)) for i, v in enumerate(nest)))
    if isinstance(nest, (list, tuple)) and not is_feature(nest):
        return type(nest)(map_leaves(function, v, (*path, i)) for i, v in enumerate(nest))
    return function(path, nest)


def _alike(nest: Mapping[Any, Any], pairs: dict[Any, Any]) -> Any:
    try:
        return type(nest)(pairs)  # type: ignore[call-arg]
    except TypeError:  # a defaultdict, say
        return pairs


def leaves(nest: Any) -> Iterator[tuple[Path, Any]]:
    found: list[tuple[Path, Any]] = []
    map_leaves(lambda path, leaf: found.append((path, leaf)), nest)
    yield from found
