"""Keras' datasets from folders of classes, and of arrays."""
import keras
import numpy as np
import tensorflow as tf


def images(**options):
    options = {"image_size": (12, 12), "batch_size": 4, "seed": 1337} | options
    return keras.utils.image_dataset_from_directory("flowers", **options)


def image_split():
    train_ds = images(validation_split=0.2, subset="training")
    val_ds = images(validation_split=0.2, subset="validation")
    return train_ds, val_ds


def image_both():
    train_ds, val_ds = images(validation_split=0.2, subset="both", label_mode="categorical")
    return train_ds, val_ds


def image_unlabeled():
    return images(label_mode=None, shuffle=False, color_mode="grayscale").map(lambda x: x / 127.5 - 1.0)


def image_named():
    return images(class_names=["tulips", "daisy"], label_mode="binary", crop_to_aspect_ratio=True)


def image_nearest():
    return images(interpolation="nearest", batch_size=None).batch(3)


def image_rgba():
    return images(color_mode="rgba", labels=None)


def image_given():
    return images(labels=list(range(18)), shuffle=False)


def image_padded():
    return images(pad_to_aspect_ratio=True)


def image_augmented():
    normalization = keras.layers.Rescaling(1.0 / 255)
    train_ds = images(validation_split=0.2, subset="training")
    train_ds = train_ds.map(lambda x, y: (normalization(x), y))
    return train_ds.cache().shuffle(20, seed=3).prefetch(tf.data.AUTOTUNE)


def texts(**options):
    return keras.utils.text_dataset_from_directory("reviews", **({"batch_size": 4, "seed": 1337} | options))


def text_split():
    raw_train_ds = texts(validation_split=0.2, subset="training")
    raw_val_ds = texts(validation_split=0.2, subset="validation")
    return raw_train_ds, raw_val_ds


def text_binary():
    return texts(label_mode="binary", max_length=20)


def text_vectorized():
    vectorize = keras.layers.TextVectorization(max_tokens=30, output_sequence_length=10)
    train = texts()
    vectorize.adapt(train.map(lambda x, y: x))
    return train.map(lambda x, y: (vectorize(tf.expand_dims(x, -1)), y)).cache().prefetch(10)


def sounds():
    return keras.utils.audio_dataset_from_directory(
        "speech", batch_size=2, validation_split=0.25, subset="training", seed=0, output_sequence_length=1600
    )


def sounds_ragged():
    return keras.utils.audio_dataset_from_directory("speech", batch_size=2, seed=0, ragged=True)


def _weather():
    return np.arange(60, dtype=np.float32).reshape(20, 3) / 7


def windows():
    data = _weather()
    return keras.utils.timeseries_dataset_from_array(data[:-4], data[4:, 0], sequence_length=4, batch_size=3)


def windows_shuffled():
    data = _weather()
    return keras.utils.timeseries_dataset_from_array(
        data, targets=None, sequence_length=6, sequence_stride=2, sampling_rate=2, batch_size=3, shuffle=True, seed=5
    )


def windows_split():
    ds = keras.utils.timeseries_dataset_from_array(
        _weather(), None, sequence_length=5, sequence_stride=1, shuffle=True, seed=2, batch_size=4
    )
    return ds.map(lambda x: (x[:, :4, :], x[:, 4:, :1]))


def windows_within():
    data = _weather()
    return keras.utils.timeseries_dataset_from_array(
        data, data[:, 1], sequence_length=3, batch_size=4, start_index=2, end_index=15
    )
