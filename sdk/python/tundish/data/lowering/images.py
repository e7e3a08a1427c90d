"""tf.image and the decoders."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import as_dtype
from ..graph import Column, Spec
from .rule import Bound, Refusal, Rewrite, Rule, StageRule, refuse
from .specs import as_first, with_dtype

__all__ = ["RULES"]

LARGEST = {"uint8": 255, "int8": 127, "uint16": 65535, "int16": 32767, "int32": 2147483647}


def _picture(dtype: str | None = None, channels: str = "channels") -> Any:
    def infer(bound: Bound) -> Spec:
        count = bound.get(channels) or None
        return Spec(dtype or as_dtype(bound["dtype"]), (None, None, count))

    return infer


def _any_picture(bound: Bound) -> Spec:
    dtype = as_dtype(bound["dtype"])
    return (
        Spec(dtype)
        if bound["expand_animations"]
        else Spec(dtype, (None, None, bound["channels"] or None))
    )


def _words(bound: Bound, parameters: Bound) -> None:
    if "dtype" in parameters:
        parameters["dtype"] = as_dtype(parameters["dtype"])
    if parameters.get("channels", 0) is None:
        del parameters["channels"]


def _resized(bound: Bound) -> Spec:
    spec, size = as_first(bound), bound["size"]
    dtype = spec.dtype if bound["method"] == "nearest" else "float32"
    if spec.shape is None or isinstance(size, Column) or bound["preserve_aspect_ratio"]:
        return Spec(
            dtype, None if spec.shape is None else (*spec.shape[:-3], None, None, spec.shape[-1])
        )
    return Spec(dtype, (*spec.shape[:-3], *size, spec.shape[-1]))


def _check_resize(bound: Bound, parameters: Bound) -> None:
    size = bound["size"]
    if isinstance(size, Column) or any(isinstance(each, Column) for each in size):
        refuse("the size must be constant", "write [height, width]")
    parameters["size"] = [int(each) for each in size]
    if "method" in parameters:
        parameters["method"] = getattr(parameters["method"], "value", parameters["method"])


def _converted(image: Any, dtype: Any, saturate: bool) -> Any:
    """`cast`, then `* 1 / the largest integer`"""
    from . import record

    own, wanted = image.spec.dtype, as_dtype(dtype)
    if own == wanted:
        return image
    if own in LARGEST and "float" in wanted:
        return record("tf.cast", (image, wanted), {}) * (1.0 / LARGEST[own])
    if own is not None and "float" in own and "float" in wanted:
        return record("tf.cast", (image, wanted), {})
    return refuse(f"from {own or 'a dtype that is not known'} to {wanted}", "use tundish.tf.cast")


def _flipped(axis: int) -> Any:
    def flip(image: Any) -> Any:
        if image.spec.rank not in (3, 4):
            refuse("the number of dimensions is not known", "use set_shape([height, width, channels])")
        # From the end, so that it serves batches, too.
        return image[(..., *[slice(None, None, -1) if i == axis else slice(None) for i in range(-3, 0)])]

    flip.__doc__ = "a slice with step -1"
    return flip


def _cropped(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """`image[y:y + height, x:x + width]`"""
    down = slice(offset_height, offset_height + target_height)
    right = slice(offset_width, offset_width + target_width)
    return image[(..., down, right, slice(None))]


def _brighter(image: Any, delta: Any) -> Any:
    """`image + delta`, of float32"""
    if image.spec.dtype != "float32":
        refuse(
            "of other dtypes than float32 it converts there and back", "use convert_image_dtype first"
        )
    return image + delta


def _flipped_at_random(axis: int) -> Any:
    def flip(image: Any, seed: Any) -> Any:
        from . import record

        if image.spec.rank != 3:
            refuse("it is not known to be one image", "use set_shape([height, width, channels]), before batch")
        draw = record("tf.random.stateless_uniform", ([], seed), {})
        return record("tf.where", (draw < 0.5, _flipped(axis)(image), image), {})

    flip.__doc__ = "`where(stateless_uniform(s0, s1) < 0.5, the slice with step -1, image)`"
    return flip


def _brighter_at_random(image: Any, max_delta: Any, seed: Any) -> Any:
    """`image + (stateless_uniform(s0, s1) * (2 * max_delta) - max_delta)`, of float32"""
    from . import record

    limits = {"minval": -max_delta, "maxval": max_delta}
    return _brighter(image, record("tf.random.stateless_uniform", ([], seed), limits))


def _random(of: str, layer: str) -> Rule:
    why = "it draws from TensorFlow's own state"
    return Refusal("tf.image." + of, why=why, remedy=f"use tundish.layers.{layer} with a seed")


def _standardized(image: Any) -> Any:
    """`(x - mean(x)) / max(sqrt(variance), 1 / sqrt(pixels))`"""
    sizes = (image.spec.shape or ())[-3:]
    if len(sizes) < 3 or None in sizes:
        refuse("the size of the image is not known", "use set_shape, or tundish.tf.ensure_shape")
    from . import record

    values = image if image.spec.dtype == "float32" else record("tf.cast", (image, "float32"), {})
    axis = None if image.spec.rank == 3 else [-3, -2, -1]
    over = {"axis": axis, "keepdims": axis is not None}
    spread = record("tf.math.reduce_std", (values,), over)
    least = 1 / math.sqrt(math.prod(size for size in sizes if size is not None))
    return (values - record("tf.reduce_mean", (values,), over)) / record("tf.maximum", (spread, least), {})


RULES: list[Rule] = [
    StageRule(
        "tf.io.decode_jpeg(contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False,"
        " acceptable_fraction=1, dct_method='', name=None)",
        _picture("uint8"),
        stage="decode_jpeg",
        columns=("contents",),
        check=_words,
    ),
    StageRule(
        "tf.io.decode_png(contents, channels=0, dtype='uint8', name=None)",
        _picture(),
        stage="decode_png",
        columns=("contents",),
        check=_words,
    ),
    StageRule(
        "tf.io.decode_image(contents, channels=None, dtype='uint8', name=None, expand_animations=True)",
        _any_picture,
        stage="decode_image",
        columns=("contents",),
        check=_words,
    ),
    StageRule(
        "tf.image.resize(images, size, method='bilinear', preserve_aspect_ratio=False, antialias=False, name=None)",
        _resized,
        stage="resize",
        columns=("images",),
        check=_check_resize,
    ),
    Rewrite("tf.image.convert_image_dtype(image, dtype, saturate=False, name=None)", into=_converted),
    Rewrite("tf.image.flip_left_right(image)", into=_flipped(-2)),
    Rewrite("tf.image.flip_up_down(image)", into=_flipped(-3)),
    Rewrite(
        "tf.image.crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width)",
        into=_cropped,
    ),
    Rewrite("tf.image.adjust_brightness(image, delta)", into=_brighter),
    Rewrite("tf.image.per_image_standardization(image)", with_dtype("float32"), into=_standardized),
    Rewrite("tf.image.stateless_random_flip_left_right(image, seed)", as_first, into=_flipped_at_random(-2)),
    Rewrite("tf.image.stateless_random_flip_up_down(image, seed)", as_first, into=_flipped_at_random(-3)),
    Rewrite("tf.image.stateless_random_brightness(image, max_delta, seed)", as_first, into=_brighter_at_random),
    _random("random_flip_left_right(image, seed=None)", "RandomFlip('horizontal')"),
    _random("random_flip_up_down(image, seed=None)", "RandomFlip('vertical')"),
    _random("random_brightness(image, max_delta, seed=None)", "RandomBrightness"),
    _random("random_contrast(image, lower, upper, seed=None)", "RandomContrast"),
    _random("random_crop(value, size, seed=None, name=None)", "RandomCrop"),
]
