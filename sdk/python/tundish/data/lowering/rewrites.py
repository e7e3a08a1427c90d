"""Functions that are said with others."""

from __future__ import annotations

import struct
from typing import Any

from ..dtypes import as_dtype
from ..graph import Column, Spec
from .rule import Bound, Refusal, Rewrite, Rule, refuse
from .specs import ensured_shape

__all__ = ["RULES"]


def _do(name: str, *args: Any, **kwargs: Any) -> Any:
    from . import record

    return record(name, args, kwargs)


def _identity(input: Any) -> Any:
    """nothing"""
    return input


def _ensured(x: Any, shape: Any) -> Any:
    """`ensure_shape`; nothing where the shape is known to be that"""
    spec = x.spec if isinstance(x, Column) else Spec()
    if spec.shape is not None and len(spec.shape) == len(shape):
        if all(wanted in (None, -1) or size == wanted for size, wanted in zip(spec.shape, shape)):
            return x
    return _do("tundish.ensure_shape", x, shape)


def _believed(x: Any, shape: Any) -> Any:
    """nothing: TensorFlow checks no row either"""
    return x


def _length(input: Any, unit: Any) -> Any:
    """`length(x)`, or `string_length`"""
    if unit == "BYTE":
        return _do("tundish.length", input)
    return _do("tundish.string_length", input, unit)


def _square(x: Any) -> Any:
    """`x * x`"""
    return x * x


def _squared_difference(x: Any, y: Any) -> Any:
    """`(x - y) * (x - y)`"""
    return (x - y) * (x - y)


def _divide_no_nan(x: Any, y: Any) -> Any:
    """`where(y == 0, 0, x / y)`"""
    dtype = x.spec.dtype if isinstance(x, Column) else y.spec.dtype
    if dtype not in ("float32", "float64"):
        refuse("of integers it divides in their dtype", "cast to float32 first")
    return _do("tf.where", _do("tf.equal", y, 0.0), 0.0, x / y)


def _zeros_like(input: Any, dtype: Any) -> Any:
    """`cast(x < x, dtype)`"""
    return _do("tf.cast", _do("tf.less", input, input), _own_dtype(input, dtype))


def _ones_like(input: Any, dtype: Any) -> Any:
    """`cast(not x < x, dtype)`"""
    return _do("tf.cast", _do("tf.logical_not", _do("tf.less", input, input)), _own_dtype(input, dtype))


def _own_dtype(value: Any, dtype: Any) -> Any:
    own = value.spec.dtype
    if own in (None, "string", "bool"):
        refuse("the column is not of numbers", "use tundish.tf.where")
    return dtype or own


def _abs(x: Any) -> Any:
    """`abs(x)`; of tf.signal.stft `stft`"""
    call = x.call if isinstance(x, Column) else None
    if call is not None and call.name == "tf.signal.stft":
        return _do("tundish.stft", *call.args, **call.kwargs)
    return _do("tundish.abs", x)


def _with_axes(x: Any, items: Any) -> Any:
    """x[items], where None stands for a new axis."""
    kept = tuple(item for item in items if item is not None)
    result = x if all(item is Ellipsis or _is_whole(item) for item in kept) else _do("tundish.slice", x, kept)
    axes = [item for item in items if item is None or item is Ellipsis or isinstance(item, slice)]
    dots = next((i for i, item in enumerate(axes) if item is Ellipsis), len(axes))
    for i, item in enumerate(axes[:dots]):
        result = _do("tf.expand_dims", result, i) if item is None else result
    for i, item in enumerate(reversed(axes[dots:])):  # counted from the end
        result = _do("tf.expand_dims", result, -i - 1) if item is None else result
    return result


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and (item.start, item.stop, item.step) == (None, None, None)


def _shape(x: Any, slice_spec: Any) -> Any:
    """`x[i]`; of tf.shape(x) `size(x)`; a new axis is `expand_dims`"""
    items = slice_spec if isinstance(slice_spec, tuple) else (slice_spec,)
    if any(item is None for item in items):
        return _with_axes(x, items)
    call = x.call if isinstance(x, Column) else None
    if call is None or call.name != "tf.shape":
        return _do("tundish.slice", x, slice_spec)
    of = call.args[0] if call.args else call.kwargs["input"]
    rank = of.spec.rank
    if not isinstance(slice_spec, int) or rank is None:
        refuse("only one dimension at a time is known", "use tundish.tf.shape(x)[0]")
    size = of.spec.shape[slice_spec]
    if size is not None:
        return _do("tf.constant", size, dtype=call.spec.dtype)
    if slice_spec not in (0, -rank):
        refuse("expressions know the size of dimension 0 only", "write the number if it is constant")
    return _do("tf.cast", _do("tundish.size", of), call.spec.dtype)


def _size(input: Any, out_type: Any) -> Any:
    """`size(x)` of a vector"""
    if input.spec.rank != 1:
        refuse("expressions know the size of dimension 0 only", "reshape to a vector first")
    return _do("tf.cast", _do("tundish.size", input), out_type)


def _random(of: str) -> Rule:
    remedy = "use tf.random.stateless_uniform, or a random layer"
    return Refusal(of, why="it draws from TensorFlow's own state", remedy=remedy)


