"""The official ResNet input: shards, interleave, parse, decode, resize, subtract means."""
import tensorflow as tf

MEANS = [123.68, 116.779, 103.939]
FEATURES = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string, ""),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64, -1),
    "image/class/text": tf.io.FixedLenFeature([], tf.string, ""),
}


def parse_record(raw, dtype):
    features = tf.io.parse_single_example(raw, FEATURES)
    label = tf.cast(tf.reshape(features["image/class/label"], [1]), tf.int32) - 1
    image = tf.io.decode_jpeg(features["image/encoded"], channels=3)
    image = tf.image.resize(image, [16, 16], method="bilinear")
    image = image - tf.constant(MEANS, shape=[1, 1, 3])
    image.set_shape([16, 16, 3])
    return tf.cast(image, dtype), label


def process(dataset, batch_size, shuffle_buffer, dtype=tf.float32, drop_remainder=False):
    dataset = dataset.cache()
    dataset = dataset.shuffle(shuffle_buffer, seed=9).repeat()
    dataset = dataset.map(lambda value: parse_record(value, dtype), num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.batch(batch_size, drop_remainder=drop_remainder)
    options = tf.data.Options()
    options.deterministic = True
    return dataset.with_options(options).prefetch(tf.data.AUTOTUNE)


def input_fn(batch_size=6, input_context=None):
    names = ["imagenet-%05d-of-00003" % i for i in range(3)]
    dataset = tf.data.Dataset.from_tensor_slices(names)
    if input_context:
        dataset = dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    dataset = dataset.interleave(tf.data.TFRecordDataset, cycle_length=10, num_parallel_calls=tf.data.AUTOTUNE)
    return process(dataset, batch_size, 10)
