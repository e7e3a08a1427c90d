"""tf.data's guide: batching, windows, zips."""
import numpy as np
import tensorflow as tf


def simple():
    inc = tf.data.Dataset.range(100)
    dec = tf.data.Dataset.range(0, -100, -1)
    return tf.data.Dataset.zip((inc, dec)).batch(4)


def padded():
    dataset = tf.data.Dataset.range(100)
    dataset = dataset.map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
    return dataset.padded_batch(4, padded_shapes=(None,))


def tensors():
    features = {"a": np.arange(12, dtype=np.float32), "b": np.arange(24).reshape(12, 2)}
    return tf.data.Dataset.from_tensor_slices((features, np.arange(12) % 3)).shuffle(12, seed=1).batch(5)


def repeated():
    lines = tf.data.TextLineDataset("titanic.csv")
    return lines.skip(1).repeat(3).batch(128, drop_remainder=False)


def filtered():
    lines = tf.data.TextLineDataset("titanic.csv").skip(1)
    return lines.filter(lambda line: tf.not_equal(tf.strings.substr(line, 0, 1), "0")).batch(3)


def unseeded():
    files = tf.data.Dataset.list_files("pets-*.csv")
    return files.flat_map(tf.data.TextLineDataset).shuffle(10).batch(4)


def as_long_as_it_is():
    numbers = tf.data.Dataset.range(20)
    return numbers.shuffle(numbers.cardinality(), seed=1).batch(6)


def names_of_files():
    return tf.data.Dataset.list_files(["pets-*.csv", "imagenet-00000-of-00003"], shuffle=False).batch(4)


def in_a_list():
    lines = tf.data.TextLineDataset("titanic.csv")
    return lines.map(lambda line: tf.strings.split([line], ",").to_tensor()).batch(3)
