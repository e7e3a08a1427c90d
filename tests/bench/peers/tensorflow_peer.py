"""What the tf.data peers share. Autotuning slows iterators' ends down and is off."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402

THREADS = os.cpu_count()
READ_BYTES = 8 << 20
VERSION = f"tensorflow-cpu {tf.__version__}"


def tuned(dataset):
    options = tf.data.Options()
    options.autotune.enabled = False
    options.deterministic = True
    return dataset.prefetch(4).with_options(options)


def lookup_table(path, otherwise=-1):
    """Lines of a file to their numbers, from 0."""
    lines = tf.lookup.TextFileInitializer(
        path,
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    return tf.lookup.StaticHashTable(lines, otherwise)
