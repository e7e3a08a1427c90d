"""Tensors and their specs in the form of the recorded cases (cases/README.md)."""

import base64
import math

import tensorflow as tf


def spec(of):
    """An entry of element_spec."""
    entry = {"dtype": of.dtype.name, "shape": None if of.shape.rank is None else of.shape.as_list()}
    if isinstance(of, tf.RaggedTensorSpec):
        return entry | {"ragged": True, "ragged_rank": of.ragged_rank}
    return entry | ({"sparse": True} if isinstance(of, tf.SparseTensorSpec) else {})


def column(tensor):
    """A column of a step."""
    if isinstance(tensor, tf.RaggedTensor):
        inner = list(tensor.flat_values.shape[1:])
        return {
            "dtype": tensor.dtype.name,
            "ragged": True,
            "row_splits": [splits.numpy().tolist() for splits in tensor.nested_row_splits],
            **({"inner_shape": inner} if inner else {}),
            "values": _values(tensor.flat_values),
        }
    if isinstance(tensor, tf.SparseTensor):
        return {
            "dtype": tensor.dtype.name,
            "sparse": True,
            "dense_shape": tensor.dense_shape.numpy().tolist(),
            "indices": tensor.indices.numpy().tolist(),
            "values": _values(tensor.values),
        }
    tensor = tf.convert_to_tensor(tensor)
    return {"dtype": tensor.dtype.name, "shape": tensor.shape.as_list(), "values": _values(tensor)}


def _values(tensor):
    flat = tensor.numpy().reshape(-1)
    if tensor.dtype == tf.string:
        return [_text(value) for value in flat]
    if tensor.dtype.is_floating:
        return [_float(value) for value in flat]
    if not (tensor.dtype.is_integer or tensor.dtype == tf.bool):
        raise TypeError(f"a case cannot have values of dtype {tensor.dtype.name}")
    return flat.tolist()


def _text(value):
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def _float(value):
    """The shortest decimal that its dtype reads back as the same number."""
    if not math.isfinite(value):
        return str(value)
    decimals = (float(f"{float(value):.{digits}g}") for digits in range(1, 18))
    return next(decimal for decimal in decimals if type(value)(decimal) == value)
