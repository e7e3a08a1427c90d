"""tf.Transform's census: numbers that may be absent, categories, a label from a table."""
import tensorflow as tf
import tensorflow_transform as tft

_LABELS = [">50K", "<=50K"]


def raw(batch_size=5):
    rows = {
        "age": [17.0 + i * i % 41 for i in range(23)],
        "workclass": [[" Private", "State-gov ", "?"][i * i % 3] for i in range(23)],
        "label": [[">50K.", "<=50K", "other"][i % 3] for i in range(23)],
    }
    return tf.data.Dataset.from_tensor_slices(rows).batch(batch_size)


def preprocessing_fn(inputs):
    outputs = inputs.copy()
    outputs["age"] = tft.scale_to_0_1(outputs["age"])
    outputs["workclass"] = tft.compute_and_apply_vocabulary(
        tf.strings.strip(inputs["workclass"]), num_oov_buckets=1, vocab_filename="workclass"
    )
    with tf.init_scope():
        initializer = tf.lookup.KeyValueTensorInitializer(
            keys=_LABELS,
            values=tf.cast(tf.range(len(_LABELS)), tf.int64),
            key_dtype=tf.string,
            value_dtype=tf.int64,
        )
        table = tf.lookup.StaticHashTable(initializer, default_value=-1)
    label = tf.strings.strip(tf.strings.regex_replace(inputs["label"], r"\.", ""))
    one_hot = tf.one_hot(table.lookup(label), depth=len(_LABELS), on_value=1.0, off_value=0.0)
    outputs["label"] = tf.reshape(one_hot, [-1, len(_LABELS)])
    return outputs
