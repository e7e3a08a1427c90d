"""Dtypes by TensorFlow's names, without TensorFlow."""

from __future__ import annotations

from typing import Any

__all__ = ["DTYPES", "DType", "Typed", "as_dtype", "as_text", "of_value"]

DTYPES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "float16", "bfloat16", "float32", "float64", "string",
)  # fmt: skip
_ALIASES = {
    "half": "float16",
    "double": "float64",
    "float": "float32",
    "str": "string",
    "object": "string",
}


class DType(str):
    """A dtype: its name, which is also `.name`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return str(self)

    @property
    def max(self) -> int:
        """The largest integer."""
        return int(2 ** (self._bits - (0 if self.startswith("u") else 1))) - 1

    @property
    def min(self) -> int:
        """The least integer."""
        return 0 if self.startswith("u") else -int(2 ** (self._bits - 1))

    @property
    def _bits(self) -> int:
        if not self.is_integer:
            raise AttributeError(f"{self.name} has no bounds here: write the number")
        return int(self.lstrip("uint"))

    @property
    def is_floating(self) -> bool:
        return "float" in self

    @property
    def is_integer(self) -> bool:
        return "int" in self


class Typed:
    """A constant with a dtype of its own, as far like an array as sources need."""

    def __init__(self, value: Any, dtype: str) -> None:
        self.value = value
        self.dtype = DType(dtype)
        self.shape = _shape(value)

    def tolist(self) -> Any:
        return self.value


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, (list, tuple)):
        return (len(value), *(_shape(value[0]) if value else ()))
    return ()


def as_dtype(dtype: Any) -> str:
    """The name of a dtype: of a name, or of a dtype of tundish.tf, numpy or TensorFlow."""
    if isinstance(dtype, type):
        dtype = dtype.__name__
    name = str(getattr(dtype, "name", dtype))
    name = _ALIASES.get(name, name)
    if name.startswith(("str", "bytes", "|S", "<U")):
        name = "string"
    if name not in DTYPES:
        raise ValueError(f"{dtype!r} is not a dtype: take one of {', '.join(DTYPES)}")
    return name


def as_text(value: Any) -> Any:
    """Bytes as a text if they are UTF-8; everything else as it is."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def of_value(value: Any) -> str:
    """The dtype that tf.constant gives a Python value or a nested list of them."""
    if (own := getattr(value, "dtype", None)) is not None:
        return as_dtype(own)
    leaves = list(_leaves(value))
    if any(isinstance(leaf, (str, bytes)) for leaf in leaves):
        return "string"
    if any(isinstance(leaf, float) for leaf in leaves) or not leaves:
        return "float32"
    if all(isinstance(leaf, bool) for leaf in leaves):
        return "bool"
    return "int32" if all(-(2**31) <= leaf < 2**31 for leaf in leaves) else "int64"


def _leaves(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
