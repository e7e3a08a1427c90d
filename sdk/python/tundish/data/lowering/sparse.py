"""Sparse tensors that a program puts together from the parts of another one."""

from __future__ import annotations

from typing import Any

from ..graph import Column, Spec
from .rule import Bound, Rewrite, Rule, refuse

__all__ = ["RULES"]

REMEDY = "use tf.sparse.to_dense, or tf.SparseTensor(x.indices, x.values, [x.dense_shape[0], n]) of one column x"


def _do(name: str, *args: Any, **kwargs: Any) -> Any:
    from . import record

    return record(name, args, kwargs)


def _to_dense(sp_input: Any, default_value: Any, validate_indices: Any) -> Any:
    """`to_dense`; of tf.SparseTensor(x.indices, x.values, shape) with the shape"""
    call = sp_input.call if isinstance(sp_input, Column) else None
    if call is None or call.name != "tf.SparseTensor":
        return _do("tundish.sparse_to_dense", sp_input, default_value=default_value)
    from . import find

    rule = find("tf.SparseTensor")
    assert rule is not None
    parts = rule.bind(call.args, call.kwargs)
    column = _whole(parts["indices"], "indices")
    if column is None or _whole(parts["values"], "values") is not column:
        refuse("its indices and values are not those of one column", REMEDY)
    shape = _shape(column, parts["dense_shape"])
    return _do("tundish.sparse_to_dense", column, default_value=default_value, shape=shape)


def _whole(part: Any, name: str) -> Any:
    """The sparse column that this is a part of."""
    call = part.call if isinstance(part, Column) else None
    return call.args[0] if call is not None and call.name == f"tf.SparseTensor.{name}" else None


def _shape(column: Any, shape: Any) -> Any:
    """The dimensions with None for those of the column; None if they are all its own."""
    if _whole(shape, "dense_shape") is column:
        return None
    if not isinstance(shape, (list, tuple)):
        refuse("the shape is not a list of dimensions", REMEDY)
    return [_size(column, axis, size) for axis, size in enumerate(shape)]


def _size(column: Any, axis: int, size: Any) -> Any:
    if not isinstance(size, Column):
        return int(size)
    call = size.call
    if call is None or call.name != "tf.strided_slice" or call.args[1] != axis:
        return refuse("a dimension is computed", REMEDY)
    if _whole(call.args[0], "dense_shape") is not column:
        refuse("a dimension is of another column", REMEDY)
    return None


def _parts_of(bound: Bound) -> Spec:
    column = _whole(bound["values"], "values")
    return Spec() if column is None else Spec(column.spec.dtype, column.spec.shape, "sparse")


def _densified(bound: Bound) -> Spec:
    spec = bound["sp_input"].spec
    return Spec(spec.dtype, spec.shape)


def _part(name: str, infer: Any) -> Rule:
    def into(self: Any) -> Any:
        refuse(f"the {name} of a sparse column are no column", REMEDY)

    into.__doc__ = "a part of tf.SparseTensor(...), in tf.sparse.to_dense"
    return Rewrite(f"tf.SparseTensor.{name}(self)", infer, into=into)


def _alone(indices: Any, values: Any, dense_shape: Any) -> Any:
    """`to_dense` with a shape, in tf.sparse.to_dense"""
    refuse("a sparse tensor of other parts", REMEDY)


RULES: list[Rule] = [
    Rewrite(
        "tf.sparse.to_dense(sp_input, default_value=None, validate_indices=True, name=None)",
        _densified,
        into=_to_dense,
    ),
    Rewrite("tf.SparseTensor(indices, values, dense_shape)", _parts_of, into=_alone),
    _part("indices", lambda bound: Spec("int64", (None, bound["self"].spec.rank))),
    _part("values", lambda bound: Spec(bound["self"].spec.dtype, (None,))),
    _part("dense_shape", lambda bound: Spec("int64", (bound["self"].spec.rank,))),
]
