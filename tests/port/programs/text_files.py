"""The tutorial on text: lines of several authors with labels, mixed."""
import tensorflow as tf
from tensorflow import keras

NAMES = ["cowper.txt", "derby.txt", "butler.txt"]


def labeler(example, index):
    return example, tf.cast(index, tf.int64)


def labeled():
    sets = []
    for i, name in enumerate(NAMES):
        sets.append(tf.data.TextLineDataset(name).map(lambda line: labeler(line, i)))
    everything = sets[0]
    for each in sets[1:]:
        everything = everything.concatenate(each)
    return everything.shuffle(50, seed=8, reshuffle_each_iteration=False)


def make():
    data = labeled()
    train, validation = data.skip(8), data.take(8)
    vectorize = keras.layers.TextVectorization(max_tokens=20, output_mode="int", output_sequence_length=10)
    vectorize.adapt(train.map(lambda text, label: text))

    def vectorize_text(text, label):
        return vectorize(text), label

    return {
        "train": train.batch(4).map(vectorize_text),
        "validation": validation.batch(4).map(vectorize_text),
    }
