"""Programs whose files will lie elsewhere, whose columns have names of their own, with long vocabularies."""
import tensorflow as tf

D = tf.data.Dataset
TEXTS = [" ".join(f"w{i * j % 97}" for j in range(9)) for i in range(40)]


def make():
    listed = D.list_files("speech/*/*.wav", shuffle=False).cache("speechless")
    named = D.from_tensor_slices(["speech/no/a.wav", "pretrain-0.tfrecord"])
    return listed.concatenate(named).batch(2)


def features():
    def record(i):
        bytes_list, int64_list = tf.train.BytesList(value=[b"abc"[:i]]), tf.train.Int64List(value=[i])
        feature = {
            "image/encoded": tf.train.Feature(bytes_list=bytes_list),
            "image/class/label": tf.train.Feature(int64_list=int64_list),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    wanted = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(serialized):
        parsed = tf.io.parse_single_example(serialized, wanted)
        return tf.strings.length(parsed["image/encoded"]), parsed["image/class/label"]

    rows = D.from_tensor_slices([record(i) for i in range(4)]).map(parse)
    return rows.map(lambda image, label: (image + 1, label)).batch(3)


def vectorized():
    layer = tf.keras.layers.TextVectorization(max_tokens=60, output_sequence_length=9)
    texts = D.from_tensor_slices(TEXTS).batch(8)
    layer.adapt(texts)
    return texts.map(layer)


def multi_hot():
    layer = tf.keras.layers.TextVectorization(max_tokens=60, output_mode="multi_hot")
    texts = D.from_tensor_slices(TEXTS).batch(8)
    layer.adapt(texts)
    return texts.map(layer)


def looked_up():
    layer = tf.keras.layers.StringLookup(max_tokens=70, mask_token="", num_oov_indices=2)
    terms = D.from_tensor_slices([f"w{i}" for i in range(80)]).batch(8)
    layer.adapt(terms)
    return terms.map(layer)
