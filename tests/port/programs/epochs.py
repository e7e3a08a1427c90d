"""Programs that read their shuffles before they return them, or cut several streams of one."""
import tensorflow as tf

D = tf.data.Dataset


def adapted():
    rows = D.from_tensor_slices(["a b", "c", "d e f", "a"] * 3).shuffle(8, seed=1).batch(4)
    layer = tf.keras.layers.TextVectorization(output_sequence_length=3)
    layer.adapt(rows)
    return rows.map(layer)


def looped():
    rows = D.range(20).shuffle(8, seed=1).batch(4)
    for _ in rows:
        pass
    return rows


def listed():
    rows = D.range(20).shuffle(8, seed=1)
    list(rows)
    return rows.batch(4)


def reduced():
    rows = D.range(20).shuffle(8, seed=1)
    rows.reduce(tf.constant(0, tf.int64), lambda a, b: a + b)
    return rows.batch(4)


def numpied():
    rows = D.range(20).shuffle(8, seed=1)
    next(rows.as_numpy_iterator())
    return rows.batch(4)


def split():
    rows = D.range(20).shuffle(20, seed=1)
    return {"train": rows.take(12).batch(4), "validation": rows.skip(12).batch(4)}


def split_fixed():
    rows = D.range(20).shuffle(20, seed=1, reshuffle_each_iteration=False)
    return {"train": rows.take(12).batch(4), "validation": rows.skip(12).batch(4)}


def split_unseeded():
    rows = D.range(20).shuffle(20)
    return {"train": rows.take(12).batch(4), "validation": rows.skip(12).batch(4)}


def cached():
    rows = D.range(20).shuffle(8, seed=1).cache()
    list(rows)
    return rows.batch(4)


def ending():
    return D.from_tensor_slices(["1", "2", "3", "4", "five", "6"]).map(tf.strings.to_number).batch(2)


def ending_in_tensorflow():
    def check(x):
        with tf.control_dependencies([tf.debugging.Assert(x < 4.0, [x])]):
            return tf.identity(x)

    return D.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).map(check).batch(2)


def racing():
    layer = tf.keras.layers.RandomFlip("horizontal", seed=3)
    rows = D.from_tensor_slices(tf.zeros([8, 4, 4, 3]))
    return rows.map(lambda x: layer(x, training=True), num_parallel_calls=tf.data.AUTOTUNE).batch(4)
