"""The stand-ins that a traced function gets for TensorFlow's tensors."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow as tf

from . import origin
from .calls import Value, map_leaves

_SPARSE, _RAGGED = tf.SparseTensor, tf.RaggedTensor
# Facts of a tensor that TensorFlow knows before it runs: plain Python values, or its own.
_STATIC = frozenset(("dtype", "get_shape", "shape", "ndim", "name", "op", "graph", "device", "rank"))
_STATIC_OF_RAGGED = frozenset(("ragged_rank", "uniform_row_length", "flat_values_spec", "_type_spec"))


class Proxy:
    """A tensor that TensorFlow has, and the Value that stands for it in the record.

    TensorFlow's functions get the tensor. Operators, methods and attributes are calls like any other.
    """

    __slots__ = ("tensor", "value", "trace", "__weakref__")

    def __init__(self, tensor: Any, value: Value, trace: Any) -> None:
        self.tensor = tensor
        self.value = value
        self.trace = trace

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """To the user's `isinstance` it is a tensor; to libraries it is what it is."""
        return type(self.tensor) if origin.asked_by_user(origin.caller()) else Proxy

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.tensor, name)
        if name in _STATIC or name in _STATIC_OF_RAGGED or name.startswith("__"):
            return found
        full = f"tf.{_kind(self.tensor)}.{name}"
        if name == "set_shape":
            return lambda shape: self.trace.set_shape(self, shape)
        if callable(found):
            method = getattr(type(self.tensor), name)
            return lambda *args, **kwargs: self.trace.call(full, method, (self, *args), kwargs)
        return self.trace.call(full, operator.attrgetter(name), (self,), {})

    def __bool__(self) -> bool:
        return bool(self.tensor)  # as TensorFlow: an error that says so

    def __len__(self) -> int:
        return len(self.tensor)

    def __iter__(self) -> Any:
        return iter(self.tensor)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return repr(self.tensor)

    def __getitem__(self, key: Any) -> Any:
        return self.trace.call("tf.getitem", operator.getitem, (self, key), {})


def _kind(tensor: Any) -> str:
    if isinstance(tensor, _RAGGED):
        return "RaggedTensor"
    return "SparseTensor" if isinstance(tensor, _SPARSE) else "Tensor"


def is_proxy(value: Any) -> bool:
    return type(value) is Proxy


def has_proxy(nest: Any) -> bool:
    if type(nest) is Proxy:
        return True
    if isinstance(nest, dict):
        return any(map(has_proxy, nest.values())) or any(map(has_proxy, nest))
    if isinstance(nest, (list, tuple)):
        return any(map(has_proxy, nest))
    if isinstance(nest, slice):
        return any(map(has_proxy, (nest.start, nest.stop, nest.step)))
    return False


def real(nest: Any) -> Any:
    """The nest with tensors for proxies."""
    if not has_proxy(nest):
        return nest
    if isinstance(nest, slice):
        return slice(real(nest.start), real(nest.stop), real(nest.step))
    return map_leaves(
        lambda _, leaf: leaf.tensor if is_proxy(leaf) else real(leaf) if isinstance(leaf, slice) else leaf,
        nest,
    )


_BINARY = {
    "add": "math.add", "sub": "math.subtract", "mul": "math.multiply", "truediv": "math.truediv",
    "floordiv": "math.floordiv", "mod": "math.floormod", "pow": "math.pow", "and_": "bitwise_or_logical_and",
    "or_": "bitwise_or_logical_or", "xor": "bitwise_or_logical_xor", "matmul": "linalg.matmul",
}  # fmt: skip
_COMPARE = {
    "lt": "math.less", "le": "math.less_equal", "gt": "math.greater", "ge": "math.greater_equal",
    "eq": "math.equal", "ne": "math.not_equal",
}  # fmt: skip
_UNARY = {"neg": "math.negative", "abs": "math.abs", "invert": "bitwise_or_logical_not"}


def _name(name: str, operand: Any) -> str:
    """& | ^ ~ are logical on bools, bitwise on integers."""
    kind, _, rest = name.partition("_or_logical_")
    if not rest:
        return "tf." + name
    return f"tf.math.logical_{rest}" if operand.dtype == tf.bool else f"tf.bitwise.bitwise_{rest}"


def _add_operators() -> None:
    for word, name in (_BINARY | _COMPARE).items():
        function = getattr(operator, word)

        def forward(self: Any, other: Any, name: str = name, function: Any = function) -> Any:
            if other is None and function in (operator.eq, operator.ne):
                return function is operator.ne
            return self.trace.call(_name(name, self), function, (self, other), {})

        def backward(self: Any, other: Any, name: str = name, function: Any = function) -> Any:
            return self.trace.call(_name(name, self), function, (other, self), {})

        plain = word.rstrip("_")
        setattr(Proxy, f"__{plain}__", forward)
        if word in _BINARY:
            setattr(Proxy, f"__r{plain}__", backward)
    for word, name in _UNARY.items():

        def single(
            self: Any, name: str = name, function: Any = getattr(operator, word)
        ) -> Any:
            return self.trace.call(_name(name, self), function, (self,), {})

        setattr(Proxy, f"__{word}__", single)


_add_operators()
# Functions that nobody patched get the tensor; the trace sees that something unrecorded was made.
tf.register_tensor_conversion_function(Proxy, lambda value, *_, **__: value.tensor)
