"""tf.pad and tf.gather, as programs call them."""

import numpy as np
import tensorflow as tf

Dataset = tf.data.Dataset
TEXTS = ["a bb ccc", "d", "ee f", "g hh i j", "kk"]
PICTURES = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)


def _words():
    return Dataset.from_tensor_slices(TEXTS).map(tf.strings.split)


def begins_and_ends():
    def framed(words):
        lengths = tf.cast(tf.strings.length(words), tf.int64)
        return tf.pad(words, [[1, 0]], constant_values="<s>"), tf.pad(lengths, [[1, 1]], constant_values=7)

    return _words().map(framed).padded_batch(2)


def empty_texts_and_ends():
    return _words().map(lambda w: tf.pad(w, [[1, 2]])).padded_batch(2)


def padded_before_buckets():
    rows = _words().map(lambda w: tf.pad(tf.strings.length(w), [[0, 2]]))
    return rows.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [4], [2, 2])


def truths():
    return Dataset.from_tensor_slices([[True, False], [False, True]]).map(lambda t: tf.pad(t, [[1, 1]])).batch(2)


def pictures():
    def padded(x):
        dark = tf.pad(x, [[2, 2], [2, 2], [0, 0]])
        return dark, tf.pad(x, [[3, 3], [1, 4], [0, 0]], "REFLECT"), tf.pad(x, [[4, 0], [1, 5], [0, 0]], mode="symmetric")

    return Dataset.from_tensor_slices(PICTURES).map(padded).batch(2)


def one_side():
    def padded(x):
        return tf.pad(x, [[1, 0]], "REFLECT"), tf.pad(x, [[0, 4]], "REFLECT"), tf.pad(x, [[0, 0]], "REFLECT")

    return Dataset.from_tensor_slices(np.arange(10).reshape(2, 5)).map(padded).batch(2)


def batches():
    def padded(x):
        around = tf.pad(x, [[0, 0], [1, 2]], constant_values=-3.0)
        return around, tf.pad(x, [[0, 0], [2, 1]], "SYMMETRIC"), tf.pad(x, [[0, 0], [0, 2]])

    return Dataset.from_tensor_slices(np.arange(24, dtype=np.float32).reshape(6, 4)).batch(4).map(padded)


def weights_of_classes():
    names, exact = ["a", "bb", "c"], np.array([0.1, 0.5, 2.0])

    def weighed(y):
        near, ids = tf.constant([0.1, 0.5, 2.0]), tf.constant([5, 6, 7], tf.int64)
        return tf.gather(near, y), tf.gather(exact, y), tf.gather(names, tf.cast(y, tf.int32)), tf.gather(ids, y)

    return Dataset.from_tensor_slices(np.array([0, 1, 2, 1])).map(weighed).batch(3)


def by_columns():
    rows = {"v": np.arange(15.0).reshape(3, 5), "i": np.array([[0, 2], [1, 1], [4, 3]]), "k": np.array([3, 0, 4])}
    both = lambda r: {**r, "g": tf.gather(r["v"], r["i"]), "h": tf.gather(r["v"], r["k"])}
    return Dataset.from_tensor_slices(rows).map(both).batch(2)


def of_matrices():
    rows = {"v": np.arange(24).reshape(2, 4, 3), "k": np.array([3, 1])}

    def taken(r):
        columns = tf.gather(r["v"], [2, 0], axis=1), tf.gather(r["v"], r["k"] - 1, axis=-1)
        return *columns, tf.gather(r["v"], r["k"]), tf.gather(r["v"], tf.constant([1, 1, 3]))

    return Dataset.from_tensor_slices(rows).map(taken).batch(2)


def last_words():
    return _words().map(lambda w: tf.gather(w, tf.size(w) - 1)).batch(2)


def negative():
    """An error in both at the second step: an index does not count from the end."""
    return Dataset.from_tensor_slices(np.array([0, -1, 2])).map(lambda y: tf.gather([1.0, 2.0, 3.0], y))


def outside():
    return Dataset.from_tensor_slices(np.array([0, 3, 2])).map(lambda y: tf.gather([1.0, 2.0, 3.0], y))
