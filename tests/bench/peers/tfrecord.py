"""The click log from tf.Example in TFRecord: label, 13 logarithms, 26 ids, 4,096 rows a batch."""

import glob
import itertools
import os

from .clicks import INTEGERS, TERMS, vocabulary_path
from .peer import Batch, Peer

BATCH_ROWS = 4096


def tfdata(folder, _cell):
    from .tensorflow_peer import READ_BYTES, THREADS, VERSION, lookup_table, tf, tuned

    tables = [lookup_table(vocabulary_path(folder, term)) for term in TERMS]
    features = {"label": tf.io.FixedLenFeature([], tf.int64)}
    features |= {name: tf.io.FixedLenFeature([], tf.int64, 0) for name in INTEGERS}
    features |= {name: tf.io.FixedLenFeature([], tf.string, "") for name in TERMS}

    def parse(records):
        row = tf.io.parse_example(records, features)
        dense = tf.cast(tf.stack([row[name] for name in INTEGERS], axis=1), tf.float32)
        ids = [table.lookup(row[name]) + 1 for table, name in zip(tables, TERMS)]
        return tf.stack(ids, axis=1), tf.math.log1p(tf.maximum(dense, 0.0)), row["label"]

    paths = sorted(glob.glob(os.path.join(folder, "train-*.tfrecord")))
    records = tf.data.TFRecordDataset(paths, buffer_size=READ_BYTES)
    dataset = tuned(records.batch(BATCH_ROWS).map(parse, num_parallel_calls=THREADS))
    return Peer(VERSION, lambda: itertools.starmap(Batch, dataset.as_numpy_iterator()))


PEERS = {"tfdata": tfdata}
