"""tf.case and tf.switch_case of columns."""

import tensorflow as tf

Dataset = tf.data.Dataset


def case():
    pairs = lambda i: [(i < 3, lambda: (i, "a")), (i < 6, lambda: (i * 2, "b"))]
    return Dataset.range(9).map(lambda i: tf.case(pairs(i), default=lambda: (-i, "c"))).batch(4)


def switch_by_number():
    functions = lambda i: {0: lambda: i, 2: lambda: i * 2, 1: lambda: -i}
    return Dataset.range(9).map(lambda i: tf.switch_case(tf.cast(i % 4, tf.int32), functions(i))).batch(4)


def switch_with_default():
    functions = lambda i: [lambda: i, lambda: i * 2]
    return Dataset.range(9).map(lambda i: tf.switch_case(tf.cast(i - 2, tf.int32), functions(i), lambda: i - 100)).batch(4)
