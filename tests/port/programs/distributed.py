"""Datasets for a strategy: sizes that do not divide, and rules of sharding."""
import tensorflow as tf


def _distributed(dataset):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    return strategy.experimental_distribute_dataset(dataset)


def _labels(record):
    return tf.io.parse_single_example(record, {"image/class/label": tf.io.FixedLenFeature([], tf.int64)})


def _files():
    files = tf.data.Dataset.list_files("imagenet-*", seed=1)
    return files.interleave(tf.data.TFRecordDataset, cycle_length=2).map(_labels)


def by_file():
    return _distributed(_files().batch(5))


def by_file_in_parallel():
    return _distributed(_files().batch(5, num_parallel_calls=2))


def map_after_batch():
    return _distributed(_files().batch(5).map(lambda x: {"label": x["image/class/label"] * 2}))


def whole_batches():
    return _distributed(_files().batch(5, drop_remainder=True).map(lambda x: {"label": x["image/class/label"] * 2}))


def memory():
    return _distributed(tf.data.Dataset.range(23).shuffle(9, seed=4).batch(5))


def policy():
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return _distributed(_files().shuffle(8, seed=2).batch(5).repeat(2).with_options(options))


def seeded():
    tf.random.set_seed(3)
    return {"train": _distributed(_files().shuffle(8).batch(5)), "plain": _files().batch(5)}


def filtered_batches():
    batches = _files().map(lambda x: {"label": x["image/class/label"]}).batch(5)
    return _distributed(batches.filter(lambda x: tf.reduce_sum(x["label"]) > 2))


def filtered_rows():
    rows = _files().map(lambda x: {"label": x["image/class/label"]})
    return _distributed(rows.filter(lambda x: tf.strings.length(tf.strings.as_string(x["label"])) < 2).batch(5))


def filtered_texts():
    batches = _files().map(lambda x: {"label": x["image/class/label"]}).batch(5)
    return _distributed(
        batches.filter(lambda x: tf.reduce_max(tf.strings.length(tf.strings.as_string(x["label"]))) < 2)
    )
