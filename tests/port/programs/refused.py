"""What cannot be carried over: each is listed with its line."""
import numpy as np
import tensorflow as tf

counter = tf.Variable(0, dtype=tf.int64)


def generator():
    return tf.data.Dataset.from_generator(lambda: iter(range(3)), output_signature=tf.TensorSpec([], tf.int64))


def functions():
    dataset = tf.data.Dataset.range(6).map(lambda x: tf.py_function(np.sqrt, [x], tf.float64))
    dataset = dataset.map(lambda x: tf.numpy_function(np.square, [x], tf.float64))
    return dataset.batch(2)


def stateful():
    return tf.data.Dataset.range(6).map(lambda x: x + counter.assign_add(1)).batch(2)


def variable():
    return tf.data.Dataset.range(6).map(lambda x: x + counter).batch(2)


def random():
    return tf.data.Dataset.range(6).map(lambda x: x + tf.random.uniform([], maxval=5, dtype=tf.int64)).batch(2)


def loop():
    def collatz(x):
        steps = tf.constant(0, tf.int64)
        while x > 1:
            x = x // 2
            steps += 1
        return steps

    return tf.data.Dataset.range(6).map(collatz).batch(2)


def many():
    dataset = tf.data.Dataset.range(6).scan(tf.constant(0, tf.int64), lambda state, x: (state + x, state))
    dataset = dataset.map(lambda x: tf.py_function(np.square, [x], tf.int64))
    return dataset.unique().batch(2)


def unseen():
    return tf.data.Dataset.range(6).apply(tf.data.experimental.assert_cardinality(6)).batch(2)


def sliced_lists():
    words = tf.data.TextLineDataset("titanic.csv").map(lambda line: tf.strings.split(line, ",")).ragged_batch(3)
    return words.map(
        lambda words: words[:, :-1].to_tensor()
    )


def followed():
    """One refusal: the calls after it are right by themselves."""
    images = tf.data.Dataset.from_tensor_slices(tf.zeros([4, 8, 8, 3]))

    def prepare(image):
        image = tf.pad(image, [[8, 8], [1, 1], [0, 0]], "REFLECT")
        return tf.transpose(tf.ensure_shape(image, [24, 10, 3])) * 2.0

    return images.map(prepare).batch(2)


def reduced():
    zero = tf.constant(0, tf.int64)
    windows = tf.data.Dataset.range(9).window(4, shift=2)
    return windows.flat_map(
        lambda window: tf.data.Dataset.from_tensors(window.reduce(zero, lambda a, b: a + b))
    ).batch(2)


def ignoring():
    return tf.data.experimental.make_csv_dataset(
        "titanic.csv", 4, label_name="survived", num_epochs=1, shuffle=False, ignore_errors=True
    )


def padded_too_far():
    rows = tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]])
    return rows.map(lambda v: (tf.pad(v, [[0, 1]]), v)).map(lambda a, v: (a, tf.pad(v, [[0, 2]], "REFLECT"))).batch(2)


def joined_matrices():
    return tf.data.Dataset.from_tensor_slices([[["a"], ["b"]]]).map(tf.strings.reduce_join).batch(1)


def ragged_slices():
    lists = tf.ragged.constant([[1, 2], [], [3]])
    return tf.data.Dataset.from_tensor_slices({"n": [1, 2, 3], "lists": lists}).batch(2)
