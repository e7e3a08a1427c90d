"""Keras' preprocessing layers: the input, the arguments of constructors, then those of calls."""

from __future__ import annotations

from typing import Any

from ..dtypes import as_dtype
from ..graph import Spec
from .rule import Bound, Rule, StageRule, refuse
from .specs import as_first, constant_spec, shapes_together, with_dtype

__all__ = ["RULES"]

FLOATS = with_dtype("float32")
LOOKUP = (
    " idf_weights=None, invert=False, output_mode='int', pad_to_max_tokens=False, sparse=False,"
    " encoding='utf-8', oov_method='floormod', salt=None, name=None, dtype=None, trainable=True)"
)
WARP = (
    "fill_mode='reflect', interpolation='bilinear', seed=None, fill_value=0.0, data_format=None, name=None,"
    " dtype=None, trainable=True, training=None)"
)
DRAWS = "seed=None, name=None, dtype=None, trainable=True, training=None)"
PLAIN = "name=None, dtype=None, trainable=True)"
# Not the layers whose result's dtype is a parameter.
IGNORED = ("name", "trainable")


def _encoded(bound: Bound, dtype: str) -> Spec:
    """The result of a layer with output_mode: in other modes than int only the dtype is known."""
    spec = as_first(bound)
    if bound["output_mode"] == "int":
        return Spec(dtype, spec.shape, spec.kind)
    kind = "sparse" if bound.get("sparse") else "dense"
    return Spec(as_dtype(bound["dtype"]) if bound.get("dtype") else "float32", None, kind)


def _own_dtype(bound: Bound) -> str:
    return as_dtype(bound["dtype"]) if bound["dtype"] is not None else "int64"


def _scaled(bound: Bound) -> Spec:
    """The factors may have dimensions of their own."""
    spec = as_first(bound)
    shapes = [spec.shape, *(constant_spec(bound[name]).shape for name in ("scale", "offset"))]
    return Spec("float32", shapes_together(shapes), spec.kind)


def _looked_up(dtype: str) -> Any:
    def infer(bound: Bound) -> Spec:
        spec = as_first(bound)
        if bound["output_mode"] == "int":
            return Spec(dtype if bound["invert"] else "int64", spec.shape, spec.kind)
        return _of_terms(bound)

    return infer


def _of_terms(bound: Bound) -> Spec:
    """The result of a layer that looks terms up, in other modes than int."""
    is_weighted = bound["output_mode"] in ("tf_idf", "tf-idf")
    return Spec("float32" if is_weighted else "int64", None, "sparse" if bound["sparse"] else "dense")


def _tokens(bound: Bound) -> Spec:
    spec, length = as_first(bound), bound["output_sequence_length"]
    if bound["output_mode"] != "int":
        return _of_terms(bound)
    if bound["ragged"]:
        return Spec("int64", None if spec.shape is None else (*spec.shape, None), "ragged")
    if spec.shape is None or bound["split"] is None:
        return Spec("int64")
    shape = spec.shape[:-1] if len(spec.shape) > 1 and spec.shape[-1] == 1 else spec.shape
    return Spec("int64", (*shape, length))


def _plain_values(bound: Bound, parameters: Bound) -> None:
    """Arrays as lists, and dtypes as words."""
    for name, value in parameters.items():
        if hasattr(value, "tolist"):
            parameters[name] = value.tolist()
        elif isinstance(value, tuple):
            parameters[name] = list(value)
    if "dtype" in parameters:
        parameters["dtype"] = as_dtype(parameters["dtype"])


def _lookup(bound: Bound, parameters: Bound) -> None:
    _plain_values(bound, parameters)
    parameters.pop("dtype", None)


def _floats(bound: Bound, parameters: Bound) -> None:
    _plain_values(bound, parameters)
    if parameters.pop("dtype", "float32") != "float32":
        refuse("the stage gives float32", "leave dtype out, and cast")


def _drawn(bound: Bound, parameters: Bound) -> None:
    _floats(bound, parameters)
    if "seed" in parameters and not isinstance(parameters["seed"], int):
        refuse("the seed must be a number", "write seed=1")


def _text(bound: Bound, parameters: Bound) -> None:
    _plain_values(bound, parameters)
    parameters.pop("dtype", None)
    for name in ("standardize", "split"):
        if callable(bound[name]):
            refuse(
                f"{name} is a function",
                "use tundish.tf.strings before, with standardize=None or split=None",
            )


def _layer(of: str, infer: Any, stage: str, check: Any, **options: Any) -> Rule:
    of = "tf.keras.layers." + of
    return StageRule(
        of, infer, ignored=IGNORED, stage=stage, columns=("inputs",), check=check, **options
    )


def _random(of: str, stage: str) -> Rule:
    # Each call of a layer draws on, and each stage draws by itself.
    return _layer(of, FLOATS, stage, _drawn, together=False, draws=True)


