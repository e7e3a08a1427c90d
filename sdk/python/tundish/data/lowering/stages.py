"""Functions that are content stages with one result."""

from __future__ import annotations

from typing import Any

from ..dtypes import as_dtype
from ..graph import Column, Spec
from .rule import Bound, Rule, StageRule, is_literal, refuse
from .specs import as_first, constant_spec, ensured_shape, with_dtype

__all__ = ["RULES"]


def _ragged_words(bound: Bound) -> Spec:
    spec = as_first(bound)
    if spec.shape == ():
        return Spec("string", (None,))
    return Spec("string", None if spec.shape is None else (*spec.shape, None), "ragged")


def _raw(bound: Bound) -> Spec:
    spec = as_first(bound)
    return Spec(as_dtype(bound["out_type"]), None if spec.shape is None else (*spec.shape, None))


def _one_hot(bound: Bound) -> Spec:
    spec, axis = as_first(bound), bound["axis"]
    values = [value for value in (bound["on_value"], bound["off_value"]) if value is not None]
    dtype = bound["dtype"]
    from ..dtypes import of_value

    dtype = as_dtype(dtype) if dtype is not None else of_value(values[0]) if values else "float32"
    if spec.shape is None:
        return Spec(dtype)
    at = len(spec.shape) if axis in (None, -1) else axis
    return Spec(dtype, (*spec.shape[:at], bound["depth"], *spec.shape[at:]))


def _dtype_word(name: str) -> Any:
    def check(bound: Bound, parameters: Bound) -> None:
        if name in parameters:
            parameters[name] = as_dtype(parameters[name])

    return check


def _check_one_hot(bound: Bound, parameters: Bound) -> None:
    if isinstance(bound["depth"], Column):
        refuse("the depth must be a constant", "write the number")
    _dtype_word("dtype")(bound, parameters)


def _reshaped(bound: Bound) -> Spec:
    shape = bound["shape"]
    if isinstance(shape, Column):
        return Spec(as_first(bound).dtype)
    return Spec(as_first(bound).dtype, tuple(None if size == -1 else int(size) for size in shape))

def _check_ensured(bound: Bound, parameters: Bound) -> None:
    parameters["shape"] = [-1 if size is None else int(size) for size in bound["shape"]]


def _check_shape(bound: Bound, parameters: Bound) -> None:
    shape = bound["shape"]
    if isinstance(shape, Column) or any(isinstance(size, Column) for size in shape):
        refuse("the shape must be constant", "write -1 for the dimension that is not known")
    parameters["shape"] = [int(size) for size in shape]


def _expanded(bound: Bound) -> Spec:
    spec = as_first(bound)
    if spec.shape is None:
        return spec
    axis = bound["axis"] if bound["axis"] >= 0 else bound["axis"] + len(spec.shape) + 1
    return Spec(spec.dtype, (*spec.shape[:axis], 1, *spec.shape[axis:]), spec.kind)


def _squeezed(bound: Bound) -> Spec:
    spec, axis = as_first(bound), bound["axis"]
    is_any = axis is None or axis == []
    if spec.shape is None or is_any and None in spec.shape:
        return Spec(spec.dtype)
    axes = [axis] if isinstance(axis, int) else axis or [i for i, size in enumerate(spec.shape) if size == 1]
    gone = {i % len(spec.shape) for i in axes}
    return Spec(spec.dtype, tuple(size for i, size in enumerate(spec.shape) if i not in gone))


def _concatenated(bound: Bound) -> Spec:
    dtype = next((constant_spec(each).dtype for each in bound["values"] if not is_literal(each)), None)
    parts = [constant_spec(value) for value in bound["values"]]
    if any(not spec.shape for spec in parts):
        return Spec(dtype)
    shape = list(parts[0].shape or ())
    sizes = [(spec.shape or ())[bound["axis"]] for spec in parts]
    shape[bound["axis"]] = None if None in sizes else sum(size or 0 for size in sizes)
    kind = next((spec.kind for spec in parts if spec.kind != "dense"), "dense")
    return Spec(dtype, tuple(shape), kind)


def _stacked(bound: Bound) -> Spec:
    spec = next((value.spec for value in bound["values"] if isinstance(value, Column)), Spec())
    if spec.shape is None:
        return Spec(spec.dtype, None, spec.kind)
    axis = bound["axis"] if bound["axis"] >= 0 else bound["axis"] + len(spec.shape) + 1
    return Spec(spec.dtype, (*spec.shape[:axis], len(bound["values"]), *spec.shape[axis:]), spec.kind)


