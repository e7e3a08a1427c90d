"""Structured data with preprocessing layers: each column by its own layer."""
import tensorflow as tf
from tensorflow import keras

NAMES = ["age", "type", "breed", "fee", "adopted"]


def read(batch_size):
    def parse(line):
        row = tf.io.decode_csv(line, [0, "", "", 0, 0])
        features = dict(zip(NAMES, row))
        target = features.pop("adopted")
        return features, target

    files = tf.data.Dataset.list_files("pets-*.csv", shuffle=False)
    rows = files.flat_map(lambda name: tf.data.TextLineDataset(name).skip(1))
    return rows.map(parse).batch(batch_size)


def make(batch_size=5):
    dataset = read(batch_size)
    kind = keras.layers.StringLookup()
    kind.adapt(dataset.map(lambda features, _: features["type"]))
    breed = keras.layers.StringLookup(max_tokens=3, output_mode="int")
    breed.adapt(dataset.map(lambda features, _: features["breed"]))
    fee = keras.layers.Normalization(axis=None)
    fee.adapt(dataset.map(lambda features, _: tf.cast(features["fee"], tf.float32)))

    def prepare(features, target):
        return {
            "type": kind(features["type"]),
            "breed": breed(features["breed"]),
            "fee": fee(tf.cast(features["fee"], tf.float32)),
            "age": tf.cast(features["age"], tf.float32) / 99.0,
        }, target

    return dataset.map(prepare).prefetch(1)