RULES: list[Rule] = [
    _layer(
        "StringLookup(inputs, max_tokens=None, num_oov_indices=1, mask_token=None, oov_token='[UNK]',"
        " vocabulary=None," + LOOKUP,
        _looked_up("string"),
        "string_lookup",
        _lookup,
    ),
    _layer(
        "IntegerLookup(inputs, max_tokens=None, num_oov_indices=1, mask_token=None, oov_token=-1,"
        " vocabulary=None, vocabulary_dtype='int64'," + LOOKUP,
        _looked_up("int64"),
        "integer_lookup",
        _lookup,
    ),
    _layer(
        "Hashing(inputs, num_bins, mask_value=None, salt=None, output_mode='int', sparse=False, "
        + PLAIN,
        lambda bound: _encoded(bound, _own_dtype(bound)),
        "hashing",
        _plain_values,
    ),
    _layer(
        "HashedCrossing(inputs, num_bins, output_mode='int', sparse=False, " + PLAIN,
        lambda bound: _encoded({**bound, "inputs": bound["inputs"][0]}, _own_dtype(bound)),
        "hashed_crossing",
        _plain_values,
        joined=True,
    ),
    _layer(
        "TextVectorization(inputs, max_tokens=None, standardize='lower_and_strip_punctuation',"
        " split='whitespace', ngrams=None, output_mode='int', output_sequence_length=None,"
        " pad_to_max_tokens=False, vocabulary=None, idf_weights=None, sparse=False, ragged=False,"
        " encoding='utf-8', " + PLAIN,
        _tokens,
        "text_vectorization",
        _text,
    ),
    _layer(
        "CategoryEncoding(inputs, num_tokens=None, output_mode='multi_hot', sparse=False, name=None,"
        " dtype=None, trainable=True, count_weights=None)",
        lambda bound: _encoded(bound, "int64"),
        "category_encoding",
        _plain_values,
        beside=("count_weights",),
    ),
    _layer(
        "Discretization(inputs, bin_boundaries=None, num_bins=None, epsilon=0.01, output_mode='int',"
        " sparse=False, dtype=None, name=None, trainable=True)",
        lambda bound: _encoded(bound, "int32"),
        "discretization",
        _plain_values,
    ),
    _layer(
        "Normalization(inputs, axis=-1, mean=None, variance=None, invert=False, " + PLAIN,
        FLOATS,
        "normalization",
        _floats,
    ),
    _layer("Rescaling(inputs, scale, offset=0.0, " + PLAIN, _scaled, "rescaling", _floats),
    _layer(
        "Resizing(inputs, height, width, interpolation='bilinear', crop_to_aspect_ratio=False,"
        " pad_to_aspect_ratio=False, fill_mode='constant', fill_value=0.0, antialias=False, data_format=None, "
        + PLAIN,
        lambda bound: _sized(bound),
        "resizing",
        _floats,
    ),
    _layer(
        "CenterCrop(inputs, height, width, data_format=None, " + PLAIN,
        lambda bound: _sized(bound),
        "center_crop",
        _floats,
    ),
    StageRule(
        "tf.keras.layers.RandomCrop(inputs, height, width, seed=None, data_format=None, name=None, dtype=None,"
        " trainable=True, training=None)",
        lambda bound: FLOATS(bound) if bound["training"] is False else _sized(bound),
        ignored=IGNORED,
        stage="random_crop",
        columns=("inputs",),
        check=_drawn,
        together=False,
        draws=True,
    ),
    _random(
        "RandomFlip(inputs, mode='horizontal_and_vertical', seed=None, data_format=None, name=None, dtype=None,"
        " trainable=True, training=None)",
        "random_flip",
    ),
    _random("RandomRotation(inputs, factor, " + WARP, "random_rotation"),
    _random("RandomZoom(inputs, height_factor, width_factor=None, " + WARP, "random_zoom"),
    _random("RandomTranslation(inputs, height_factor, width_factor, " + WARP, "random_translation"),
    _random("RandomContrast(inputs, factor, value_range=(0, 255), " + DRAWS, "random_contrast"),
    _random("RandomBrightness(inputs, factor, value_range=(0, 255), " + DRAWS, "random_brightness"),
    _layer(
        "MelSpectrogram(inputs, fft_length=2048, sequence_stride=512, sequence_length=None, window='hann',"
        " sampling_rate=16000, num_mel_bins=128, min_freq=20.0, max_freq=None, power_to_db=True, top_db=80.0,"
        " mag_exp=2.0, min_power=1e-10, ref_power=1.0, " + PLAIN,
        lambda bound: Spec("float32"),
        "mel_spectrogram",
        _floats,
    ),
]


def _sized(bound: Bound) -> Spec:
    spec = as_first(bound)
    if spec.shape is None or bound["data_format"] == "channels_first":
        return Spec("float32")
    return Spec("float32", (*spec.shape[:-3], bound["height"], bound["width"], *spec.shape[-1:]))
