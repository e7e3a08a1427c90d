"""TFX's penguins: every column a feature, a dictionary without the label."""
import tensorflow as tf

_FEATURE_KEYS = ["culmen_length", "culmen_depth", "mass"]
_LABEL_KEY = "species"
spec = {
    **{feature: tf.io.FixedLenFeature(shape=[1], dtype=tf.float32) for feature in _FEATURE_KEYS},
    _LABEL_KEY: tf.io.FixedLenFeature(shape=[1], dtype=tf.int64),
}


def input_fn(batch_size=4):
    dataset = tf.data.TFRecordDataset("penguins.tfrecord").batch(batch_size)
    dataset = dataset.map(lambda x: tf.io.parse_example(x, spec))
    return dataset.map(lambda row: (row, row.pop(_LABEL_KEY))).repeat()
