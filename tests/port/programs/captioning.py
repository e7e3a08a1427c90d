"""Image captioning and translation: texts to vectors with TextVectorization."""
import glob

import keras
import tensorflow as tf

SEQ_LENGTH = 8


def _captions():
    paths = sorted(glob.glob("flowers/*/*.jpg"))[:8]
    texts = [[f"<start> a {p.split('/')[1]} flower <end>", f"<start> one picture of {p.split('/')[1]} <end>"] for p in paths]
    return paths, texts


def _vectorization(texts):
    layer = keras.layers.TextVectorization(max_tokens=40, output_mode="int", output_sequence_length=SEQ_LENGTH)
    layer.adapt([text for each in texts for text in each])
    return layer


def make(batch_size=2):
    paths, captions = _captions()
    vectorization = _vectorization(captions)

    def decode_and_resize(img_path):
        img = tf.io.read_file(img_path)
        img = tf.image.decode_jpeg(img, channels=3)
        img = tf.image.resize(img, (8, 8))
        return tf.image.convert_image_dtype(img, tf.float32)

    def process_input(img_path, captions):
        return decode_and_resize(img_path), vectorization(captions)

    dataset = tf.data.Dataset.from_tensor_slices((paths, captions))
    dataset = dataset.shuffle(batch_size * 8, seed=5)
    dataset = dataset.map(process_input, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(batch_size).prefetch(tf.data.AUTOTUNE)


def translation(batch_size=4):
    pairs = [line.split("\t") for line in open("pairs.tsv").read().splitlines()]
    eng, spa = [p[0] for p in pairs], ["[start] " + p[1] + " [end]" for p in pairs]
    eng_vectorization = keras.layers.TextVectorization(max_tokens=50, output_mode="int", output_sequence_length=6)
    spa_vectorization = keras.layers.TextVectorization(max_tokens=50, output_mode="int", output_sequence_length=7)
    eng_vectorization.adapt(eng)
    spa_vectorization.adapt(spa)

    def format_dataset(eng, spa):
        eng = eng_vectorization(eng)
        spa = spa_vectorization(spa)
        return {"encoder_inputs": eng, "decoder_inputs": spa[:, :-1]}, spa[:, 1:]

    dataset = tf.data.Dataset.from_tensor_slices((eng, spa))
    dataset = dataset.batch(batch_size)
    dataset = dataset.map(format_dataset)
    return dataset.cache().shuffle(2048, seed=1).prefetch(16)


def masked_language_model():
    lines = tf.data.TextLineDataset("cowper.txt")
    vectorize = keras.layers.TextVectorization(max_tokens=30, output_sequence_length=10)
    vectorize.adapt(lines.batch(4))
    return lines.batch(4).map(vectorize)


def sentiment():
    texts = ["Good film", "bad film!", "Great, great", "boring", "awful plot", "superb"]
    labels = [1, 0, 1, 0, 0, 1]
    vectorize = keras.layers.TextVectorization(output_mode="multi_hot", ngrams=2, max_tokens=20)
    vectorize.adapt(texts)
    ds = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(2)
    return ds.map(lambda x, y: (vectorize(x), y))
