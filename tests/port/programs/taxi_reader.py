"""TFX's taxi data: missing values filled, hours in one-hot."""
import tensorflow as tf

SPEC = {
    "trip_miles": tf.io.FixedLenFeature([], tf.float32, default_value=0.0),
    "fare": tf.io.FixedLenFeature([], tf.float32),
    "payment_type": tf.io.FixedLenFeature([], tf.string),
    "trip_start_hour": tf.io.FixedLenFeature([], tf.int64),
    "tips": tf.io.FixedLenFeature([], tf.float32),
}


def prepare(batch):
    features = tf.io.parse_example(batch, SPEC)
    fare, tips = features["fare"], features["tips"]
    label = tf.where(tf.math.is_nan(fare), tf.zeros_like(fare), tf.cast(tips > fare * 0.2, tf.float32))
    return {
        "miles": tf.math.log1p(features["trip_miles"]),
        "fare": tf.clip_by_value(fare, 0.0, 50.0),
        "payment": tf.strings.lower(features["payment_type"]),
        "hour": tf.one_hot(features["trip_start_hour"], 24),
    }, tf.cast(label, tf.int64)


def make():
    return tf.data.TFRecordDataset("taxi.tfrecord").shuffle(20, seed=6).batch(5).map(prepare)


def batched_features():
    return tf.data.experimental.make_batched_features_dataset(
        "taxi.tfrecord", 5, SPEC, label_key="tips", num_epochs=2, shuffle_seed=3, shuffle_buffer_size=15
    )


def parsed_batches():
    parse = tf.data.experimental.parse_example_dataset(SPEC)
    return tf.data.TFRecordDataset("taxi.tfrecord").batch(5).apply(parse)
