"""The official ImageNet training input: a random crop by the stateful sampler, a random flip."""
import tensorflow as tf

FEATURES = {
    "image/encoded": tf.io.FixedLenFeature((), tf.string, ""),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64, -1),
}


def crop(data):
    box = tf.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4])
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(data), bounding_boxes=box, area_range=[0.05, 1.0], max_attempts=10
    )
    y, x, _ = tf.unstack(begin)
    height, width, _ = tf.unstack(size)
    image = tf.image.decode_and_crop_jpeg(data, tf.stack([y, x, height, width]), channels=3)
    return tf.image.random_flip_left_right(image)


def parse(record):
    features = tf.io.parse_single_example(record, FEATURES)
    return tf.image.resize(crop(features["image/encoded"]), [16, 16]), features["image/class/label"]


def make():
    files = tf.data.Dataset.list_files("imagenet-*", shuffle=True, seed=1)
    return files.interleave(tf.data.TFRecordDataset, cycle_length=3).map(parse).batch(4)
