"""Keras' OCR of captchas: each character of the label looked up."""
import glob
import os

import tensorflow as tf
from tensorflow import keras

WIDTH, HEIGHT = 40, 10


def make(batch_size=4):
    paths = sorted(glob.glob("captcha/*.png"))
    labels = [os.path.basename(path).removesuffix(".png") for path in paths]
    characters = sorted({character for label in labels for character in label})
    to_number = keras.layers.StringLookup(vocabulary=characters, mask_token=None)

    def encode(path, label):
        image = tf.io.decode_png(tf.io.read_file(path), channels=1)
        image = tf.image.convert_image_dtype(image, tf.float32)
        image = tf.image.resize(image, [HEIGHT, WIDTH])
        image = tf.transpose(image, perm=[1, 0, 2])
        label = to_number(tf.strings.unicode_split(label, input_encoding="UTF-8"))
        return {"image": image, "label": label}

    dataset = tf.data.Dataset.from_tensor_slices((paths, labels))
    return dataset.map(encode).batch(batch_size)
