"""A traced function once more, on tundish.data's columns."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import tensorflow as tf

from ..data import Column, Origin, Spec
from ..data.dtypes import DType, Typed, as_text, of_value
from ..data.distribution import variable
from ..data.graph import Call as Recorded
from ..data.graph import caller
from ..data.lowering import find, parsing, record
from .calls import Call, Opaque, Traced, Value, leaves, map_leaves
from .context import Symbol
from .layers import Layer
from .tables import Made

# Functions that are called in another way here.
_LINES = (tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER)
# Their constant arguments need not have the dtype of the column beside them.
_OWN_DTYPES = ("tf.where", "tf.cond", "tf.stack", "tf.concat")
RENAMED = {"tf.getitem": "tf.strided_slice", "tf.strided_slice": "tf.strided_slice of begin and end"}


class Columns:
    """tundish.data's columns for the values of traced functions."""

    def __init__(self, walk: Any) -> None:
        self._walk = walk
        self._inputs: dict[tuple[int, Any], Column] = {}
        self._calls: dict[int, Recorded] = {}
        self._made: dict[tuple[int, Any], Column] = {}

    def bind(self, traced: Traced, arguments: tuple[Any, ...]) -> None:
        """These are the inputs of the function."""
        for inputs, given in zip(traced.inputs, arguments, strict=True):
            map_leaves(lambda path, value: self._bind(value, _at(given, path)), inputs)

    def _bind(self, value: Any, column: Any) -> None:
        if isinstance(value, tf.data.Dataset):
            self._walk.stands_for(value, column)
        if isinstance(value, Value):
            self._inputs[id(value.call), value.path] = column

    def of(self, nest: Any) -> Any:
        """A nest of arguments as tundish.data takes them."""
        if isinstance(nest, slice):
            return slice(self.of(nest.start), self.of(nest.stop), self.of(nest.step))
        return map_leaves(lambda _, leaf: self._leaf(leaf), nest)

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, Value):
            return self._column(leaf)
        if isinstance(leaf, slice):
            return self.of(leaf)
        if isinstance(leaf, tf.DType):
            return DType(leaf.name)
        if isinstance(leaf, Symbol):
            return variable(str(leaf.text).removeprefix("$"))
        if isinstance(leaf, tf.data.Dataset):
            return self._walk.dataset(leaf)
        if type(leaf).__name__ in parsing.__all__ and hasattr(leaf, "_asdict"):
            return _feature(leaf)
        if isinstance(leaf, np.ndarray) and leaf.dtype == object:
            return _texts(leaf) if leaf.size else Typed(leaf.tolist(), "string")
        return leaf

    def _column(self, value: Value) -> Column:
        key = (id(value.call), value.path)
        if key in self._inputs:
            return self._inputs[key]
        if key not in self._made:
            call = self._call(value.call)
            spec = value.call.specs.get(value.path)
            index = None if not value.path else value.path[0] if len(value.path) == 1 else value.path
            self._made[key] = Column(call, _spec(spec), index=index)
        return self._made[key]

    def _call(self, call: Call) -> Recorded:
        if id(call) not in self._calls:
            args, kwargs = self.of(call.args), self.of(call.kwargs)
            if not _has_column((args, kwargs)) or call.name in _OWN_DTYPES:
                args = map_leaves(lambda _, leaf: _typed(leaf), args)
            layer = None
            name = RENAMED.get(call.name, call.name)
            if call.args and isinstance(call.args[0], Layer):
                layer, kwargs, args = call.args[0].object, {**call.args[0].arguments, **kwargs}, args[1:]
            if call.args and isinstance(call.args[0], Made):
                args, kwargs = args[1:], {**kwargs, **_table(call)}
            name = self._checked(name, call, args, kwargs)
            self._calls[id(call)] = Recorded(name, args, kwargs, Origin(*call.origin), _specs(call), layer)
        return self._calls[id(call)]

    def _checked(self, name: str, call: Call, args: Any, kwargs: Any) -> str:
        """The name; if an argument is known only to TensorFlow or no parameter of the rule, one that has
        no rule, so that the call is listed."""
        rule = find(name)
        symbols = [leaf for _, leaf in leaves((call.args, call.kwargs)) if isinstance(leaf, Symbol)]
        if symbols:
            return f"{name} of a number of the InputContext"
        opaque = [leaf.what for _, leaf in _opaques((call.args, call.kwargs))]
        if opaque:
            return f"{name} of {opaque[0]}"
        if rule is None:
            return name
        try:
            rule.signature.bind(*args, **kwargs)
        except TypeError as error:
            return f"{name} ({error})"
        unlike = _unlike(rule, call, args, kwargs)
        return name if unlike is None else f"{name} ({unlike})"


class Replay:
    """A function for tundish.data to trace, which gives what the user's gave."""

    def __init__(self, columns: Columns, traced: Traced, function: Any) -> None:
        self._columns = columns
        self._traced = traced
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if isinstance(code, types.CodeType):  # its parameters name components of a tuple
            self.__code__ = code
            if isinstance(function, types.MethodType):
                self.__self__ = function.__self__
        self.variables: dict[int, str] = {}

    def __call__(self, *arguments: Any) -> Any:
        self._columns.bind(self._traced, arguments)
        result = map_leaves(lambda _, leaf: _typed(leaf), self._columns.of(self._traced.result))
        for value, name in self._traced.variables:
            self.variables[id(self._columns.of(value))] = name
        if isinstance(result, list) and not isinstance(self._traced.result, list):
            return record("tf.constant", (result,), {})  # one tensor, and no list of components
        return result


