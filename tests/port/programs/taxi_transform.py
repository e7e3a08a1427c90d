"""TFX's taxis: columns that may be absent, statistics over all rows, and a label that is computed."""
import tensorflow as tf
import tensorflow_transform as tft

_FLOATS = ["trip_miles", "fare"]
_WORDS = ["payment_type"]
_BUCKETS = ["trip_miles"]
_NUMBERS = ["trip_start_hour"]
_FARE, _LABEL = "fare", "tips"


def raw(batch_size=6):
    spec = {
        "trip_miles": tf.io.VarLenFeature(tf.float32),
        "fare": tf.io.VarLenFeature(tf.float32),
        "tips": tf.io.VarLenFeature(tf.float32),
        "payment_type": tf.io.VarLenFeature(tf.string),
        "trip_start_hour": tf.io.VarLenFeature(tf.int64),
    }
    records = tf.data.TFRecordDataset("taxi.tfrecord").batch(batch_size)
    return records.map(lambda batch: tf.io.parse_example(batch, spec))


def two():
    return {"train": raw(), "eval": raw(4).take(2)}


def _filled(x):
    if not isinstance(x, tf.sparse.SparseTensor):
        return x
    default_value = "" if x.dtype == tf.string else 0
    dense = tf.sparse.to_dense(
        tf.SparseTensor(x.indices, x.values, [x.dense_shape[0], 1]), default_value
    )
    return tf.squeeze(dense, axis=1)


def preprocessing_fn(inputs):
    outputs = {}
    for key in _FLOATS:
        outputs[key + "_xf"] = tft.scale_to_z_score(_filled(inputs[key]))
    for key in _WORDS:
        outputs[key + "_xf"] = tft.compute_and_apply_vocabulary(
            _filled(inputs[key]), top_k=2, num_oov_buckets=3
        )
    for key in _BUCKETS:
        outputs[key + "_bucket"] = tft.bucketize(_filled(inputs[key]), 4)
    for key in _NUMBERS:
        outputs[key + "_xf"] = _filled(inputs[key])
    fare, tips = _filled(inputs[_FARE]), _filled(inputs[_LABEL])
    outputs["is_generous"] = tf.where(
        tf.math.is_nan(fare),
        tf.cast(tf.zeros_like(fare), tf.int64),
        tf.cast(tf.greater(tips, tf.multiply(fare, tf.constant(0.2))), tf.int64),
    )
    return outputs
