"""A model of characters: windows of ids, shifted by one."""
import tensorflow as tf


def make(length=6):
    text = "to be or not to be, that is the question whether " * 3
    characters = sorted(set(text))
    ids = [characters.index(character) for character in text]
    dataset = tf.data.Dataset.from_tensor_slices(ids).batch(length + 1, drop_remainder=True)

    def split(sequence):
        return sequence[:-1], sequence[1:]

    return dataset.map(split).shuffle(100, seed=1).batch(4, drop_remainder=True)
