"""Functions that input pipelines call and that nothing is known of yet, the more usual ones first.

The order is a judgement from TensorFlow's tutorials, Keras' code examples and the official models. It is not
a count.
"""

from __future__ import annotations

__all__ = ["REMAINING", "remedy"]

OWN = "`python:` or `op:`"
REMAINING = {
    "tf.image.random_saturation": OWN,
    "tf.image.random_hue": OWN,
    "tf.image.resize_with_pad": "tundish.layers.Resizing with pad_to_aspect_ratio=True, which rounds in another way",
    "tf.image.rgb_to_grayscale": "tf.io.decode_jpeg or decode_png with channels=1, which weighs in another way",
    "tf.image.stateless_random_crop": "tundish.layers.RandomCrop with a seed",
    "tf.image.stateless_random_contrast": "tundish.layers.RandomContrast with a seed",
    "tf.image.adjust_contrast": OWN,
    "tf.boolean_mask": "Dataset.filter, or tf.where with a value for what is left out",
    "tf.strings.unicode_decode": "tf.strings.unicode_split, and a lookup layer",
    "tf.strings.bytes_split": "tf.strings.unicode_split",
    "tf.reduce_prod": "a product of the pieces of tf.unstack",
    "tf.cumsum": OWN,
    "tf.linspace": "a constant",
    "tf.sort": OWN,
    "tf.unique": OWN,
    "tf.math.top_k": OWN,
    "tf.linalg.matmul": OWN,
    "tf.sparse.reorder": "leave it out: tf.io.parse_example gives sparse columns in order",
    "tf.sparse.concat": "tf.concat of ragged columns",
    "tf.ragged.stack": "tf.stack of dense columns",
    "tf.keras.utils.FeatureSpace": "its layers themselves",
    "tf.io.parse_sequence_example": "tf.io.parse_example of the context",
    "tf.io.decode_gif": "tf.io.decode_image",
    "tf.io.decode_bmp": "tf.io.decode_image",
    "tf.io.parse_tensor": "tf.io.decode_raw of the numbers alone",
    "tf.image.draw_bounding_boxes": OWN,
    "tf.image.sample_distorted_bounding_box": "`random_resized_crop` with a seed, with draws of its own",
    "tf.image.extract_patches": OWN,
    "tf.signal.rfft": "tf.signal.stft, and tf.abs of it",
    "tf.signal.linear_to_mel_weight_matrix": "tundish.layers.MelSpectrogram",
}


def remedy(name: str) -> str:
    """The words to write instead of a function without a rule."""
    instead = REMAINING.get(name) or REMAINING.get(name.replace("tf.math.", "tf."))
    if instead is None or instead == OWN:
        return "write the stage by hand: see `tundish help stages`, `python` and `op`"
    return instead if instead.startswith("leave") else f"use {instead}"