def _concat_axis(bound: Bound, parameters: Bound) -> None:
    axis = bound["axis"]
    if isinstance(axis, Column):
        refuse("the axis must be a constant", "write the number")
    if axis == -1:
        parameters.pop("axis", None)


def _of_kind(kind: str) -> Any:
    return lambda bound: Spec(as_first(bound).dtype, as_first(bound).shape, kind)


def _dense(bound: Bound) -> Spec:
    spec = as_first(bound)
    shape = bound.get("shape")
    return Spec(
        spec.dtype, tuple(shape) if shape is not None and not isinstance(shape, Column) else spec.shape
    )


def _check_dense(bound: Bound, parameters: Bound) -> None:
    if str(parameters.get("default_value")) in ("0", "0.0", ""):  # the default
        del parameters["default_value"]
    if "shape" in parameters:
        parameters["shape"] = [None if size in (None, -1) else int(size) for size in parameters["shape"]]


def _check_ragged(bound: Bound, parameters: Bound) -> None:
    if bound["lengths"] is not None or bound["ragged_rank"] != 1:
        refuse("lengths and ragged_rank are not offered", "use padding=")
    parameters.pop("row_splits_dtype", None)


def _check_words(bound: Bound, parameters: Bound) -> None:
    for name, value in parameters.items():
        if isinstance(value, tuple) or hasattr(value, "tolist"):
            parameters[name] = list(value)


def _characters(bound: Bound) -> Spec:
    spec = _ragged_words(bound)
    return spec


def _stft_spec(dtype: str) -> Any:
    def infer(bound: Bound) -> Spec:
        shape = as_first(bound).shape
        length = bound["fft_length"]
        bins = None if length is None else length // 2 + 1
        return Spec(dtype, None if shape is None else (*shape[:-1], None, bins))

    return infer


def _check_stft(bound: Bound, parameters: Bound) -> None:
    window = parameters.pop("window_fn", "hann")
    window = window if isinstance(window, str) or window is None else getattr(window, "__name__", "")
    if window is not None:
        window = window.rpartition(".")[2].removesuffix("_window")
        if window not in ("hann", "hamming"):
            refuse("the window is hann, hamming or none", "use window_fn=None")
    if window != "hann":
        parameters["window"] = window


def _complex(bound: Bound, parameters: Bound) -> None:
    refuse("columns hold no complex numbers", "use tundish.tf.abs of it, the magnitude")


_STFT = (
    "(signals, frame_length, frame_step, fft_length=None, window_fn='hann', pad_end=False, name=None)"
)


def _sound(bound: Bound) -> list[Spec]:
    counts = [count if count > 0 else None for count in (bound["desired_samples"], bound["desired_channels"])]
    return [Spec("float32", tuple(counts)), Spec("int32", ())]


def _no_shape(bound: Bound, parameters: Bound) -> None:
    refuse("a shape as a column", "take one dimension: tundish.tf.shape(x)[0]")


