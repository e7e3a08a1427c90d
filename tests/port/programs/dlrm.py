"""DLRM on Criteo's lines: counts to logarithms, terms hashed by their hexadecimal digits."""
import tensorflow as tf

LABEL, NUMERIC, CATEGORICAL = 1, 13, 26


def parse(line):
    defaults = [[0.0]] * (LABEL + NUMERIC) + [[""]] * CATEGORICAL
    fields = tf.io.decode_csv(line, defaults, field_delim="\t", na_value="")
    label = tf.reshape(fields[0], [-1])
    features = {}
    for i in range(NUMERIC):
        features[f"int-feature-{i + 1}"] = tf.math.log(tf.maximum(fields[1 + i], 0.0) + 1.0)
    for i in range(CATEGORICAL):
        features[f"categorical-feature-{i + 14}"] = tf.strings.to_hash_bucket_fast(fields[14 + i], 1000)
    return features, label


def make(batch_size=8):
    dataset = tf.data.Dataset.list_files("day_*", shuffle=False)
    dataset = dataset.interleave(lambda name: tf.data.TextLineDataset(name), cycle_length=2, block_length=4)
    return dataset.batch(batch_size, drop_remainder=True).map(parse).prefetch(1)


def stacked(batch_size=8):
    def pack(features, label):
        dense = tf.stack([features[f"int-feature-{i + 1}"] for i in range(NUMERIC)], axis=1)
        sparse = tf.stack([features[f"categorical-feature-{i + 14}"] for i in range(CATEGORICAL)], axis=1)
        return {"dense": dense, "sparse": sparse}, label

    return make(batch_size).map(pack)
