"""Ragged and sparse columns that the last map makes, dealt to replicas."""
import tensorflow as tf

D = tf.data.Dataset


def _dealt(dataset):
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(dataset)


def _texts():
    return D.from_tensor_slices(["a b", "c", "", "d e f", "g h", "i"]).batch(4)


def ragged():
    return _dealt(_texts().map(tf.strings.split))


def ragged_in_a_dictionary():
    return _dealt(_texts().map(lambda text: {"words": tf.strings.split(text), "text": text}))


def ragged_terms():
    layer = tf.keras.layers.TextVectorization(vocabulary=["a", "c", "e"], ragged=True)
    return _dealt(_texts().map(layer))


def _examples(count=6, size=4):
    def example(numbers):
        feature = {"x": tf.train.Feature(int64_list=tf.train.Int64List(value=numbers))}
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    return D.from_tensor_slices([example(range(i, 2 * i)) for i in range(1, count + 1)]).batch(size)


def ragged_features():
    features = {"x": tf.io.RaggedFeature(tf.int64)}
    return _dealt(_examples().map(lambda rows: tf.io.parse_example(rows, features)))


def sparse_features():
    features = {"x": tf.io.VarLenFeature(tf.int64)}
    return _dealt(_examples(24, 12).map(lambda rows: tf.io.parse_example(rows, features)))


def sparse_of_ragged():
    texts = D.from_tensor_slices(["a b", "c", "", "d e f"] * 6).batch(12)
    return _dealt(texts.map(lambda text: tf.strings.split(text).to_sparse()))
