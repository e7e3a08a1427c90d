"""Categories without a vocabulary: hashed, crossed, encoded, in bins."""
import tensorflow as tf
from tensorflow import keras


def make():
    hashing = keras.layers.Hashing(num_bins=16)
    bins = keras.layers.Discretization(bin_boundaries=[20.0, 40.0, 60.0])
    encode = keras.layers.CategoryEncoding(num_tokens=4, output_mode="one_hot")
    cross = keras.layers.HashedCrossing(num_bins=8)

    def parse(line):
        age, kind, breed, fee, adopted = tf.io.decode_csv(line, [0.0, "", "", 0, 0])
        return {"age": age, "kind": kind, "breed": breed, "fee": fee}, adopted

    def prepare(row, label):
        return {
            "breed": hashing(row["breed"]),
            "both": cross((row["kind"], row["breed"])),
            "age": encode(bins(row["age"])),
            "is_free": row["fee"] == 0,
        }, label

    return tf.data.TextLineDataset("pets-1.csv").skip(1).batch(5).map(lambda lines: parse(lines)).map(prepare)
