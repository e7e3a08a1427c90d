"""Programs that fail, print, train or need what is not there."""
import tensorflow as tf


def raises():
    raise ValueError("no data today")


def prints():
    print("a line that is no YAML")
    return tf.data.Dataset.range(4).batch(2)


def trains():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.zeros([4, 1]), tf.zeros([4, 1]))
    return tf.data.Dataset.range(4)


def needs_gpu():
    if not tf.config.list_physical_devices("GPU"):
        raise RuntimeError("this program needs a GPU")


def exits():
    raise SystemExit(3)


def no_dataset():
    return 7


def runs_without():
    if hasattr(tf.strings.split, "_tundish_real"):
        raise ValueError("somebody stands before me")
    return tf.data.Dataset.range(4)
