"""Inputs of texts and tables of the kinds that public repositories train on."""
import re
import string

import numpy as np
import tensorflow as tf

WORDS = "the a movie was great awful film plot boring superb acting i loved hated it".split()


def multi_hot():
    """Terms of any number, as serialized tensors in a record."""
    rows = []
    for n in range(9):
        features = {"label": tf.train.Feature(float_list=tf.train.FloatList(value=[n % 2]))}
        for name, count in (("shop", n % 3 + 1), ("goods", 2)):
            data = tf.io.serialize_tensor(tf.range(n, n + count, dtype=tf.int64)).numpy()
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
        rows.append(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())

    def parse(record):
        keys = {name: tf.io.FixedLenFeature([], tf.string) for name in ("shop", "goods")}
        found = tf.io.parse_single_example(record, {"label": tf.io.FixedLenFeature([], tf.float32), **keys})
        terms = {name: tf.ensure_shape(tf.io.parse_tensor(found[name], tf.int64), [None]) for name in keys}
        return terms, found["label"]

    return tf.data.Dataset.from_tensor_slices(rows).map(parse).padded_batch(4, padding_values=(({"shop": np.int64(-1), "goods": np.int64(-1)}), 0.0))


def listwise_ranking():
    """A context and its examples, in one record."""
    keys = {"score": tf.io.FixedLenFeature([1], tf.float32), "term": tf.io.VarLenFeature(tf.int64)}

    def record(n):
        def example(i):
            return tf.train.Example(features=tf.train.Features(feature={
                "score": tf.train.Feature(float_list=tf.train.FloatList(value=[n + i / 10])),
                "term": tf.train.Feature(int64_list=tf.train.Int64List(value=range(i))),
            })).SerializeToString()  # fmt: skip

        lists = {"documents": tf.train.FeatureList(feature=[
            tf.train.Feature(bytes_list=tf.train.BytesList(value=[example(i)])) for i in range(n % 3 + 1)
        ])}  # fmt: skip
        context = tf.train.Features(feature={"query": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"q%d" % n]))})
        return tf.train.SequenceExample(context=context, feature_lists=tf.train.FeatureLists(feature_list=lists)).SerializeToString()

    def parse(data):
        context, lists = tf.io.parse_single_sequence_example(
            data, {"query": tf.io.FixedLenFeature([], tf.string)}, {"documents": tf.io.FixedLenSequenceFeature([], tf.string)}
        )
        documents = lists["documents"][:4]
        size = tf.shape(documents)[0]
        empty = tf.constant([tf.train.Example().SerializeToString()])
        filled = tf.concat([documents, tf.tile(empty, [4 - size])], 0)
        found = tf.io.parse_example(filled, {**keys, "score": tf.io.FixedLenFeature([1], tf.float32, [0.0])})
        terms = tf.sparse.to_dense(found["term"], default_value=-1)
        terms = tf.pad(terms, [[0, 0], [0, 3 - tf.shape(terms)[1]]], constant_values=-1)
        return {"query": context["query"], "score": found["score"], "term": terms, "mask": tf.sequence_mask(size, 4)}

    return tf.data.Dataset.from_tensor_slices([record(n) for n in range(7)]).map(parse).batch(3)


def buckets_by_table():
    """The batch's size follows from a table of lengths, of the longer of two texts."""
    bounds = tf.constant([4, 8, 12, 256])
    sizes = tf.constant([6, 4, 3, 2], tf.int64)

    def lengths(one, two):
        return tf.maximum(tf.size(one), tf.size(two))

    def key(one, two):
        longer = lengths(one, two)
        return tf.reduce_min(tf.where(longer <= bounds))

    def grouped(number, window):
        return window.padded_batch(sizes[number])

    lines = tf.data.TextLineDataset("pairs.tsv").map(lambda line: tuple(tf.unstack(tf.strings.split(line, "\t"), 2)))
    table = tf.keras.layers.StringLookup(vocabulary=[*WORDS, "I"])
    pairs = lines.map(lambda one, two: (table(tf.strings.split(one)), table(tf.strings.split(two))))
    pairs = pairs.filter(lambda one, two: lengths(one, two) < 100)
    return pairs.group_by_window(key, grouped, window_size_func=lambda number: sizes[number])


