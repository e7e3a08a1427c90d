"""What tf.data makes of lists, of NaN, of options, and of single datasets."""
import numpy as np
import tensorflow as tf

NUMBERS = np.float32([1, np.nan, -2, 0, np.inf, -np.inf, np.nan, 3])


def negated():
    ds = tf.data.Dataset.from_tensor_slices(NUMBERS)
    return ds.map(lambda x: {"not_more": ~(x > 0), "not_less": tf.logical_not(x < 0), "keys": ~(x > 1), "not_equal": ~(x == 1),
                             "same": ~(x != x), "both": ~((x >= 0) & (x <= 2)), "no_less": ~(x >= 1)}).batch(3)  # fmt: skip


def filtered():
    return tf.data.Dataset.from_tensor_slices(NUMBERS).filter(lambda x: not (x > 0)).batch(3)


def chosen():
    ds = tf.data.Dataset.from_tensor_slices(NUMBERS)
    return ds.map(lambda x: (tf.where(~(x <= 0), x, 0.0), tf.maximum(x, 0.0), tf.clip_by_value(x, -1.0, 1.0))).batch(3)


def lists():
    ds = tf.data.Dataset.range(7)
    return ds.map(lambda x: [x, x + 1]).map(lambda a, b: {"pair": [a, b], "sum": a + b}).batch(3)


def nested_lists():
    return tf.data.Dataset.range(7).map(lambda x: (x, [[x, 1], [2, x]])).batch(3)


def one_sampled():
    one = tf.data.Dataset.range(9)
    return tf.data.Dataset.sample_from_datasets([one, one.skip(2)], weights=[1.0, 0.0], seed=3).batch(2)


def sampled():
    tf.random.set_seed(9)
    parts = [tf.data.Dataset.range(i * 100, i * 100 + 9).shuffle(4) for i in range(3)]
    return tf.data.Dataset.sample_from_datasets(parts).batch(4)


def sampled_unseeded():
    parts = [tf.data.Dataset.range(i * 100, i * 100 + 9) for i in range(2)]
    return tf.data.Dataset.sample_from_datasets(parts, weights=[0.2, 0.8], stop_on_empty_dataset=True).batch(4)


def sampled_doubles():
    parts = [tf.data.Dataset.range(9), tf.data.Dataset.range(9)]
    return tf.data.Dataset.sample_from_datasets(parts, weights=np.array([0.2, 0.8]), seed=1).batch(4)


def sampled_anew():
    parts = [tf.data.Dataset.range(9), tf.data.Dataset.range(9)]
    return tf.data.Dataset.sample_from_datasets(parts, seed=1, rerandomize_each_iteration=True).repeat(2).batch(4)


def grouped():
    ds = tf.data.Dataset.range(20)
    return ds.group_by_window(lambda x: x % 3, lambda key, window: window.batch(4), window_size=4)


def negated_and_used():
    def function(x):
        more = x > 0
        again = tf.math.logical_not(tf.greater_equal(x, 1.0))
        return {"more": more, "no_more": ~more, "twice": ~(x < 3), "less": x < 3, "again": again, "once": ~(x >= 1.0)}

    return tf.data.Dataset.from_tensor_slices(NUMBERS).map(function).batch(3)


def negated_condition():
    def function(x):
        y = x + 1.0
        if not y > 0:
            y = y * 2.0
        else:
            y = 5.0 - y
        return y, tf.where(tf.logical_not(x <= 0), 1.0, x)

    return tf.data.Dataset.from_tensor_slices(NUMBERS).map(function).batch(3)
