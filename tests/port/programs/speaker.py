"""Keras' speaker recognition: paths and labels, noise added, a Fourier transform."""
import glob
import os

import tensorflow as tf


def paths_and_labels_to_dataset(audio_paths, labels):
    path_ds = tf.data.Dataset.from_tensor_slices(audio_paths)
    audio_ds = path_ds.map(lambda x: path_to_audio(x), num_parallel_calls=tf.data.AUTOTUNE)
    label_ds = tf.data.Dataset.from_tensor_slices(labels)
    return tf.data.Dataset.zip((audio_ds, label_ds))


def path_to_audio(path):
    audio = tf.io.read_file(path)
    audio, _ = tf.audio.decode_wav(audio, 1, 1600)
    return audio


def audio_to_fft(audio):
    audio = tf.squeeze(audio, axis=-1)
    fft = tf.signal.fft(tf.cast(tf.complex(real=audio, imag=tf.zeros_like(audio)), tf.complex64))
    fft = tf.expand_dims(fft, axis=-1)
    return tf.math.abs(fft[:, : (audio.shape[1] // 2), :])


def files():
    audio_paths = sorted(glob.glob("speech/*/*.wav"))
    labels = [["no", "yes"].index(os.path.basename(os.path.dirname(path))) for path in audio_paths]
    return audio_paths, labels


def make():
    ds = paths_and_labels_to_dataset(*files()).shuffle(buffer_size=16, seed=43).batch(4)
    return ds.map(lambda x, y: (audio_to_fft(x), y)).prefetch(tf.data.AUTOTUNE)


def paths():
    audio_paths, labels = files()
    ds = tf.data.Dataset.from_tensor_slices((audio_paths, labels)).shuffle(8, seed=43)
    return ds.map(lambda path, label: (tf.io.read_file(path), label)).batch(4)
