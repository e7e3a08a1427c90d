"""The fused stages of tf.data.experimental."""
import tensorflow as tf

D = tf.data.Dataset
FILES = ["cowper.txt", "derby.txt", "butler.txt"]


def mapped():
    return D.range(10).apply(tf.data.experimental.map_and_batch(lambda x: x * 2, 4, num_parallel_calls=2))


def mapped_whole():
    return D.range(10).apply(tf.data.experimental.map_and_batch(lambda x: (x, -x), batch_size=4, drop_remainder=True))


def shuffled():
    return D.range(7).apply(tf.data.experimental.shuffle_and_repeat(4, 3, seed=5)).batch(5)


def shuffled_by_the_programs_seed():
    tf.random.set_seed(3)
    return D.range(7).apply(tf.data.experimental.shuffle_and_repeat(buffer_size=4, count=2)).batch(5)


def interleaved():
    read = tf.data.experimental.parallel_interleave(tf.data.TextLineDataset, cycle_length=2)
    return D.from_tensor_slices(FILES).apply(read).batch(3)


def sloppy():
    read = tf.compat.v1.data.experimental.parallel_interleave(tf.data.TextLineDataset, cycle_length=3, sloppy=True)
    return D.from_tensor_slices(FILES).apply(read).batch(3)


def interleaved_blocks():
    read = tf.data.experimental.parallel_interleave(tf.data.TextLineDataset, cycle_length=2, block_length=2)
    return D.from_tensor_slices(FILES).apply(read).batch(3)