RULES: list[Rule] = [
    StageRule(
        "tf.shape(input, out_type='int32', name=None)",
        lambda bound: Spec(as_dtype(bound["out_type"]), (as_first(bound).rank,)),
        stage="map",
        columns=("input",),
        check=_no_shape,
        shown="of it `[0]`: `size(x)`",
    ),
    StageRule(
        "tf.io.decode_base64(input, name=None)", as_first, stage="decode_base64", columns=("input",)
    ),
    StageRule(
        "tf.io.decode_compressed(bytes, compression_type='', name=None)",
        as_first,
        stage="decode_compressed",
        columns=("bytes",),
    ),
    StageRule(
        "tundish.string_length(input, unit='BYTE', name=None)",
        with_dtype("int32"),
        stage="string_length",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.unicode_split(input, input_encoding, errors='replace', replacement_char=65533, name=None)",
        _characters,
        stage="unicode_split",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.ngrams(data, ngram_width, separator=' ', pad_values=None, padding_width=None,"
        " preserve_short_sequences=False, name=None)",
        as_first,
        stage="ngrams",
        columns=("data",),
        check=_check_words,
    ),
    StageRule(
        "tf.strings.to_hash_bucket_fast(input, num_buckets, name=None)",
        with_dtype("int64"),
        stage="string_to_hash_bucket_fast",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.to_hash_bucket_strong(input, num_buckets, key, name=None)",
        with_dtype("int64"),
        stage="string_to_hash_bucket_strong",
        columns=("input",),
        check=_check_words,
    ),
    StageRule(
        "tf.strings.as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill='', name=None)",
        with_dtype("string"),
        stage="as_string",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.substr(input, pos, len, unit='BYTE', name=None)",
        as_first,
        stage="substr",
        columns=("input",),
    ),
    StageRule(
        "tf.concat(values, axis, name=None)",
        _concatenated,
        stage="concat",
        columns=("values",),
        joined=True,
        alike=True,
        check=_concat_axis,
    ),
    StageRule(
        "tf.stack(values, axis=0, name=None)",
        _stacked,
        stage="stack",
        columns=("values",),
        joined=True,
        alike=True,
    ),
    StageRule(
        "tundish.sparse_to_dense(sp_input, default_value=None, shape=None)",
        _dense,
        stage="to_dense",
        columns=("sp_input",),
        check=_check_dense,
    ),
    StageRule(
        "tf.RaggedTensor.to_tensor(self, default_value=None, name=None, shape=None)",
        _dense,
        stage="to_dense",
        columns=("self",),
        check=_check_dense,
    ),
    StageRule(
        "tf.RaggedTensor.to_sparse(self, name=None)",
        _of_kind("sparse"),
        stage="to_sparse",
        columns=("self",),
    ),
    StageRule(
        "tf.sparse.from_dense(tensor, name=None)",
        _of_kind("sparse"),
        stage="to_sparse",
        columns=("tensor",),
    ),
    StageRule(
        "tf.RaggedTensor.from_tensor(tensor, lengths=None, padding=None, ragged_rank=1, name=None,"
        " row_splits_dtype='int64')",
        _of_kind("ragged"),
        stage="to_ragged",
        columns=("tensor",),
        check=_check_ragged,
    ),
    StageRule(
        "tf.RaggedTensor.from_sparse(st_input, name=None, row_splits_dtype='int64')",
        _of_kind("ragged"),
        stage="to_ragged",
        columns=("st_input",),
        ignored=("name", "row_splits_dtype"),
    ),
    StageRule(
        "tf.signal.stft" + _STFT,
        _stft_spec("complex64"),
        stage="stft",
        columns=("signals",),
        check=_complex,
    ),
    StageRule(
        "tundish.stft" + _STFT,
        _stft_spec("float32"),
        stage="stft",
        columns=("signals",),
        check=_check_stft,
    ),
    StageRule(
        "tf.audio.decode_wav(contents, desired_channels=-1, desired_samples=-1, name=None)",
        _sound,
        stage="decode_wav",
        columns=("contents",),
        also="sample_rate",
    ),
    StageRule(
        "tf.io.read_file(filename, name=None)",
        with_dtype("string"),
        stage="read_file",
        columns=("filename",),
    ),
    StageRule(
        "tf.io.decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None)",
        _raw,
        stage="decode_raw",
        columns=("input_bytes",),
        check=_dtype_word("out_type"),
    ),
    StageRule(
        "tf.strings.lower(input, encoding='', name=None)",
        as_first,
        stage="string_lower",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.upper(input, encoding='', name=None)",
        as_first,
        stage="string_upper",
        columns=("input",),
    ),
    StageRule("tf.strings.strip(input, name=None)", as_first, stage="string_strip", columns=("input",)),
    StageRule(
        "tf.strings.split(input, sep=None, maxsplit=-1, name=None)",
        _ragged_words,
        stage="string_split",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.regex_replace(input, pattern, rewrite, replace_global=True, name=None)",
        as_first,
        stage="regex_replace",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.regex_full_match(input, pattern, name=None)",
        with_dtype("bool"),
        stage="regex_full_match",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.to_number(input, out_type='float32', name=None)",
        lambda bound: Spec(as_dtype(bound["out_type"]), as_first(bound).shape, as_first(bound).kind),
        stage="string_to_number",
        columns=("input",),
        check=_dtype_word("out_type"),
    ),
    StageRule(
        "tf.one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None)",
        _one_hot,
        stage="one_hot",
        columns=("indices",),
        check=_check_one_hot,
    ),
    StageRule(
        "tf.reshape(tensor, shape, name=None)",
        _reshaped,
        stage="reshape",
        columns=("tensor",),
        check=_check_shape,
    ),
    StageRule(
        "tundish.ensure_shape(x, shape)",
        ensured_shape,
        stage="ensure_shape",
        columns=("x",),
        check=_check_ensured,
    ),
    StageRule(
        "tf.expand_dims(input, axis, name=None)", _expanded, stage="expand_dims", columns=("input",)
    ),
    StageRule("tf.squeeze(input, axis=None, name=None)", _squeezed, stage="squeeze", columns=("input",)),
]
