"""bucket_by_sequence_length by what a function computes, and datasets whose counts are columns."""

import numpy as np
import tensorflow as tf

Dataset = tf.data.Dataset
TEXTS = ["a bb ccc dd", "d", "ee f", "g hh i j k", "kk l", "m n o", "", "p qq rr s t u"]


def _words():
    return Dataset.from_tensor_slices(TEXTS).map(tf.strings.split)


def counted():
    long = lambda words: tf.reduce_sum(tf.cast(tf.strings.length(words) > 1, tf.int32))
    return _words().bucket_by_sequence_length(long, [1, 2], [2, 2, 2])


def longer_of_two():
    rows = _words().map(lambda words: (tf.strings.length(words), words[:2]))
    longer = lambda lengths, words: tf.maximum(tf.shape(lengths)[0], tf.shape(words)[0])
    return rows.bucket_by_sequence_length(longer, [3], [3, 3], padding_values=(-1, "<pad>"))


def number_of_the_row():
    rows = _words().map(lambda words: {"words": words, "length": tf.size(words)})
    return rows.bucket_by_sequence_length(lambda row: row["length"], [2, 4], [3, 2, 2], drop_remainder=True)


def of_scalars():
    texts = Dataset.from_tensor_slices(TEXTS)
    return texts.bucket_by_sequence_length(lambda text: tf.strings.length(text), [3, 6], [2, 2, 2])


def to_the_boundary():
    rows = _words().map(lambda words: (tf.strings.length(words), words))
    more = lambda lengths, words: tf.shape(lengths)[0] + 1
    return rows.bucket_by_sequence_length(more, [3, 5, 9], [2, 2, 2, 2], pad_to_bucket_boundary=True)


def shuffled_and_repeated():
    buckets = _words().shuffle(4, seed=4).bucket_by_sequence_length(lambda w: tf.size(w) // 2, [2], [2, 2])
    return buckets.map(tf.strings.length).shuffle(3, seed=1).repeat(2)


def repeated_by_a_column():
    rows = {"x": np.arange(6), "y": np.array([0, 1, 0, 0, 1, 0])}
    often = lambda row: tf.where(row["y"] == 1, tf.constant(3, tf.int64), tf.constant(1, tf.int64))
    return Dataset.from_tensor_slices(rows).flat_map(lambda row: Dataset.from_tensors(row).repeat(often(row))).batch(3)


def blocks_of_a_column():
    rows = Dataset.from_tensor_slices((np.arange(2), np.array([2, 3])))
    inner = lambda v, n: Dataset.range(3).interleave(
        lambda i: Dataset.range(4).map(lambda k: k + i + v), cycle_length=2, block_length=n
    )
    return rows.flat_map(inner).batch(5)
