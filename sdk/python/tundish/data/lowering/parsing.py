"""Functions that parse: one stage with a column for each result."""

from __future__ import annotations

from typing import Any

from ..dtypes import as_dtype, as_text, of_value
from ..folding import escaped
from ..graph import Column, Spec
from .rule import Bound, Parse, Rule, refuse
from .specs import as_first

__all__ = ["RULES", "FixedLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "VarLenFeature"]


class _Feature:
    """A feature of a record; its arguments are TensorFlow's."""

    _parameters: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        defaults = {"default_value": None, "allow_missing": False, "value_key": None, "partitions": (),
                    "row_splits_dtype": "int32", "validate": False}  # fmt: skip
        given = dict(zip(self._parameters, args)) | kwargs
        for name in self._parameters:
            if name not in given and name not in defaults:
                raise TypeError(f"{type(self).__name__} needs {name}")
            setattr(self, name, given.pop(name, defaults.get(name)))
        if given or len(args) > len(self._parameters):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._parameters)}")


class FixedLenFeature(_Feature):
    """tf.io.FixedLenFeature(shape, dtype, default_value=None)"""

    _parameters = ("shape", "dtype", "default_value")


class VarLenFeature(_Feature):
    """tf.io.VarLenFeature(dtype)"""

    _parameters = ("dtype",)


class FixedLenSequenceFeature(_Feature):
    """tf.io.FixedLenSequenceFeature(shape, dtype, allow_missing=False, default_value=None)"""

    _parameters = ("shape", "dtype", "allow_missing", "default_value")


class _Partition:
    _parameters: tuple[str, ...] = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = self.length = key


class RaggedFeature(_Feature):
    """tf.io.RaggedFeature(dtype, value_key=None, partitions=(), row_splits_dtype=tf.int32, validate=False)"""

    _parameters = ("dtype", "value_key", "partitions", "row_splits_dtype", "validate")

    class RowSplits(_Partition):
        """The feature that holds the row splits."""

    class RowLengths(_Partition):
        """The feature that holds the row lengths."""

    class RowStarts(_Partition):
        """The feature that holds where rows start."""

    class RowLimits(_Partition):
        """The feature that holds where rows end."""

    class ValueRowIds(_Partition):
        """The feature that holds each value's row."""

    class UniformRowLength(_Partition):
        """The length of all rows."""


def _kind(feature: Any) -> str:
    return type(feature).__name__.removesuffix("Feature")


def _shape(shape: Any) -> list[Any]:
    sizes = shape if isinstance(shape, (list, tuple)) or hasattr(shape, "__iter__") else [shape]
    return [None if size is None else int(size) for size in sizes]


def _feature(key: str, name: str, feature: Any) -> Bound:
    """The entry of a pipeline file."""
    kind = _kind(feature)
    entry: Bound = {"type": kind, "dtype": as_dtype(feature.dtype)}
    if kind in ("FixedLen", "FixedLenSequence"):
        entry["shape"] = _shape(feature.shape)
        if feature.default_value is not None:
            entry["default_value"] = _plain(feature.default_value)
    if kind == "FixedLenSequence" and feature.allow_missing:
        entry["allow_missing"] = True
    if kind == "Ragged":
        if feature.validate or as_dtype(feature.row_splits_dtype) not in ("int32", "int64"):
            refuse("validate=True is not offered", "leave it out: rows are always checked")
        if feature.partitions:
            entry["partitions"] = [_partition(part) for part in feature.partitions]
        if feature.value_key is not None and feature.value_key != name:
            entry["value_key"] = escaped(feature.value_key)
        elif feature.value_key is None and key != name:
            entry["value_key"] = escaped(key)
    elif key != name:
        entry["key"] = escaped(key)
    if kind not in ("FixedLen", "FixedLenSequence", "VarLen", "Ragged"):
        refuse(f"{type(feature).__name__} is not offered", "use VarLenFeature, or RaggedFeature")
    return entry


def _partition(part: Any) -> Bound:
    kind = type(part).__name__
    return {kind: part.length if kind == "UniformRowLength" else escaped(part.key)}


