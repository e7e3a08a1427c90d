"""Sequence to sequence: pairs of sentences, standardized, with markers."""
import tensorflow as tf
from tensorflow import keras


def standardize(text):
    text = tf.strings.lower(text)
    text = tf.strings.regex_replace(text, "[^ a-z.?!,]", "")
    text = tf.strings.regex_replace(text, "[.?!,]", r" \0 ")
    text = tf.strings.strip(text)
    return tf.strings.join(["[START]", text, "[END]"], separator=" ")


def make():
    lines = tf.data.TextLineDataset("pairs.tsv")
    pairs = lines.map(lambda line: tf.io.decode_csv(line, ["", ""], field_delim="\t"))
    pairs = pairs.map(lambda source, target: (standardize(source), standardize(target)))
    source_layer = keras.layers.TextVectorization(standardize=None, max_tokens=25, output_sequence_length=9)
    source_layer.adapt(pairs.map(lambda source, target: source))
    target_layer = keras.layers.TextVectorization(standardize=None, max_tokens=25, output_sequence_length=10)
    target_layer.adapt(pairs.map(lambda source, target: target))

    def process(source, target):
        target = target_layer(target)
        return (source_layer(source), target[:, :-1]), target[:, 1:]

    return pairs.shuffle(20, seed=5).batch(4).map(process)
