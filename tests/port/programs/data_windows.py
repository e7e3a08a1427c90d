"""tf.data's guide: time series by windows."""
import tensorflow as tf


def dense_steps():
    batches = tf.data.Dataset.range(1000).batch(15, drop_remainder=True)
    return batches.map(lambda batch: (batch[:-5], batch[-5:])).take(6)


def windows():
    def sub_to_batch(sub):
        return sub.batch(5, drop_remainder=True)

    return tf.data.Dataset.range(40).window(5, shift=1, drop_remainder=True).flat_map(sub_to_batch).batch(3)
