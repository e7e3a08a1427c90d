"""Functions that move values and compute none: slices, pieces, orders, and constants of a shape."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import as_dtype
from ..graph import Column, Spec
from .rule import Bound, Rewrite, Rule, StageRule, refuse
from .specs import as_first, constant_spec

__all__ = ["RULES"]

PIECES = 64  # a tensor may be taken apart into
_BEYOND = 2**31 - 1  # the end of any dimension


def _do(name: str, *args: Any, **kwargs: Any) -> Any:
    from . import record

    return record(name, args, kwargs)


def _number(value: Any, what: str) -> int:
    """A constant."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, int) or isinstance(value, bool):
        refuse(f"{what} must be a constant", "write the number")
    return int(value)


def _numbers(value: Any, what: str) -> list[int]:
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)):
        refuse(f"{what} must be constant", "write the numbers")
    return [_number(each, what) for each in value]


def _rank(value: Any) -> int:
    if value.spec.rank is None or value.spec.kind != "dense":
        refuse("the number of dimensions is not known", "use set_shape, or tundish.tf.ensure_shape")
    return int(value.spec.rank)


def _axis(value: Any, axis: Any) -> int:
    number, rank = _number(axis, "the axis"), _rank(value)
    if not -rank <= number < rank:
        refuse(f"the axis {number} is outside", "")
    return number % rank


def _at(value: Any, axis: int, item: Any) -> Any:
    """value[:, ..., item]"""
    return value[(*[slice(None)] * axis, item)]


def _size(value: Any, axis: int) -> int:
    size = value.spec.shape[axis]
    if size is None:
        refuse("the size of the dimension is not known", "use set_shape, or tundish.tf.ensure_shape")
    return int(size)


def _reversed(tensor: Any, axis: Any) -> Any:
    """a slice with step -1"""
    axes = {_axis(tensor, each) for each in _numbers(axis, "the axis")}
    items = [slice(None, None, -1) if i in axes else slice(None) for i in range(_rank(tensor))]
    return tensor[tuple(items)]


def _unstacked(value: Any, num: Any, axis: Any) -> Any:
    """`x[0]`, `x[1]` etc."""
    at = _axis(value, axis)
    count = _size(value, at)
    if count > PIECES:
        refuse(f"it has more than {PIECES} pieces", "use slices of those that are needed")
    return [_at(value, at, i) for i in range(count)]


def _unstacked_specs(bound: Bound) -> Any:
    shape = as_first(bound).shape
    if shape is None or isinstance(bound["axis"], Column) or not shape:
        return Spec()
    axis = bound["axis"] % len(shape)
    if shape[axis] is None:
        return Spec()
    inner = Spec(as_first(bound).dtype, (*shape[:axis], *shape[axis + 1 :]))
    return [inner] * (shape[axis] or 0)


