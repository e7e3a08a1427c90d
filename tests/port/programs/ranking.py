"""Sequences of any length in buckets, and ragged batches."""
import tensorflow as tf

SPEC = {"tags": tf.io.RaggedFeature(tf.string), "fare": tf.io.FixedLenFeature([], tf.float32)}


def parsed():
    return tf.data.TFRecordDataset(["taxi.tfrecord"]).map(lambda r: tf.io.parse_single_example(r, SPEC))


def buckets():
    return parsed().bucket_by_sequence_length(
        element_length_func=lambda row: tf.shape(row["tags"])[0],
        bucket_boundaries=[2],
        bucket_batch_sizes=[3, 2],
        padded_shapes={"tags": [None], "fare": []},
    )


def ragged():
    return parsed().ragged_batch(4)


def grouped():
    numbers = tf.data.Dataset.range(40)
    return numbers.group_by_window(
        key_func=lambda x: x % 3, reduce_func=lambda key, part: part.batch(4), window_size=4
    )
