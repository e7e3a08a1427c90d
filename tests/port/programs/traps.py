"""What must never be guessed: functions that change when they are called again."""
import tensorflow as tf


def loop_variable():
    parts = []
    for i in (1, 2, 3):
        parts.append(tf.data.Dataset.range(3).map(lambda x: x * i))
    return parts[0].concatenate(parts[1]).concatenate(parts[2]).batch(2)


class Popping:
    def __init__(self):
        self.left = {"scale": 2}

    def __call__(self, x):
        return x * self.left.pop("scale")


def popping():
    return tf.data.Dataset.range(6).map(Popping()).batch(2)


def counting():
    calls = []

    def number(x):
        calls.append(x)
        return x + len(calls)

    dataset = tf.data.Dataset.range(6).map(number).map(number)
    return dataset.batch(2)


def reassigned():
    scale = 2
    dataset = tf.data.Dataset.range(6).map(lambda x: x * scale)
    scale = 3
    return dataset.batch(2)


def branches():
    def step(x):
        if x > 3:
            y = x * 2
        else:
            y = x - 1
        return y

    return tf.data.Dataset.range(8).map(step).batch(3)


def closes_over_tensor():
    mean = tf.constant([1.5, 2.5])
    return tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]]).map(lambda x: x - mean).batch(2)
