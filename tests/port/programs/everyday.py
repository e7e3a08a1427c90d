"""Small things that programs do every day."""
import numpy as np
import tensorflow as tf
from tensorflow import keras

D = tf.data.Dataset


def stacked_with_a_number():
    return D.range(3).map(lambda i: tf.stack([i, 7])).batch(2)


def seeds_of_a_counter():
    return D.range(3).map(lambda i: tf.random.stateless_uniform([2], tf.stack([i, 7]))).batch(2)


def concatenated_with_numbers():
    rows = D.from_tensor_slices(tf.constant([[1, 2], [3, 4]], tf.int64))
    return rows.map(lambda v: tf.reshape(tf.concat([[101], v, [102]], 0), [2, 2])).batch(2)


def concatenated_with_itself():
    rows = D.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]])
    return rows.map(lambda v: {"twice": tf.concat([v, v], 0), "rows": tf.stack([v, v, v])}).batch(2)


def required_texts():
    defaults = [tf.constant([], tf.string), tf.constant([], tf.int32), tf.constant([], tf.float32), [0]]
    return D.from_tensor_slices(["a,1,2.5,", "b,2,3.5,4"]).map(lambda line: tf.io.decode_csv(line, defaults)).batch(2)


def _clean(text):
    lower = tf.strings.lower(text)
    return tf.strings.regex_replace(tf.strings.regex_replace(lower, "<br />", " "), "[!,.]", "")


def own_standardize():
    rows = D.from_tensor_slices(["Great<br />Movie!!", "bad.", "A great, great day"])
    layer = keras.layers.TextVectorization(standardize=_clean, output_sequence_length=4)
    layer.adapt(rows.batch(2))
    return rows.batch(2).map(layer)


def own_standardize_of_rows():
    layer = keras.layers.TextVectorization(vocabulary=["great", "movie"], standardize=_clean, output_sequence_length=4)
    rows = D.from_tensor_slices((["Great<br />Movie!!", "bad."], [1, 0]))
    return rows.map(lambda text, label: (layer(text), text, label)).batch(2)


def normalized_scalars():
    rows = D.from_tensor_slices([1.0, 2.0, 4.0, 9.0])
    layer = keras.layers.Normalization(axis=None)
    layer.adapt(rows.batch(2))
    return rows.map(lambda x: {"x": x, "normal": layer(x)}).batch(2)


def normalized_scalars_by_a_table():
    layer = keras.layers.Normalization(axis=None)
    layer.adapt(tf.constant([[1.0, 2.0], [4.0, 9.0]]))
    return D.from_tensor_slices([1.0, 2.0, 4.0]).map(layer).batch(2)


def normalized_by_numbers():
    layer = keras.layers.Normalization(axis=None, mean=3.0, variance=4.0)
    return D.from_tensor_slices([1.0, 2.0, 4.0]).map(layer).batch(2)


def largest_as_int32():
    rows = D.from_tensor_slices([[1.0, 5.0, 2.0], [7.0, 1.0, 9.0]])
    return rows.map(lambda v: (tf.argmax(v, output_type=tf.int32), tf.math.argmax(v, 0), v)).batch(2)


def shapes_as_int64():
    rows = D.from_tensor_slices(["a b", "c", "d e f"]).map(tf.strings.split)
    return rows.map(lambda v: (tf.shape(v, out_type=tf.int64)[0], tf.shape(v)[0])).batch(2)


def known_shapes_as_int64():
    rows = D.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]])
    return rows.map(lambda v: {"n": tf.shape(v, out_type=tf.int64)[0], "v": v}).batch(2)


def windows_in_batches():
    keyed = D.range(40).map(lambda x: {"key": x % 3, "x": x})
    return keyed.group_by_window(lambda e: e["key"], lambda key, window: window.batch(2), 5)


def windows_in_whole_batches():
    return D.range(40).group_by_window(lambda x: x % 3, lambda key, window: window.batch(2, drop_remainder=True), 5)


def windows_of_own_sizes():
    return D.range(40).group_by_window(
        lambda x: x % 3, lambda key, window: window.batch(10), window_size_func=lambda key: key + 2)


def checked():
    def check(x):
        tf.debugging.assert_greater(x, tf.constant(-1, tf.int64))
        tf.print("x is", x)
        with tf.control_dependencies([tf.debugging.Assert(x < 100, [x])]):
            y = tf.identity(x * 2)
        return y

    return D.range(4).map(check).batch(2)


class Series:
    """As pandas' own: an array that has keys and items, too."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def keys(self):
        return range(len(self))

    def items(self):
        return enumerate(self.values)

    def to_numpy(self):
        return np.asarray(self.values)


def series():
    frame = {"kind": Series(np.array(["x", "y", "z"], object)), "age": Series([1.5, 2.5, np.nan])}
    return D.from_tensor_slices((frame, Series([0, 1, 1]))).batch(2)


def frame():
    return D.from_tensor_slices(Series([[1.0, 2.0], [3.0, 4.0]])).batch(2)


def frame_of_pandas():
    import pandas as pd

    rows = pd.DataFrame({"kind": ["x", "y", "z"], "age": [1.5, 2.5, np.nan], "label": [0, 1, 1]})
    labels = rows.pop("label")
    return D.from_tensor_slices((dict(rows), labels)).batch(2)


def numbers_of_pandas():
    import pandas as pd

    return D.from_tensor_slices(pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]})).batch(2)
