"""The parameter server tutorial: a dataset_fn with layers, for each worker."""
import tensorflow as tf
from tensorflow import keras

feature_vocab = ["avenger", "ironman", "batman", "hulk", "spiderman", "kingkong", "wonder_woman"]
label_vocab = ["yes", "no"]
feature_lookup = keras.layers.StringLookup(vocabulary=feature_vocab, mask_token=None, num_oov_indices=0)
label_lookup = keras.layers.StringLookup(vocabulary=label_vocab, num_oov_indices=0, mask_token=None)


def feature_and_label_gen(num_examples=20):
    names = [[feature_vocab[(i * k) % 7] for k in (1, 2, 3)] for i in range(num_examples)]
    labels = [["yes"] if "avenger" in each else ["no"] for each in names]
    return {"features": names, "label": labels}


def dataset_fn(_=None):
    raw = tf.data.Dataset.from_tensor_slices(feature_and_label_gen())
    train = raw.map(lambda x: (feature_lookup(x["features"]), tf.strings.to_number(
        tf.where(x["label"] == "yes", "1", "0"), tf.int64)))
    return train.shuffle(20, seed=3).batch(4).repeat()
