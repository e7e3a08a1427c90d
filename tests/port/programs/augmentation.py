"""The tutorial on augmentation, and Keras' random layers: draws of stateful generators."""
import tensorflow as tf
from tensorflow import keras

augment = keras.Sequential([keras.layers.RandomFlip("horizontal"), keras.layers.RandomRotation(0.1)])


def decode(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [16, 16])


def brightness():
    files = tf.data.Dataset.list_files("flowers/daisy/*.jpg", shuffle=False)
    return files.map(decode).map(lambda image: tf.image.random_brightness(image, 0.1)).batch(2)


def stateless():
    files = tf.data.Dataset.list_files("flowers/daisy/*.jpg", shuffle=False)
    counted = files.map(decode).enumerate()
    return counted.map(lambda i, image: tf.image.stateless_random_flip_left_right(image, [i, 0])).batch(2)
