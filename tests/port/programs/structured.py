"""Structured data: FeatureSpace, census with wide and deep, DataFrames, preprocessing layers."""
import keras
import numpy as np
import tensorflow as tf


def _frame():
    rows = [line.split(",") for line in open("titanic.csv").read().splitlines()[1:]]
    columns = list(zip(*rows))
    return {
        "age": np.float32(columns[2]), "fare": np.float32(columns[3]),
        "sex": np.array(columns[1]), "class": np.array(columns[4]), "survived": np.int64(columns[0]),
    }


def dataframe_to_dataset(batch_size=8):
    frame = _frame()
    labels = frame.pop("survived")
    ds = tf.data.Dataset.from_tensor_slices((frame, labels))
    return ds.shuffle(buffer_size=len(labels), seed=7).batch(batch_size)


def feature_space():
    from keras.utils import FeatureSpace

    ds = dataframe_to_dataset().map(lambda x, y: ({"sex": x["sex"], "age": x["age"]}, y))
    space = FeatureSpace(
        features={
            "sex": FeatureSpace.string_categorical(num_oov_indices=0),
            "age": FeatureSpace.float_normalized(),
        },
        output_mode="concat",
    )
    space.adapt(ds.map(lambda x, _: x))
    return ds.map(lambda x, y: (space(x), y)).prefetch(2)


def layers():
    ds = dataframe_to_dataset()
    age = keras.layers.Normalization(axis=None)
    age.adapt(ds.map(lambda x, y: tf.expand_dims(x["age"], -1)))
    sex = keras.layers.StringLookup(vocabulary=["female", "male"], output_mode="one_hot", num_oov_indices=1)
    fare = keras.layers.Discretization(bin_boundaries=[10.0, 30.0, 60.0])
    kind = keras.layers.Hashing(num_bins=5)

    def encode(x, y):
        return {"age": age(x["age"]), "sex": sex(x["sex"]), "fare": fare(x["fare"]), "class": kind(x["class"])}, y

    return ds.map(encode)


def quantiles():
    ds = dataframe_to_dataset()
    fare = keras.layers.Discretization(num_bins=4, epsilon=0.1)
    fare.adapt(ds.map(lambda x, y: x["fare"]))
    return ds.map(lambda x, y: (fare(x["fare"]), y))


def many_means():
    rng = np.random.default_rng(1)
    values = rng.normal(3, 2, (40, 90)).astype(np.float32)
    layer = keras.layers.Normalization()
    layer.adapt(values)
    return tf.data.Dataset.from_tensor_slices(values).batch(8).map(lambda x: layer(x))


CENSUS = ["age", "type", "breed", "fee", "adopted"]


def census():
    vocabulary = {"type": ["Cat", "Dog"], "breed": ["lab", "mixed", "tabby"]}
    lookups = {name: keras.layers.StringLookup(vocabulary=terms) for name, terms in vocabulary.items()}

    def process(features, target):
        for name in features:
            if name in lookups:
                features[name] = lookups[name](features[name])
            else:
                features[name] = tf.cast(features[name], tf.float32)
        return features, target

    dataset = tf.data.experimental.make_csv_dataset(
        "pets-0.csv", batch_size=5, column_names=CENSUS, column_defaults=[[0.0], ["NA"], ["NA"], [0.0], [0]],
        label_name="adopted", num_epochs=1, header=True, shuffle=True, shuffle_seed=3,
    )
    return dataset.map(process).cache()
