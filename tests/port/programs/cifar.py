"""CIFAR's binary records: a label and planes of pixels."""
import tensorflow as tf


def decode(record):
    data = tf.io.decode_raw(record, tf.uint8)
    label = tf.cast(data[0], tf.int32)
    planes = tf.reshape(data[1:49], [3, 4, 4])
    image = tf.cast(tf.transpose(planes, [1, 2, 0]), tf.float32)
    return image / 255.0, label


def flat(record):
    data = tf.io.decode_raw(record, tf.uint8)
    return tf.cast(data[1:49], tf.float32) / 255.0, tf.cast(data[0], tf.int32)


def make():
    files = tf.data.Dataset.list_files("data_batch_*.bin", shuffle=False)
    return files.flat_map(lambda name: tf.data.FixedLengthRecordDataset(name, 49)).map(decode).batch(4)


def vectors():
    records = tf.data.FixedLengthRecordDataset(["data_batch_1.bin", "data_batch_2.bin"], 49)
    return records.map(flat).shuffle(12, seed=3).batch(4)
