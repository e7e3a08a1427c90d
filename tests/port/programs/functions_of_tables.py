"""Lookup tables of files: whole ones, and parts of one."""
import tensorflow as tf

INDEX = tf.lookup.TextFileIndex


def looked_up(table):
    words = tf.data.Dataset.from_tensor_slices({"word": ["the", "film", "nothing", "great", "it"]})
    return words.map(lambda row: table.lookup(row["word"])).batch(2)


def _initializer(**options):
    return tf.lookup.TextFileInitializer(
        "words.txt", tf.string, INDEX.WHOLE_LINE, tf.int64, INDEX.LINE_NUMBER, **options
    )


def whole():
    return looked_up(tf.lookup.StaticHashTable(_initializer(), -1))


def counted():
    return looked_up(tf.lookup.StaticHashTable(_initializer(vocab_size=15), -7))


def with_buckets():
    return looked_up(tf.lookup.StaticVocabularyTable(_initializer(), 3))


def shortened():
    return looked_up(tf.lookup.StaticHashTable(_initializer(vocab_size=4), -1))


def shortened_with_buckets():
    return looked_up(tf.lookup.StaticVocabularyTable(_initializer(vocab_size=4), 2))


def shifted():
    return looked_up(tf.lookup.StaticHashTable(_initializer(value_index_offset=5), -1))
