"""Python's operators on the element outside, in the functions inside."""
import tensorflow as tf

D = tf.data.Dataset


def operators():
    return D.range(3).flat_map(lambda i: D.range(3).map(lambda j: i * 10 + j)).batch(4)


def texts():
    names = D.from_tensor_slices(["a", "b"])
    return names.interleave(lambda s: D.from_tensor_slices(["x", "y"]).map(lambda t: s + t), cycle_length=2).batch(3)


def compared():
    return D.range(4).flat_map(lambda i: D.range(4).filter(lambda j: j <= i).map(lambda j: (i - j, -i, j))).batch(3)


def indexed():
    rows = D.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]])
    return rows.flat_map(lambda v: D.range(2).map(lambda j: v[0] + tf.cast(j, tf.float32))).batch(3)


def twice_nested():
    return D.range(2).flat_map(lambda i: D.range(2).flat_map(lambda j: D.range(2).map(lambda k: j * 10 + k))).batch(3)
