"""What has no stage, and runs under TensorFlow itself."""
import collections

import numpy as np
import tensorflow as tf

Example = collections.namedtuple("Example", ["image", "box"])
table = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer([0, 1, 2], ["none", "one", "two"], tf.int32, tf.string), "many"
)


def jitter(image):
    return np.roll(image, int(image.sum()) % 3, axis=1)


def examples():
    return tf.data.Dataset.range(9).map(
        lambda i: Example(tf.reshape(tf.range(12) + tf.cast(i, tf.int32), [3, 4]), tf.cast([i, i + 1], tf.float32))
    )


def functions():
    """Unknown ranks, named tuples, dictionaries, texts, a table, after a batch, before a filter."""

    def augment(example):
        image, box = example
        turned = tf.numpy_function(jitter, [image], tf.int32)
        name = table.lookup(tf.shape(image)[0] - 1)
        return {"image": turned, "label": {"name": tf.strings.upper(name), "count": tf.py_function(np.sum, [box], tf.float32)}}

    rows = examples().shuffle(4, seed=1).map(augment)
    rows = rows.filter(lambda row: tf.numpy_function(lambda n: n > 2, [row["label"]["count"]], tf.bool))
    rows = rows.map(lambda row: (tf.ensure_shape(row["image"], [3, 4]), row["label"]))
    rows = rows.batch(2)
    return rows.map(lambda image, label: (tf.map_fn(tf.linalg.trace, tf.cast(image, tf.float32)), label["name"]))


def within():
    """In a function of an outer element."""

    def square(i):
        return tf.ensure_shape(tf.numpy_function(np.square, [i], tf.int64), [])

    numbers = tf.data.Dataset.range(3)
    return numbers.interleave(lambda n: tf.data.Dataset.range(4).map(square), cycle_length=2).map(lambda x: x + 1).batch(5)


def outer():
    """A function of its own and of the outer element."""
    return tf.data.Dataset.range(3).flat_map(
        lambda n: tf.data.Dataset.range(2).map(lambda i: tf.numpy_function(np.add, [i, n], tf.int64))
    ).batch(4)


def datasets():
    def count(stop):
        for i in range(stop):
            yield {"i": i, "text": b"%d" % i}

    spec = {"i": tf.TensorSpec([], tf.int64), "text": tf.TensorSpec([], tf.string)}
    rows = tf.data.Dataset.from_generator(count, args=[7], output_signature=spec).shuffle(5)
    summed = tf.data.Dataset.range(6).scan(tf.constant(0, tf.int64), lambda state, x: (state + x, state))
    return {"generated": rows.batch(3), "summed": summed.map(lambda x: x // 2).unique().batch(2)}


def random():
    def crop(i):
        image = tf.image.random_crop(tf.reshape(tf.range(75), [5, 5, 3]), [3, 3, 3])
        return tf.image.random_brightness(tf.cast(image, tf.float32), 9.0), i

    return tf.data.Dataset.range(40).map(crop).batch(8)


def ragged():
    return tf.data.Dataset.range(4).batch(2).map(
        lambda x: tf.RaggedTensor.from_tensor(tf.py_function(np.square, [x[:, None]], tf.int64), ragged_rank=1)
    )


def seeded():
    np.random.seed(4)
    noise = np.random.rand(3)

    def add(n):
        return n + noise

    rows = tf.data.Dataset.range(10)
    return rows.map(lambda n: tf.ensure_shape(tf.numpy_function(add, [n], tf.float64), [3])).batch(4)