def _pieces(value: Any, num_or_size_splits: Any, axis: Any) -> list[slice]:
    at = _axis(value, axis)
    if isinstance(num_or_size_splits, (list, tuple)):
        sizes = _numbers(num_or_size_splits, "the sizes")
        if -1 in sizes:
            sizes[sizes.index(-1)] = _size(value, at) - sum(sizes) - 1
    else:
        count = _number(num_or_size_splits, "the number of pieces")
        sizes = [_size(value, at) // count] * count
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    if len(sizes) > PIECES or value.spec.shape[at] not in (None, ends[-1]):
        refuse("the pieces are not those of the dimension", "use slices")
    if value.spec.shape[at] is None:
        refuse("the size of the dimension is not known", "use set_shape, or slices")
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _split(value: Any, num_or_size_splits: Any, axis: Any, num: Any) -> Any:
    """`x[a:b]`, `x[b:c]` etc."""
    return [_at(value, _axis(value, axis), piece) for piece in _pieces(value, num_or_size_splits, axis)]


def _split_specs(bound: Bound) -> Any:
    from .rule import Refused

    spec = as_first(bound)
    try:
        pieces = _pieces(bound["value"], bound["num_or_size_splits"], bound["axis"])
    except Refused:
        return Spec()
    shape, axis = list(spec.shape or ()), bound["axis"] % len(spec.shape or ())
    return [Spec(spec.dtype, (*shape[:axis], each.stop - each.start, *shape[axis + 1 :])) for each in pieces]


def _cut(input_: Any, begin: Any, size: Any) -> Any:
    """`x[a:b, c:d]`"""
    begins, sizes = _numbers(begin, "begin"), _numbers(size, "size")
    for axis, (first, count) in enumerate(zip(begins, sizes, strict=True)):
        # Beyond the end TensorFlow fails, and a slice is shorter.
        known = input_.spec.shape[axis] if input_.spec.shape is not None else None
        if first < 0 or count >= 0 and (known is None or first + count > known):
            refuse("it may lie outside, where a slice is shorter and tf.slice fails", "use x[a:b]")
    return input_[tuple(slice(a, None if n < 0 else a + n) for a, n in zip(begins, sizes, strict=True))]


def _gathered(params: Any, indices: Any, validate_indices: Any, axis: Any, batch_dims: Any) -> Any:
    """`x[i]`; of several indices, `stack` of these"""
    if batch_dims:
        refuse("it gathers from each row of a batch", "do it before batch, with one row's indices")
    if not isinstance(params, Column):
        params = _do("tf.constant", params, dtype=constant_spec(params).dtype)
    at = _axis(params, 0 if axis is None else axis)
    if isinstance(indices, Column):
        return _gathered_by_column(params, indices, at)
    index = indices.tolist() if hasattr(indices, "tolist") else indices
    found = index if isinstance(index, (list, tuple)) else [index]
    if not all(isinstance(each, int) and 0 <= each < _size(params, at) for each in found) or len(found) > PIECES:
        refuse(f"the indices are not at most {PIECES} numbers inside", "take slices, and tf.stack or tf.concat them")
    taken = [_at(params, at, each) for each in found]
    return taken[0] if isinstance(index, int) else _do("tf.stack", taken, at)


def _gathered_by_column(params: Any, indices: Any, at: int) -> Any:
    rank = _rank(indices)
    if rank > 1 or (rank == 1 and (indices.spec.shape[0] is None or indices.spec.shape[0] > PIECES)):
        refuse("the number of indices is not known", "do it before batch, where a row has one index")
    if rank == 1:
        taken = [_gathered_by_column(params, indices[i], at) for i in range(indices.spec.shape[0])]
        return _do("tf.stack", taken, at)
    # A negative index would count from the end, and is an error of TensorFlow's.
    if not str(indices.spec.dtype).startswith("uint"):
        indices = _do("tf.where", _do("tf.less", indices, 0), _BEYOND, indices)
    return _at(params, at, indices)


def _copied(input: Any, multiples: Any) -> Any:
    """`concat` of copies; `where([0, 0, 0] == 0, x, x)` of a last dimension of 1"""
    counts = _numbers(multiples, "multiples")
    if len(counts) != _rank(input) or min(counts, default=1) < 1 or math.prod(counts) > PIECES:
        refuse(f"multiples are not one for each dimension, and at most {PIECES} copies", "use tf.concat or tf.stack of columns")
    if counts and input.spec.shape[-1] == 1 and not set(counts[:-1]) - {1}:
        return input if counts[-1] == 1 else _repeated(input, counts[-1])
    for axis, count in enumerate(counts):
        input = input if count == 1 else _do("tf.concat", [input] * count, axis)
    return input


def _elements_repeated(input: Any, repeats: Any, axis: Any) -> Any:
    """`stack` of copies, and `reshape`"""
    count, rank = _number(repeats, "repeats"), _rank(input)
    if not 0 < count <= PIECES or (axis is None and rank > 1):
        refuse(f"it repeats a matrix without an axis, or more than {PIECES} times", "use tf.stack or tf.concat of columns")
    if rank == 0:
        return _repeated(input, count)
    at = _axis(input, axis or 0)
    shape = [size if size is None or i != at else size * count for i, size in enumerate(input.spec.shape)]
    if shape.count(None) > 1:
        refuse("the sizes of several dimensions are not known", "use set_shape, or tundish.tf.ensure_shape")
    copies = _do("tf.stack", [input] * count, at + 1)
    return input if count == 1 else _do("tf.reshape", copies, [-1 if size is None else size for size in shape])


def _broadcast(input: Any, shape: Any) -> Any:
    """`where([0, 0, 0] == 0, x, x)` of a number; else `reshape`, and `concat` of copies"""
    wanted, own = _numbers(shape, "the shape"), list(input.spec.shape or ())
    if _rank(input) == 0 and len(wanted) == 1 and 0 < wanted[0] <= PIECES:
        return _repeated(input, wanted[0])
    own = [1] * (len(wanted) - len(own)) + own
    if len(own) != len(wanted) or any(size not in (1, to) for size, to in zip(own, wanted, strict=True)):
        refuse("the shape of the column is not known, or does not fit", "use set_shape, or tundish.tf.ensure_shape")
    input = input if len(own) == _rank(input) else _do("tf.reshape", input, own)
    return _copied(input, [to // size for size, to in zip(own, wanted, strict=True)])


def _repeated(value: Any, count: int) -> Any:
    """Broadcast without arithmetic, which would change denormal numbers."""
    return _do("tf.where", _do("tf.equal", [0] * count, 0), value, value)


def _in_colours(images: Any) -> Any:
    """`where([0, 0, 0] == 0, x, x)`"""
    if images.spec.rank is None or (images.spec.shape or (None,))[-1] != 1:
        refuse("the last dimension is not known to be 1", "use set_shape([height, width, 1])")
    return _repeated(images, 3)


def _turned(image: Any, k: Any) -> Any:
    """`transpose`, and a slice with step -1"""
    rank, times = _rank(image), _number(k, "k") % 4
    if rank not in (3, 4):
        refuse("it is no image", "use set_shape")
    at = rank - 3
    order = [*range(at), at + 1, at, at + 2]
    if times == 2:
        return _reversed(image, [at, at + 1])
    if times == 1:
        return _do("tf.transpose", _reversed(image, [at + 1]), order)
    return _reversed(_do("tf.transpose", image, order), [at + 1]) if times == 3 else image


def _boxed(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Any:
    """as `tf.pad`"""
    at = _rank(image) - 3
    pairs = [[0, 0] for _ in range(at + 3)]
    for axis, offset, target in ((at, offset_height, target_height), (at + 1, offset_width, target_width)):
        before = _number(offset, "the offset")
        pairs[axis] = [before, _number(target, "the target") - before - _size(image, axis)]
    if min(map(min, pairs)) < 0:
        refuse("the image does not fit into the box", "make it larger")
    return _padded(image, pairs, "CONSTANT", 0)


def _cropped_or_padded(image: Any, target_height: Any, target_width: Any) -> Any:
    """slices, and as `tf.pad`, of an image whose size is known"""
    at, offsets = _rank(image) - 3, []
    targets = [_number(each, "the target") for each in (target_height, target_width)]
    for axis, target in zip((at, at + 1), targets, strict=True):
        size = _size(image, axis)
        start = max((size - target) // 2, 0) if size > target else 0
        image = _at(image, axis, slice(start, start + target)) if size > target else image
        offsets.append(max((target - size) // 2, 0))
    return _boxed(image, *offsets, *targets)


def _central(image: Any, central_fraction: Any) -> Any:
    """a slice, of an image whose size is known"""
    rank, fraction = _rank(image), central_fraction
    if isinstance(fraction, Column) or not 0 < fraction <= 1 or rank != 3:
        refuse("central_fraction must be a number up to 1, of an image", "write the number")
    items = []
    for axis in range(2):
        size = _size(image, axis)
        start = int((size - size * fraction) / 2)
        items.append(slice(start, start + size - start * 2))
    return image if fraction == 1.0 else image[tuple(items)]


def _padded(tensor: Any, paddings: Any, mode: Any, constant_values: Any) -> Any:
    """`pad_or_truncate`; `concat` before a dimension, and of REFLECT and SYMMETRIC"""
    pairs = [_numbers(pair, "paddings") for pair in (paddings.tolist() if hasattr(paddings, "tolist") else paddings)]
    value = constant_values.tolist() if hasattr(constant_values, "tolist") else constant_values
    if isinstance(value, Column):
        refuse("the value is a column", "write the number")
    kind = str(mode).upper()
    for axis, (before, after) in enumerate(pairs):
        if not before and not after:
            continue
        if kind != "CONSTANT":
            tensor = _mirrored(tensor, axis, before, after, int(kind == "REFLECT"))
        elif tensor.spec.shape[axis] is None or (before and None not in tensor.spec.shape):
            tensor = _filled_around(tensor, axis, before, after, value)
        else:
            tensor = _filled_after(tensor, axis, after, value)
            turned = slice(None, None, -1)
            tensor = _at(_filled_after(_at(tensor, axis, turned), axis, before, value), axis, turned) if before else tensor
    return tensor


def _filled_after(tensor: Any, axis: int, count: int, value: Any) -> Any:
    options = {} if value == 0 else {"value": value}
    return _do("tundish.pad_or_truncate", tensor, _size(tensor, axis) + count, axis=axis, **options) if count else tensor


def _mirrored(tensor: Any, axis: int, before: int, after: int, edge: int) -> Any:
    """edge: how many of the outermost values are not repeated."""
    size = _size(tensor, axis)
    if max(before, after) > size - edge:
        refuse("it pads with more than there is", "pad less")
    first = slice(before - 1 + edge, None if edge == 0 else edge - 1, -1)
    last = size - 1 - edge
    end = slice(last, None if last < after else last - after, -1)
    pieces = [_at(tensor, axis, first)] * bool(before) + [tensor] + [_at(tensor, axis, end)] * bool(after)
    return tensor if len(pieces) == 1 else _do("tf.concat", pieces, axis)


def _filled_around(tensor: Any, axis: int, before: int, after: int, value: Any) -> Any:
    shape, dtype = list(tensor.spec.shape), tensor.spec.dtype
    if any(size is None for size in (*shape[:axis], *shape[axis + 1 :])):
        refuse("the size of another dimension is not known", "use set_shape, or tundish.tf.ensure_shape")
    if value == 0 and dtype in ("string", "bool"):
        value = "" if dtype == "string" else False

    def block(count: int) -> list[Any]:
        return [_filled(value, [*shape[:axis], count, *shape[axis + 1 :]], dtype)] if count else []

    return _do("tf.concat", [*block(before), tensor, *block(after)], axis)


def _longer(bound: Bound) -> Spec:
    spec = as_first(bound)
    shape = list(spec.shape or ())
    shape[bound["axis"]] = bound["length"]
    return Spec(spec.dtype, tuple(shape), spec.kind)


def _rolled(input: Any, shift: Any, axis: Any) -> Any:
    """`concat` of two slices"""
    at = _axis(input, axis)
    by = _number(shift, "the shift") % max(_size(input, at), 1)
    if by == 0:
        return input
    return _do("tf.concat", [_at(input, at, slice(-by, None)), _at(input, at, slice(None, -by))], at)


def _joined(inputs: Any, axis: Any, keepdims: Any, separator: Any) -> Any:
    """`x[0] + separator + x[1]`, of a vector"""
    if _rank(inputs) != 1 or keepdims or not 0 < _size(inputs, 0) <= PIECES:
        refuse(f"the texts are not a vector of at most {PIECES}, whose size is known", "use tf.strings.join")
    return _do("tf.strings.join", [inputs[i] for i in range(_size(inputs, 0))], separator)


def _masked(lengths: Any, maxlen: Any, dtype: Any) -> Any:
    """`[0, 1, 2] < n`"""
    if not isinstance(lengths, Column) or lengths.spec.rank != 0 or maxlen is None:
        refuse("only of one length, with a constant maxlen", "use it before batch, with maxlen")
    mask = _do("tf.less", list(range(_number(maxlen, "maxlen"))), lengths)
    return mask if as_dtype(dtype) == "bool" else _do("tf.cast", mask, dtype)


def _transposed(bound: Bound) -> Spec:
    spec, perm = as_first(bound), bound["perm"]
    if spec.shape is None or isinstance(perm, Column):
        return Spec(spec.dtype)
    rank = len(spec.shape)
    order = range(rank)[::-1] if perm is None else [int(axis) % rank for axis in perm]
    return Spec(spec.dtype, tuple(spec.shape[axis] for axis in order))


def _check_transpose(bound: Bound, parameters: Bound) -> None:
    if bound["conjugate"]:
        refuse("columns hold no complex numbers", "leave conjugate out")
    if bound["perm"] is not None:
        parameters["perm"] = _numbers(bound["perm"], "perm")


def _filled(value: Any, shape: Any, dtype: Any) -> Any:
    sizes = _numbers(shape if isinstance(shape, (list, tuple)) or hasattr(shape, "tolist") else [shape], "the shape")
    nested: Any = value
    for size in reversed(sizes):
        nested = [nested] * size
    return _do("tf.constant", nested, dtype=dtype)


def _zeros(shape: Any, dtype: Any, layout: Any) -> Any:
    """a constant"""
    return _filled(0 if as_dtype(dtype) != "string" else "", shape, dtype)


def _ones(shape: Any, dtype: Any, layout: Any) -> Any:
    """a constant"""
    return _filled(1, shape, dtype)


def _fill(dims: Any, value: Any, layout: Any) -> Any:
    """a constant"""
    if isinstance(value, Column):
        refuse("the value is a column", "use x + tf.zeros(shape)")
    return _filled(value, dims, constant_spec(value).dtype)


def _range(start: Any, limit: Any, delta: Any, dtype: Any) -> Any:
    """a constant"""
    first, last = (0, start) if limit is None else (start, limit)
    numbers = list(range(_number(first, "start"), _number(last, "limit"), _number(delta, "delta")))
    return _do("tf.constant", numbers, dtype=dtype or "int32")


RULES: list[Rule] = [
    StageRule(
        "tf.transpose(a, perm=None, conjugate=False, name='transpose')",
        _transposed,
        ignored=("name", "conjugate"),
        stage="transpose",
        columns=("a",),
        check=_check_transpose,
    ),
    Rewrite("tf.reverse(tensor, axis, name=None)", into=_reversed),
    Rewrite("tf.unstack(value, num=None, axis=0, name='unstack')", _unstacked_specs, into=_unstacked),
    Rewrite(
        "tf.split(value, num_or_size_splits, axis=0, num=None, name='split')", _split_specs, into=_split
    ),
    Rewrite("tf.slice(input_, begin, size, name=None)", into=_cut),
    Rewrite(
        "tf.gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None)", into=_gathered
    ),
    Rewrite("tf.tile(input, multiples, name=None)", into=_copied),
    Rewrite("tf.repeat(input, repeats, axis=None, name=None)", into=_elements_repeated),
    Rewrite("tf.broadcast_to(input, shape, name=None)", into=_broadcast),
    Rewrite("tf.image.rot90(image, k=1, name=None)", into=_turned),
    Rewrite(
        "tf.image.pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width)", into=_boxed
    ),
    Rewrite("tf.image.resize_with_crop_or_pad(image, target_height, target_width)", into=_cropped_or_padded),
    Rewrite("tf.pad(tensor, paddings, mode='CONSTANT', constant_values=0, name=None)", into=_padded),
    StageRule(
        "tundish.pad_or_truncate(x, length, value=0, axis=-1)",
        _longer,
        ignored=(),
        stage="pad_or_truncate",
        columns=("x",),
    ),
    Rewrite("tf.roll(input, shift, axis, name=None)", as_first, into=_rolled),
    Rewrite("tf.strings.reduce_join(inputs, axis=None, keepdims=False, separator='', name=None)", into=_joined),
    Rewrite("tf.sequence_mask(lengths, maxlen=None, dtype='bool', name=None)", into=_masked),
    Rewrite("tf.image.grayscale_to_rgb(images, name=None)", into=_in_colours),
    Rewrite("tf.image.central_crop(image, central_fraction)", into=_central),
    Rewrite("tf.zeros(shape, dtype='float32', name=None, layout=None)", into=_zeros),
    Rewrite("tf.ones(shape, dtype='float32', name=None, layout=None)", into=_ones),
    Rewrite("tf.fill(dims, value, name=None, layout=None)", into=_fill),
    Rewrite("tf.range(start, limit=None, delta=1, dtype=None, name='range')", into=_range),
]
