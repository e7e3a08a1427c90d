"""Text to pieces of characters, and n-grams of words."""
import tensorflow as tf


def characters():
    lines = tf.data.TextLineDataset("cowper.txt")
    return lines.batch(4).map(lambda text: tf.strings.unicode_split(text, "UTF-8"))


def words():
    lines = tf.data.TextLineDataset("cowper.txt")
    split = lines.batch(4).map(lambda text: tf.strings.split(tf.strings.lower(text)))
    return split.map(lambda tokens: tf.strings.ngrams(tokens, 2, separator=" "))


def lengths():
    lines = tf.data.TextLineDataset("cowper.txt")
    return lines.map(lambda text: (text, tf.strings.length(text))).batch(4)
