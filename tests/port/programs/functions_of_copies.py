"""Tensors that are repeated, and images in boxes."""

import numpy as np
import tensorflow as tf

Dataset = tf.data.Dataset
NUMBERS = np.arange(6, dtype=np.int64)
MATRICES = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
PICTURES = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)


def tiles():
    def tiled(x):
        return tf.tile(x, [2, 1]), tf.tile(x[tf.newaxis], [4, 1, 2]), tf.tile(x[0, :1], [5]), tf.tile(x, [1, 1])

    return Dataset.from_tensor_slices(MATRICES).map(tiled).batch(3)


def repeats():
    def repeated(x):
        return tf.repeat(x, 2, axis=0), tf.repeat(x, 3, axis=1), tf.repeat(x[0], 2), tf.repeat(x[0, 0], 3), tf.repeat(x, 1, 0)

    return Dataset.from_tensor_slices(MATRICES).map(repeated).batch(3)


def repeats_of_unknown_length():
    texts = Dataset.from_tensor_slices(["a b c", "d", "e f"]).map(tf.strings.split)
    return texts.map(lambda words: tf.repeat(words, 2)).padded_batch(2)


def broadcasts():
    def broadcast(n, x):
        return tf.broadcast_to(n, [3]), tf.broadcast_to(x[0], [4, 3]), tf.broadcast_to(x[:, :1], [2, 5]), tf.broadcast_to(n, [2, 2])

    return Dataset.from_tensor_slices((NUMBERS[:4], MATRICES)).map(broadcast).batch(3)


def turns():
    return Dataset.from_tensor_slices(PICTURES).map(lambda x: tuple(tf.image.rot90(x, k) for k in range(5))).batch(2)


def turns_of_batches():
    return Dataset.from_tensor_slices(PICTURES).batch(2).map(lambda x: (tf.image.rot90(x), tf.image.rot90(x, k=2), tf.image.rot90(x, 3)))


def boxes():
    def boxed(x):
        grown, mixed = tf.image.resize_with_crop_or_pad(x, 9, 8), tf.image.resize_with_crop_or_pad(x, 7, 2)
        return tf.image.pad_to_bounding_box(x, 1, 2, 8, 9), grown, mixed, tf.image.resize_with_crop_or_pad(x, 1, 2)

    return Dataset.from_tensor_slices(PICTURES).map(boxed).batch(2)


def boxes_of_batches():
    return Dataset.from_tensor_slices(PICTURES).batch(2).map(lambda x: tf.image.resize_with_crop_or_pad(x, 7, 2))
