"""Functions that move values: each of these makes a dataset of the same rows with one of them."""
import tensorflow as tf

GRID = [[[float(i * 12 + j * 3 + k) for k in range(3)] for j in range(4)] for i in range(5)]


def rows(function, batch=2):
    data = tf.data.Dataset.from_tensor_slices({"x": GRID, "n": list(range(5))})
    return data.map(lambda row: function(row["x"], row["n"])).batch(batch)


def transposed():
    return rows(lambda x, n: (tf.transpose(x), tf.transpose(x[..., tf.newaxis], [2, 0, 1])))


def transposed_batches():
    batches = rows(lambda x, n: x)
    return batches.map(lambda x: tf.transpose(x, [0, 2, 1]))


def batch_last():
    return rows(lambda x, n: x).map(lambda x: {"x": tf.transpose(x, [1, 2, 0])})


def reversed_axes():
    return rows(lambda x, n: (tf.reverse(x, [0]), tf.reverse(x, [-1, 0])))


def unstacked():
    def function(x, n):
        a, b, c = tf.unstack(x, axis=-1)
        return {"a": a, "c": c, "sum": a + b}

    return rows(function)


def split():
    def function(x, n):
        a, b = tf.split(x, 2)
        c, d = tf.split(x, [1, -1], axis=1)
        return a, b, c, d

    return rows(function)


def sliced():
    return rows(lambda x, n: (tf.slice(x, [1, 0], [2, -1]), tf.gather(x, 2), tf.gather(x, 1, axis=1)))


def new_axes():
    return rows(
        lambda x, n: (x[tf.newaxis], x[..., tf.newaxis], x[:, tf.newaxis, 1:], x[tf.newaxis, ..., tf.newaxis, 0])
    )


def constants():
    return rows(
        lambda x, n: {
            "minus": x - tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [0.5, 0.25, 0.0]]),
            "zeros": tf.zeros([2, 3]),
            "ones": tf.ones([2], tf.int64) * n[tf.newaxis].shape[0],
            "fill": tf.fill([2, 2], 7),
            "range": tf.range(3) + n,
            "matrix": tf.constant([[1, 2], [3, 4]], tf.int64),
        }
    )


def tiled():
    return rows(lambda x, n: (tf.tile(x[..., tf.newaxis], [1, 1, 3]), tf.image.grayscale_to_rgb(x[..., tf.newaxis])))


def cropped():
    return rows(lambda x, n: (tf.image.central_crop(x[..., tf.newaxis], 0.5), tf.image.central_crop(x[..., tf.newaxis], 0.7)))


def infinite():
    return rows(lambda x, n: (tf.math.is_inf(x / tf.cast(n % 2, tf.float32)), tf.math.is_inf(x)))


def drawn():
    def function(x, n):
        image = x[..., tf.newaxis]
        return {
            "flipped": tf.image.stateless_random_flip_left_right(image, [n, 3]),
            "turned": tf.image.stateless_random_flip_up_down(image, (1, n)),
            "brighter": tf.image.stateless_random_brightness(image, 0.3, [n, n]),
            "draw": tf.random.stateless_uniform([3], [n, 1], -2.0, 5.5),
        }

    return rows(function)


def sounds():
    files = tf.data.Dataset.list_files("speech/*/*.wav", shuffle=False)
    return files.map(lambda path: tf.audio.decode_wav(tf.io.read_file(path), desired_samples=400)).batch(2)


def refused():
    return rows(lambda x, n: {"tile": tf.tile(x, [70, 1]), "gather": tf.gather(x, [[0, 1]]), "again": tf.repeat(x, 2)})
