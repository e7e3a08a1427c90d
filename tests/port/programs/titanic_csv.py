"""The CSV tutorial: lines, decoded, with numeric columns packed into one."""
import tensorflow as tf

COLUMNS = ["survived", "sex", "age", "fare", "class", "deck"]
DEFAULTS = [0, "", 0.0, 0.0, "", ""]
NUMERIC = ["age", "fare"]


def pack(features, label):
    numeric = tf.stack([features.pop(name) for name in NUMERIC], axis=-1)
    features["numeric"] = numeric
    return features, label


def make():
    def parse(line):
        row = tf.io.decode_csv(line, DEFAULTS)
        features = dict(zip(COLUMNS, row))
        return features, features.pop("survived")

    dataset = tf.data.TextLineDataset(["titanic.csv"]).skip(1).map(parse)
    return dataset.shuffle(100, seed=4).batch(5).map(pack)
