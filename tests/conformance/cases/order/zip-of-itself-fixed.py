"""one order, if it does not reshuffle"""

import tensorflow as tf

EPOCHS = 2
COLUMNS = ("value", "b")


def dataset():
    a = tf.data.Dataset.range(6).shuffle(4, seed=7, reshuffle_each_iteration=False)
    return tf.data.Dataset.zip(a, a)
