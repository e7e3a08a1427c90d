"""Words by lookup tables, of a file and of lists."""
import tensorflow as tf
from tensorflow import keras


def lines():
    return tf.data.TextLineDataset(["cowper.txt", "derby.txt"])


def table():
    init = tf.lookup.TextFileInitializer(
        "words.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    ids = tf.lookup.StaticVocabularyTable(init, num_oov_buckets=1)
    first = lambda line: tf.strings.regex_replace(line, " .*", "")
    return lines().map(lambda line: ids.lookup(first(line))).batch(5)


def pairs():
    init = tf.lookup.KeyValueTensorInitializer(["I", "the"], [5, 6])
    ids = tf.lookup.StaticHashTable(init, default_value=-1)
    return lines().map(lambda line: ids.lookup(tf.strings.substr(line, 0, 1))).batch(5)


def layer():
    lookup = keras.layers.StringLookup(vocabulary="words.txt", num_oov_indices=2)
    return lines().map(lambda line: tf.strings.substr(line, 0, 3)).batch(5).map(lookup)
