"""float16 and bfloat16 round and overflow."""

import tensorflow as tf

COLUMNS = ("h", "b")


def dataset():
    numbers = tf.data.Dataset.from_tensor_slices([0.1, 65504.0, 65520.0, 1e-08, 3.14159, 3.4e38, 255.5])
    return numbers.map(lambda x: (tf.cast(x, tf.float16), tf.cast(x, tf.bfloat16))).batch(16)
