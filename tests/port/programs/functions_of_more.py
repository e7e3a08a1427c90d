"""Functions that are said with those that expressions have."""
import tensorflow as tf

D = tf.data.Dataset


def _numbers():
    return D.from_tensor_slices([[1.0, -2.5, 4.0, 0.25], [3.0, 3.0, 7.5, -1.0], [0.5, 0.5, 0.5, 0.5]])


def spreads():
    return _numbers().map(
        lambda v: {
            "variance": tf.math.reduce_variance(v),
            "std": tf.math.reduce_std(v, axis=0),
            "kept": tf.math.reduce_std(v, axis=-1, keepdims=True),
            "whitened": (v - tf.reduce_mean(v)) / (tf.math.reduce_std(v) + 1e-6),
        }
    ).batch(2)


def spreads_of_batches():
    return _numbers().batch(3).map(lambda v: (tf.math.reduce_std(v, 0), tf.math.reduce_variance(v, axis=[0, 1])))


def standardized():
    images = tf.reshape(tf.cast(tf.range(3 * 4 * 5 * 3) ** 2 % 255, tf.uint8), [3, 4, 5, 3])
    return D.from_tensor_slices(images).map(tf.image.per_image_standardization).batch(2)


def standardized_batches():
    images = tf.reshape(tf.cast(tf.range(4 * 4 * 5 * 3) ** 2 % 255, tf.float32), [4, 4, 5, 3])
    return D.from_tensor_slices(images).batch(2).map(tf.image.per_image_standardization)


def plain_images():
    return D.from_tensor_slices(tf.zeros([2, 4, 4, 3])).map(tf.image.per_image_standardization).batch(2)


def rolled():
    rows = D.from_tensor_slices(tf.reshape(tf.range(24), [2, 3, 4]))
    return rows.map(lambda m: (tf.roll(m, 1, 0), tf.roll(m, -1, axis=1), tf.roll(m, shift=7, axis=-1), tf.roll(m, 4, 1))).batch(2)


def joined():
    rows = D.from_tensor_slices([["a", "b", "c"], ["", "é", "x"]])
    return rows.map(
        lambda v: (tf.strings.reduce_join(v), tf.strings.reduce_join(v, separator="-"), tf.strings.reduce_join(v, axis=0))
    ).batch(2)


def masked():
    return D.range(5).map(
        lambda n: {"mask": tf.sequence_mask(n, 3), "ones": tf.sequence_mask(n, maxlen=4, dtype=tf.float32)}
    ).batch(2)


def padded():
    return _numbers().map(
        lambda v: {"zeros": tf.pad(v, [[0, 2]]), "ones": tf.pad(tf.reshape(v, [2, 2]), [[0, 1], [0, 2]], constant_values=-1.0)}
    ).batch(2)
