"""GANs: DCGAN's digits, CelebA's folder, pix2pix' halves, CycleGAN's two lists, VQ-VAE's variance."""
import keras
import numpy as np
import tensorflow as tf


def _digits():
    return np.random.default_rng(3).integers(0, 256, (20, 8, 8), np.uint8)


def dcgan(buffer_size=60, batch_size=4):
    images = _digits().reshape(-1, 8, 8, 1).astype("float32")
    images = (images - 127.5) / 127.5
    return tf.data.Dataset.from_tensor_slices(images).shuffle(buffer_size, seed=1).batch(batch_size)


def celeba():
    dataset = keras.utils.image_dataset_from_directory("flowers", label_mode=None, image_size=(8, 8), batch_size=4, seed=2)
    return dataset.map(lambda x: x / 255.0)


def vq_vae():
    x_train = np.expand_dims(_digits(), -1)
    x_train = (x_train / 255.0) - 0.5
    return tf.data.Dataset.from_tensor_slices(x_train.astype(np.float32)).batch(6, drop_remainder=True)


def wgan():
    images = tf.data.Dataset.from_tensor_slices(_digits()[..., np.newaxis])
    return images.map(lambda x: (tf.cast(x, tf.float32) - 127.5) / 127.5).shuffle(10, seed=4).batch(8)


def _load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path))
    return tf.cast(image, tf.float32)


def _normalize(image):
    return (image / 127.5) - 1


def cyclegan():
    horses = tf.data.Dataset.list_files("flowers/daisy/*.jpg", shuffle=False)
    zebras = tf.data.Dataset.list_files("flowers/roses/*.jpg", shuffle=False)

    def preprocess(path):
        image = tf.image.resize(_load(path), [10, 10], method=tf.image.ResizeMethod.NEAREST_NEIGHBOR)
        return _normalize(image)

    prepare = lambda files, seed: files.map(preprocess, num_parallel_calls=2).cache().shuffle(10, seed=seed).batch(1)
    return tf.data.Dataset.zip((prepare(horses, 1), prepare(zebras, 2)))


def pix2pix():
    def load(image_file):
        image = tf.io.decode_jpeg(tf.io.read_file(image_file))
        w = tf.shape(image)[1] // 2
        input_image = tf.cast(image[:, w:, :], tf.float32)
        real_image = tf.cast(image[:, :w, :], tf.float32)
        return input_image, real_image

    dataset = tf.data.Dataset.list_files("flowers/*/*.jpg", shuffle=False).map(load)
    resize = lambda a, b: (tf.image.resize(a, [8, 8]), tf.image.resize(b, [8, 8]))
    return dataset.map(resize).batch(2)


def pix2pix_whole():
    def load(image_file):
        image = tf.image.resize(_load(image_file), [8, 16])
        return _normalize(image[:, 8:, :]), _normalize(image[:, :8, :])

    return tf.data.Dataset.list_files("flowers/*/*.jpg", seed=5).map(load).shuffle(9, seed=5).batch(2)


def jittered():
    def jitter(path):
        image = tf.image.resize(_load(path), [12, 12])
        image = tf.image.random_crop(image, size=[8, 8, 3])
        if tf.random.uniform(()) > 0.5:
            image = tf.image.flip_left_right(image)
        return image

    return tf.data.Dataset.list_files("flowers/*/*.jpg", shuffle=False).map(jitter).batch(2)
