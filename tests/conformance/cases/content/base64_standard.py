"""The standard alphabet is refused."""

import tensorflow as tf

MESSAGE_HAS = ["base64"]


def dataset():
    texts = tf.data.Dataset.from_tensor_slices({"x": ["-_-_", "+/+/"]})
    return texts.map(lambda row: {"x": tf.io.decode_base64(row["x"])}).batch(1)
