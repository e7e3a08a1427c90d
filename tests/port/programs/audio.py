"""Simple audio recognition: waveforms to spectrograms."""
import os

import tensorflow as tf


def decode(path):
    audio, _ = tf.audio.decode_wav(tf.io.read_file(path), desired_channels=1)
    return tf.squeeze(audio, axis=-1)


def waveforms():
    files = tf.data.Dataset.list_files("speech/*/*.wav", shuffle=False)
    return files.map(decode).batch(2)


def get_spectrogram(waveform):
    spectrogram = tf.signal.stft(waveform, frame_length=255, frame_step=128)
    spectrogram = tf.abs(spectrogram)
    return spectrogram[..., tf.newaxis]


def spectrograms():
    return waveforms().map(get_spectrogram)


def labeled():
    commands = ["no", "yes"]

    def label_of(path):
        return tf.strings.split(path, os.path.sep)[-2] == commands

    files = tf.data.Dataset.list_files("speech/*/*.wav", shuffle=False)
    return files.map(lambda path: (decode(path), tf.argmax(label_of(path)))).batch(2)
