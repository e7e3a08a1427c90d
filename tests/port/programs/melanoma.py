"""Keras' TFRecord example: compressed shards, unordered for speed."""
import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE


def decode_image(image):
    image = tf.image.decode_jpeg(image, channels=3)
    image = tf.cast(image, tf.float32)
    return tf.reshape(tf.image.resize(image, [16, 16]), [16, 16, 3])


def read_tfrecord(example, labeled):
    form = (
        {"image": tf.io.FixedLenFeature([], tf.string), "target": tf.io.FixedLenFeature([], tf.int64)}
        if labeled
        else {"image": tf.io.FixedLenFeature([], tf.string)}
    )
    example = tf.io.parse_single_example(example, form)
    image = decode_image(example["image"])
    if labeled:
        label = tf.cast(example["target"], tf.int32)
        return image, label
    return image


def load_dataset(filenames, labeled=True):
    ignore_order = tf.data.Options()
    ignore_order.deterministic = False
    dataset = tf.data.TFRecordDataset(filenames, compression_type="GZIP").with_options(ignore_order)
    return dataset.map(lambda x: read_tfrecord(x, labeled), num_parallel_calls=AUTOTUNE)


def make():
    dataset = load_dataset(tf.io.gfile.glob("melanoma-*.tfrec"))
    return dataset.shuffle(2048, seed=2).prefetch(AUTOTUNE).batch(4)
