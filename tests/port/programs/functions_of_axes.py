"""Reductions along axes: however a program says the axis."""
import numpy as np
import tensorflow as tf

GRID = (np.arange(120, dtype=np.float32).reshape(5, 4, 3, 2) * 37 % 101 - 40).astype(np.float32)


def rows(function):
    return tf.data.Dataset.from_tensor_slices(GRID).map(function).batch(2)


def batches(function):
    return tf.data.Dataset.from_tensor_slices(GRID).batch(2).map(function)


def extrema():
    return rows(
        lambda x: {
            "first": tf.reduce_max(x, axis=0),
            "by_position": tf.reduce_max(x, 1),
            "last": tf.reduce_min(x, axis=-1),
            "two": tf.reduce_max(x, axis=[0, 2]),
            "a_tuple": tf.reduce_min(x, (0, 1)),
            "a_list_of_one": tf.reduce_min(x, [-1]),
            "whole": tf.reduce_max(x),
            "kept": tf.reduce_max(x, axis=1, keepdims=True),
            "kept_whole": tf.reduce_max(x, keepdims=True),
            "kept_last": tf.reduce_min(x, -1, True),
            "kept_two": tf.reduce_max(x, axis=[-1, 0], keepdims=True),
            "of_numbers": tf.reduce_min(tf.cast(x, tf.int64), axis=0),
        }
    )


def of_batches():
    return batches(
        lambda x: {
            "rows": tf.reduce_max(x, axis=1),
            "numbers": tf.math.reduce_min(x, axis=-1),
            "kept": x - tf.reduce_max(x, axis=[1, 2], keepdims=True),
            "first": tf.argmax(x, axis=1),
            "sum": tf.reduce_sum(tf.cast(x, tf.int32), axis=2),
        }
    )


def multi_hot():
    tags = tf.data.Dataset.from_tensor_slices([[0, 2], [1, 1], [3, 0]])
    return tags.map(lambda tag: tf.reduce_max(tf.one_hot(tag, 4), axis=0)).batch(2)


def others():
    return rows(
        lambda x: (
            tf.reduce_any(x > 40, axis=0),
            tf.reduce_all(x > -30, axis=[0, 1]),
            tf.argmax(x, axis=-1),
            tf.argmax(x),
            tf.reduce_mean(tf.cast(x, tf.int32), axis=2),
            tf.maximum(x, 0),
            tf.minimum(x, [0.0, 1.0]),
            tf.maximum(tf.cast(x, tf.int64), [0, 1]),
            tf.maximum(x, [0, -1]),
        )
    )
