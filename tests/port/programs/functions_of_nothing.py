"""Functions whose results do not depend on their elements."""
import numpy as np
import tensorflow as tf

D = tf.data.Dataset


def vector():
    return D.range(2).map(lambda i: tf.constant([1, 2])).batch(2)


def matrix():
    return D.range(3).map(lambda i: tf.zeros([2, 3])).batch(2)


def texts():
    return D.range(3).map(lambda i: tf.constant([b"a", b"${HOME}", b"\xff"])).batch(2)


def of_numpy():
    return D.range(3).map(lambda i: np.array([[1.5], [2.5]])).batch(2)


def number():
    return D.range(3).map(lambda i: tf.constant(7, tf.int64)).batch(2)


def shape():
    rows = [[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]
    return D.from_tensor_slices(tf.constant(rows)).map(lambda x: tf.shape(x)).batch(1)


def inside_of_others():
    return D.range(3).map(lambda i: (tf.constant([1, 2]), {"x": tf.ones([2, 2]), "i": i})).batch(2)


def components():
    return D.range(3).map(lambda i: [tf.constant([1, 2]), i]).batch(2)
