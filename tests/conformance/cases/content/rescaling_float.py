"""Rescaling of floats."""

import math

import keras
import tensorflow as tf


def dataset():
    rescaling = keras.layers.Rescaling(scale=0.1, offset=0.7)
    columns = {"x": [0.1, -2.5, math.nan, 1e38, 16777217.0]}
    return tf.data.Dataset.from_tensor_slices(columns).map(lambda row: {"x": rescaling(row["x"])}).batch(6)