def _typed(leaf: Any) -> Any:
    """A number whose dtype is not the one that it would have in a pipeline file."""
    if not isinstance(leaf, (np.generic, np.ndarray)) or leaf.dtype.kind not in "biuf":
        return leaf
    plain = leaf.tolist()
    if tf.as_dtype(leaf.dtype).name == of_value(plain):
        return plain
    args, dtype = (plain,), tf.as_dtype(leaf.dtype).name
    call = Recorded("tf.constant", args, {"dtype": dtype}, caller(), Spec(dtype, leaf.shape))
    return Column(call, Spec(dtype, leaf.shape))


def _has_column(nest: Any) -> bool:
    found: list[Any] = []
    map_leaves(lambda _, leaf: found.append(leaf) if isinstance(leaf, Column) else None, nest)
    return bool(found)


def _table(call: Call) -> dict[str, Any]:
    """The arguments of a lookup for tundish.data: keys are a list, or the name of a file with one a line."""
    made = call.args[0]
    source = made.arguments["initializer"]
    given = source.arguments if isinstance(source, Made) else {}
    table = {"dtype": next(iter(call.specs.values())).dtype.name, "size": None, "keys": None, "values": None}
    if "keys" in given:
        table["keys"], table["values"] = _listed(given["keys"]), _listed(given["values"])
        table["size"] = len(table["keys"])
    elif (given.get("key_index"), given.get("value_index")) == _LINES and isinstance(given["filename"], str):
        with open(given["filename"], "rb") as file:
            size = file.read().rstrip(b"\n").count(b"\n") + 1
        # TensorFlow reads no more than vocab_size lines.
        if _plain(given.get("vocab_size")) in (None, size) and not given.get("value_index_offset"):
            table["keys"], table["size"] = given["filename"], size
    arguments = {"table": table}
    for name in ("default_value", "num_oov_buckets"):
        if name in made.arguments:
            arguments[name] = _plain(made.arguments[name])
    return arguments


def _listed(values: Any) -> list[Any]:
    plain: list[Any] = _plain(values)
    return [as_text(each) for each in plain]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _at(nest: Any, path: Any) -> Any:
    for key in path:
        nest = nest[key]
    return nest


def _unlike(rule: Any, call: Call, args: Any, kwargs: Any) -> str | None:
    """How the result would differ from TensorFlow's, whose dtype and rank are known."""
    try:
        inferred = rule.infer(rule.bind(args, kwargs))
    except Exception:  # the rule refuses it, and says so when it is lowered
        return None
    known = _specs(call)
    for one, other in _pairs(inferred, known):
        if one.dtype is not None and other.dtype is not None and one.dtype != other.dtype:
            return f"it gives {one.dtype} here, in TensorFlow {other.dtype}"
        if one.rank is not None and other.rank is not None and one.rank != other.rank:
            return f"it gives rank {one.rank} here, in TensorFlow {other.rank}"
    return None


def _pairs(one: Any, other: Any) -> list[tuple[Spec, Spec]]:
    if isinstance(one, Spec) and isinstance(other, Spec):
        return [(one, other)]
    if isinstance(one, dict) and isinstance(other, dict):
        return [pair for key in one if key in other for pair in _pairs(one[key], other[key])]
    if isinstance(one, list) and isinstance(other, list):
        return [pair for each in zip(one, other, strict=False) for pair in _pairs(*each)]
    return []


def _opaques(nest: Any) -> list[tuple[Any, Opaque]]:
    found: list[tuple[Any, Opaque]] = []
    map_leaves(lambda p, leaf: found.append((p, leaf)) if isinstance(leaf, Opaque) else None, nest)
    return found


def _feature(feature: Any) -> Any:
    """tf.io's feature as tundish.data's."""
    fields = {
        name: each.name if isinstance(each, tf.DType) else each for name, each in feature._asdict().items()
    }
    if "partitions" in fields:
        fields["partitions"] = tuple(map(_partition, fields["partitions"]))
    return getattr(parsing, type(feature).__name__)(**fields)


def _partition(partition: Any) -> Any:
    return getattr(parsing.RaggedFeature, type(partition).__name__)(partition[0])


def _texts(array: np.ndarray[Any, Any]) -> Any:
    """Bytes as texts, where they are UTF-8."""
    return [_texts(each) if isinstance(each, np.ndarray) else as_text(each) for each in array]


def _spec(spec: Any) -> Spec:
    kind = "ragged" if isinstance(spec, tf.RaggedTensorSpec) else "dense"
    kind = "sparse" if isinstance(spec, tf.SparseTensorSpec) else kind
    if spec is None or not hasattr(spec, "shape"):
        return Spec()
    return Spec(spec.dtype.name, None if spec.shape.rank is None else tuple(spec.shape.as_list()), kind)


def _specs(call: Call) -> Any:
    """As a rule tells them: one, or a dict or list of them."""
    if () in call.specs or not call.specs:
        return _spec(call.specs.get(()))
    keys = [path[0] for path in call.specs]
    if all(isinstance(key, int) for key in keys):
        return [_spec(call.specs.get((i,))) for i in range(max(keys) + 1)]
    return {path[0]: _spec(spec) for path, spec in call.specs.items() if len(path) == 1}
