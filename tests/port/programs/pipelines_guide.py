"""The guides on input pipelines and on their speed."""
import numpy as np
import tensorflow as tf


def batched_pairs():
    inc = tf.data.Dataset.range(100)
    dec = tf.data.Dataset.range(0, -100, -1)
    return tf.data.Dataset.zip((inc, dec)).batch(7, drop_remainder=True)


def padded():
    ds = tf.data.Dataset.range(10).map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
    return ds.padded_batch(4, padded_shapes=(None,))


def epochs():
    lines = tf.data.TextLineDataset("titanic.csv")
    return lines.repeat(2).batch(9)


def shuffled_after_repeat():
    ds = tf.data.Dataset.zip((tf.data.Dataset.counter(3, 2), tf.data.TextLineDataset("titanic.csv")))
    return ds.shuffle(buffer_size=10, seed=1).batch(4).take(6)


def enumerated():
    return tf.data.TextLineDataset("titanic.csv").enumerate().shuffle(10, seed=2).repeat(2).batch(6)


def images_of_folders():
    list_ds = tf.data.Dataset.list_files("flowers/*/*", shuffle=False)
    names = tf.constant(["daisy", "roses", "tulips"])

    def process_path(file_path):
        label = tf.strings.split(file_path, "/")[-2]
        return tf.io.read_file(file_path), label

    def parse_image(filename):
        parts = tf.strings.split(filename, "/")
        image = tf.io.decode_jpeg(tf.io.read_file(filename))
        image = tf.image.convert_image_dtype(image, tf.float32)
        return tf.image.resize(image, [8, 8]), parts[-2]

    return {"raw": list_ds.map(process_path).batch(3), "images": list_ds.map(parse_image).batch(3)}


def horizons():
    def dense_1_step(batch):
        return batch[:-1], batch[1:]

    return tf.data.Dataset.range(40).batch(10, drop_remainder=True).map(dense_1_step)


def windows_of_labels():
    def make_window_dataset(ds, window_size=5, shift=1, stride=1):
        windows = ds.window(window_size, shift=shift, stride=stride)
        return windows.flat_map(lambda sub: sub.batch(window_size, drop_remainder=True))

    ds = make_window_dataset(tf.data.Dataset.range(60), window_size=10, shift=5, stride=3)
    return ds.map(lambda window: (window[:-1], window[-1:]))


def vectorized():
    ds = tf.data.Dataset.range(100).batch(16)
    return ds.map(lambda x: x + 1).cache().unbatch().batch(10)


def cached():
    ds = tf.data.Dataset.range(20).map(lambda x: x * x, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.cache().shuffle(20, seed=5).repeat(2).batch(6).prefetch(tf.data.AUTOTUNE)


def interleaved():
    files = tf.data.Dataset.from_tensor_slices(["cowper.txt", "derby.txt", "butler.txt"])
    lines = files.interleave(tf.data.TextLineDataset, cycle_length=3, block_length=2, deterministic=True)
    return lines.batch(5)


def generated():
    def count(stop):
        for i in range(stop):
            yield i

    return tf.data.Dataset.from_generator(count, args=[25], output_signature=tf.TensorSpec((), tf.int32)).batch(10)


def numpy_images():
    images = np.random.default_rng(0).integers(0, 255, (12, 4, 4)).astype(np.float32)
    labels = np.arange(12, dtype=np.uint8)
    return tf.data.Dataset.from_tensor_slices((images / 255.0, labels)).shuffle(12, seed=0).batch(5)


def detection():
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/object/bbox/xmin": tf.io.VarLenFeature(tf.float32),
        "image/object/bbox/ymin": tf.io.VarLenFeature(tf.float32),
        "image/class/label": tf.io.VarLenFeature(tf.int64),
    }

    def parse(record):
        row = tf.io.parse_single_example(record, features)
        image = tf.image.resize(tf.io.decode_jpeg(row["image/encoded"], channels=3), (8, 8))
        x, y = (tf.sparse.to_dense(row[f"image/object/bbox/{side}"]) for side in ("xmin", "ymin"))
        return image, tf.stack([x, y], axis=-1), tf.sparse.to_dense(row["image/class/label"])

    files = tf.data.Dataset.list_files("imagenet-*", seed=2)
    ds = files.interleave(tf.data.TFRecordDataset, cycle_length=2).map(parse).shuffle(8, seed=3)
    return ds.padded_batch(4, padding_values=(0.0, 1e-8, tf.constant(-1, tf.int64)), drop_remainder=True)


def speech():
    """Keras' transformer ASR: characters to numbers."""
    letters = ["-", "#", "<", ">"] + [chr(i + 96) for i in range(1, 27)] + [" ", ".", ",", "?"]
    numbers = {letter: i for i, letter in enumerate(letters)}
    texts = [[numbers.get(c, 1) for c in "<" + text + ">"] for text in ("to be", "or not", "the end.")]
    texts = [each + [0] * (12 - len(each)) for each in texts]
    return tf.data.Dataset.from_tensor_slices(texts).batch(2)


def frames():
    """A video as rows of frames, and its label."""
    videos = np.random.default_rng(5).integers(0, 255, (6, 4, 3, 3, 1)).astype(np.uint8)
    labels = np.arange(6)

    def preprocess(frames, label):
        frames = tf.image.convert_image_dtype(frames, tf.float32)
        return frames, tf.cast(label, tf.float32)

    return tf.data.Dataset.from_tensor_slices((videos, labels)).shuffle(12, seed=1).map(preprocess).batch(2)
