"""Keras' text classification from scratch: HTML taken out of reviews."""
import glob

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable()
def standardize(text):
    lower = tf.strings.lower(text)
    plain = tf.strings.regex_replace(lower, "<br />", " ")
    return tf.strings.regex_replace(plain, "[!.,]", "")


def reviews():
    paths = sorted(glob.glob("reviews/*/*.txt"))
    labels = [float("/pos/" in path) for path in paths]
    files = tf.data.Dataset.from_tensor_slices((paths, labels))
    return files.map(lambda path, label: (tf.io.read_file(path), label)).shuffle(16, seed=2)


def make():
    vectorize = keras.layers.TextVectorization(
        standardize=None, max_tokens=30, output_mode="int", output_sequence_length=12
    )
    raw = reviews().map(lambda text, label: (standardize(text), label)).batch(4)
    vectorize.adapt(raw.map(lambda text, label: text))
    return raw.map(lambda text, label: (vectorize(text), label)).cache().prefetch(10)


def callable_standardize():
    vectorize = keras.layers.TextVectorization(standardize=standardize, max_tokens=30)
    vectorize.adapt(reviews().map(lambda text, label: text))
    return reviews().batch(4).map(lambda text, label: (vectorize(text), label))


def rarities():
    lines = tf.data.Dataset.from_tensor_slices(["a film", "the film", "a great a", "nothing"]).batch(2)
    layer = keras.layers.TextVectorization(output_mode="tf_idf", max_tokens=9, pad_to_max_tokens=True)
    layer.adapt(lines)
    return lines.map(lambda texts: layer(texts))