def parallel_texts():
    """Two files, vocabularies, lengths, and buckets by the longer."""
    one, two = (tf.data.TextLineDataset(f"{name}.txt") for name in ("cowper", "derby"))
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer("words.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 1
    )

    def features(text):
        tokens = tf.strings.split(text)
        return {"tokens": tokens, "ids": table.lookup(tokens), "length": tf.size(tokens)}

    rows = tf.data.Dataset.zip((one, two)).map(lambda a, b: (features(a), features(b)))
    rows = rows.filter(lambda a, b: tf.logical_and(tf.greater(a["length"], 0), tf.less_equal(b["length"], 40)))
    return rows.apply(
        tf.data.experimental.bucket_by_sequence_length(
            lambda a, b: tf.maximum(a["length"], b["length"] + 1), [10, 16], [3, 2, 2]
        )
    )


def table_with_damaged_lines():
    """Lines that do not parse are left out."""
    with open("damaged.csv", "w") as file:
        file.write("age,fare,who\n" + "".join(f"{'x' if n % 5 == 3 else n},{n / 2},p{n}\n" for n in range(12)))
    return tf.data.experimental.make_csv_dataset(
        "damaged.csv", 4, column_defaults=[0, 0.0, ""], label_name="fare", num_epochs=1, shuffle=False, ignore_errors=True
    )


def standardized(texts, keep=""):
    texts = tf.strings.regex_replace(tf.strings.lower(texts), "<br />", " ")
    marks = "".join(each for each in string.punctuation if each not in keep)
    return tf.strings.regex_replace(texts, f"[{re.escape(marks)}]", "")


def reviews():
    """A sentiment: marks stripped by the program's own function, and numbers of words."""
    layer = tf.keras.layers.TextVectorization(standardize=standardized, max_tokens=40, output_sequence_length=8)
    folder = tf.keras.utils.text_dataset_from_directory("reviews", batch_size=4, shuffle=False)
    layer.adapt(tf.data.Dataset.from_tensor_slices([" ".join(WORDS), "bye the movie"]))
    return folder.map(lambda texts, labels: (layer(tf.expand_dims(texts, -1)), labels))


def translation():
    """Two languages, of which one has marks that stay and a beginning and an end."""
    with open("pairs.tsv") as file:
        pairs = [line.rstrip("\n").split("\t") for line in file]
    one = [first for first, _ in pairs]
    two = [f"[start] {second} [end]" for _, second in pairs]
    first = tf.keras.layers.TextVectorization(max_tokens=30, output_sequence_length=6)
    second = tf.keras.layers.TextVectorization(
        max_tokens=30, output_sequence_length=7, standardize=lambda texts: standardized(texts, keep="[]")
    )
    first.adapt(one)
    second.adapt(two)

    def parse(a, b):
        a, b = first(a), second(b)
        return {"encoder": a, "decoder": b[:, :-1]}, b[:, 1:]

    return tf.data.Dataset.from_tensor_slices((one, two)).batch(4).map(parse).shuffle(16, seed=2)


def captions():
    """Pictures and five captions of each."""
    layer = tf.keras.layers.TextVectorization(
        max_tokens=30, output_sequence_length=6, standardize=lambda texts: standardized(texts, keep="<>")
    )
    layer.adapt([" ".join(WORDS), "<start> <end>"])
    paths = [f"flowers/roses/{n}.jpg" for n in range(6)]
    texts = [[f"<start> {WORDS[(n * 5 + i) % 15]}, {WORDS[n]}! <end>" for i in range(5)] for n in range(6)]

    def parse(path, lines):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.convert_image_dtype(tf.image.resize(image, [8, 8]), tf.float32), layer(lines)

    return tf.data.Dataset.from_tensor_slices((paths, texts)).map(parse).batch(3)


def exact():
    found = (multi_hot, listwise_ranking, buckets_by_table, parallel_texts, table_with_damaged_lines, reviews, translation, captions)
    return {each.__name__: each() for each in found}
