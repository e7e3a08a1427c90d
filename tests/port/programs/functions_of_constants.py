"""What a function computes of constants alone is one."""

import numpy as np
import tensorflow as tf

Dataset = tf.data.Dataset


def mean_of_before():
    rows = Dataset.range(20).map(lambda x: tf.cast(x, tf.float32))
    count, total = rows.reduce((0.0, 0.0), lambda state, x: (state[0] + 1, state[1] + x))
    return rows.map(lambda x: (x - total / count) / (total + 1)).batch(6)


def tensors_of_outside():
    long, texts = tf.constant(np.arange(300, dtype=np.float32)), tf.constant(["a", "b"])

    def function(x):
        steps = tf.linspace(0.0, 1.0, 5)
        joined = tf.strings.join([texts, "z"])
        return tf.cast(x, tf.float32) - tf.reduce_mean(long) * 2 + steps[1], long[3:6] * long[1:4], joined

    return Dataset.range(5).map(function).batch(2)


def of_64_bits():
    weights = np.array([0.1, 0.5, 2.0])
    return Dataset.range(4).map(lambda y: (y, tf.constant(weights), weights * 3, weights[0] * tf.constant(2.0, tf.float64))).batch(3)


def halves():
    return Dataset.range(4).map(lambda y: (y, tf.constant([0.1, 3e-5], tf.float16), tf.constant(0.3, tf.bfloat16))).batch(3)


def stateless():
    return Dataset.range(4).map(lambda x: tf.cast(x, tf.float32) + tf.random.stateless_uniform([], [1, 2])).batch(2)