def _plain(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return as_text(value)


def _features_spec(is_batched: bool) -> Any:
    def infer(bound: Bound) -> dict[str, Spec]:
        outer = ((as_first(bound).shape or (None,))[:1]) if is_batched else ()
        return {key: _feature_spec(feature, outer) for key, feature in bound["features"].items()}

    return infer


def _feature_spec(feature: Any, outer: tuple[int | None, ...]) -> Spec:
    kind, dtype = _kind(feature), as_dtype(feature.dtype)
    if kind == "FixedLen":
        return Spec(dtype, (*outer, *_shape(feature.shape)))
    if kind == "FixedLenSequence":
        return Spec(dtype, (*outer, None, *_shape(feature.shape)))
    if kind == "VarLen":
        return Spec(dtype, (*outer, None), "sparse")
    ragged = bool(outer) or bool(getattr(feature, "partitions", ()))
    return Spec(
        dtype,
        (*outer, *(None for _ in getattr(feature, "partitions", ())), None),
        "ragged" if ragged else "dense",
    )


def _make_features(bound: Bound, names: dict[Any, str]) -> Bound:
    features = bound["features"]
    made = {name: _feature(key, name, features[key]) for key, name in names.items()}
    return {"features": made}


def _check_rank(rank: int, other: str) -> Any:
    def check(bound: Bound) -> None:
        if bound.get("example_names") is not None:
            refuse("example_names is not offered", "leave it out")
        known = as_first(bound).rank
        if known is not None and known != rank:
            refuse(f"the records have {known} dimensions, not {rank}", f"use {other}")

    return check


def _csv_spec(bound: Bound) -> list[Spec]:
    shape = as_first(bound).shape
    return [Spec(csv_dtype(default), shape) for default in bound["record_defaults"]]


def csv_dtype(default: Any) -> str:
    """Read a record default: a dtype, or a list of at most one value."""
    if isinstance(default, str) and type(default) is not str or isinstance(default, type):
        return as_dtype(default)
    if isinstance(default, Column):
        return str(default.spec.dtype)
    if hasattr(default, "name") and not hasattr(default, "shape"):
        return as_dtype(default)
    return of_value(default)


def csv_default(default: Any) -> Any:
    """The entry of a pipeline file for a record default."""
    dtype = csv_dtype(default)
    if isinstance(default, Column):
        default = default.call.args[0] if default.call is not None else default
    is_dtype = (
        isinstance(default, (str, type))
        and type(default) is not str
        or not isinstance(default, (list, tuple, str, bytes, int, float))
        and not hasattr(default, "tolist")
    )
    if is_dtype:
        return dtype
    to_list = getattr(default, "tolist", None)
    values = default if to_list is None else to_list()
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if not values:
        return dtype
    if len(values) > 1:
        refuse("a field has at most one default", "write [value]")
    value = _plain(values[0])
    from ..dtypes import DTYPES

    if dtype == of_value(value) and value not in DTYPES:
        return value
    return {"values": value, "dtype": dtype}


def _make_csv(bound: Bound, names: dict[Any, str]) -> Bound:
    made: Bound = {
        "record_defaults": [csv_default(default) for default in bound["record_defaults"]],
        "column_names": [names.get(i) for i in range(len(bound["record_defaults"]))],
    }
    for name, default in (
        ("field_delim", ","),
        ("use_quote_delim", True),
        ("na_value", ""),
        ("select_cols", None),
    ):
        if bound[name] != default:
            made[name] = bound[name]
    return made


RULES: list[Rule] = [
    Parse(
        "tf.io.parse_example(serialized, features, example_names=None, name=None)",
        _features_spec(True),
        stage="parse_example",
        column="serialized",
        make=_make_features,
        check=_check_rank(1, "parse_single_example"),
    ),
    Parse(
        "tf.io.parse_single_example(serialized, features, example_names=None, name=None)",
        _features_spec(False),
        stage="parse_example",
        column="serialized",
        make=_make_features,
        check=_check_rank(0, "parse_example"),
    ),
    Parse(
        "tf.io.decode_csv(records, record_defaults, field_delim=',', use_quote_delim=True, na_value='',"
        " select_cols=None, name=None)",
        _csv_spec,
        stage="decode_csv",
        column="records",
        make=_make_csv,
    ),
]