def _single(value: float) -> float:
    """The nearest float32."""
    single: float = struct.unpack("f", struct.pack("f", value))[0]
    return single


def _uniform(shape: Any, seed: Any, minval: Any, maxval: Any, dtype: Any, alg: Any) -> Any:
    """`stateless_uniform(s0, s1, n)`, scaled"""
    drawn = _do("tundish.stateless_uniform", shape, seed, alg)
    if as_dtype(dtype) != "float32" or isinstance(minval, Column) or isinstance(maxval, Column):
        refuse("stateless_uniform makes float32, between constants", "scale them: u * (high - low) + low")
    low, high = _single(minval or 0), _single(1 if maxval is None else maxval)
    if (low, high) == (0, 1):
        return drawn
    return drawn * _single(high - low) + low


def _argmax(input: Any, axis: Any, output_type: Any) -> Any:
    """`argmax(x, axis=axis)`"""
    largest = _do("tundish.argmax", input, axis)
    return largest if as_dtype(output_type) == "int64" else _do("tf.cast", largest, as_dtype(output_type))


def _variance(input_tensor: Any, axis: Any, keepdims: Any) -> Any:
    """`mean` of the squared differences from the `mean`"""
    off = input_tensor - _do("tf.reduce_mean", input_tensor, axis, axis is not None)
    return _do("tf.reduce_mean", off * off, axis, keepdims)


def _deviation(input_tensor: Any, axis: Any, keepdims: Any) -> Any:
    """`sqrt` of the variance"""
    return _do("tf.sqrt", _variance(input_tensor, axis, keepdims))


def _is_inf(x: Any) -> Any:
    """`not isfinite(x) and not isnan(x)`"""
    finite, nan = _do("tf.math.is_finite", x), _do("tf.math.is_nan", x)
    return _do("tf.logical_and", _do("tf.logical_not", finite), _do("tf.logical_not", nan))


def _reduction(name: str) -> Rule:
    def into(input_tensor: Any, axis: Any, keepdims: Any) -> Any:
        reduced = _do(f"tundish.reduce_{name}", input_tensor, axis)
        if not keepdims:
            return reduced
        if isinstance(axis, int):
            return _do("tf.expand_dims", reduced, axis)
        rank = input_tensor.spec.rank
        if rank is None:
            refuse("keepdims=True of several axes, where the rank is not known", "reduce one axis at a time")
        for each in sorted({number % rank for number in (range(rank) if axis is None else axis)}):
            reduced = _do("tf.expand_dims", reduced, each)
        return reduced

    return Rewrite(
        f"tf.reduce_{name}(input_tensor, axis=None, keepdims=False, name=None)",
        into=into,
        shown=f"`{name}(x, axis=axis)`, and with keepdims `expand_dims`",
    )


RULES: list[Rule] = [
    *(_reduction(name) for name in ("sum", "mean", "min", "max", "any", "all")),
    Rewrite("tf.abs(x, name=None)", into=_abs),
    Rewrite(
        "tf.random.stateless_uniform(shape, seed, minval=0, maxval=None, dtype='float32', name=None,"
        " alg='auto_select')",
        into=_uniform,
    ),
    Rewrite("tf.argmax(input, axis=None, output_type='int64', name=None)", into=_argmax),
    Rewrite("tf.math.reduce_variance(input_tensor, axis=None, keepdims=False, name=None)", into=_variance),
    Rewrite("tf.math.reduce_std(input_tensor, axis=None, keepdims=False, name=None)", into=_deviation),
    Rewrite("tf.math.is_inf(x, name=None)", into=_is_inf),
    Rewrite("tf.strided_slice(x, slice_spec, name=None)", into=_shape),
    Rewrite("tf.identity(input, name=None)", into=_identity),
    Rewrite("tf.ensure_shape(x, shape, name=None)", ensured_shape, into=_ensured),
    Rewrite("tundish.set_shape(x, shape)", ensured_shape, into=_believed),
    Rewrite("tf.strings.length(input, unit='BYTE', name=None)", into=_length),
    Rewrite("tf.square(x, name=None)", into=_square),
    Rewrite("tf.math.squared_difference(x, y, name=None)", into=_squared_difference),
    Refusal(
        "tf.nn.relu(features, name=None)",
        why="what it makes of NaN and -0.0 depends on the machine",
        remedy="use tf.maximum(x, 0)",
    ),
    Rewrite("tf.math.divide_no_nan(x, y, name=None)", into=_divide_no_nan),
    Rewrite("tf.zeros_like(input, dtype=None, name=None)", into=_zeros_like),
    Rewrite("tf.ones_like(input, dtype=None, name=None)", into=_ones_like),
    Rewrite("tf.size(input, out_type='int32', name=None)", into=_size),
    *(
        Refusal(
            of,
            why="it runs Python for each row",
            remedy="use functions of tundish.tf, or Dataset.map_python(function, output_signature)",
        )
        for of in (
            "tf.py_function(func=None, inp=None, Tout=None, name=None)",
            "tf.numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None)",
        )
    ),
    _random("tf.random.uniform(shape, minval=0, maxval=None, dtype='float32', seed=None, name=None)"),
    _random("tf.random.normal(shape, mean=0.0, stddev=1.0, dtype='float32', seed=None, name=None)"),
    _random("tf.random.shuffle(value, seed=None, name=None)"),
]
