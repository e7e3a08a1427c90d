"""Arrays in memory: cast, scaled, shuffled, as in the beginners' tutorials."""
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(1)
x_train, y_train = rng.integers(0, 256, (20, 4, 4), dtype=np.uint8), rng.integers(0, 10, 20)


def normalize(image, label):
    return tf.cast(image, tf.float32) / 255.0, label


def make():
    dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train))
    return dataset.map(normalize).cache().shuffle(20, seed=1).batch(6).prefetch(tf.data.AUTOTUNE)


def with_channel():
    dataset = tf.data.Dataset.from_tensor_slices((x_train[..., tf.newaxis].astype("float32"), y_train))
    return dataset.shuffle(10, seed=1).batch(6)
