"""Photographs of 500 by 375, decoded and brought to 224 by 224, 64 a batch."""

import os
import struct
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .peer import Batch, Peer

BATCH_ROWS, SIDE = 64, 224
THREADS = os.cpu_count()


def paths_in(folder):
    return [os.path.join(folder, f"jpegs-{shard}.tfrecord") for shard in range(2)]


def tfdata(folder, _cell):
    from .tensorflow_peer import READ_BYTES, VERSION, tf, tuned

    def decode(record):
        pixels = tf.io.decode_jpeg(record, channels=3)
        return tf.cast(tf.image.resize(pixels, (SIDE, SIDE)), tf.uint8)

    records = tf.data.TFRecordDataset(paths_in(folder), buffer_size=READ_BYTES)
    dataset = tuned(records.map(decode, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH_ROWS))
    return Peer(VERSION, lambda: (Batch(batch) for batch in dataset.as_numpy_iterator()))


class BatchSource:
    """Random access to a batch's records, unchecked; where they are is found beforehand."""

    def __init__(self, folder):
        self.places = [place for path in paths_in(folder) for place in self._places(path)]

    @staticmethod
    def _places(path):
        with open(path, "rb") as file:
            while header := file.read(12):
                length = struct.unpack("<Q", header[:8])[0]
                yield path, file.tell(), length
                file.seek(length + 4, os.SEEK_CUR)

    def __len__(self):
        return -(-len(self.places) // BATCH_ROWS)

    def __getitem__(self, index):
        start = index * BATCH_ROWS
        return [self._read(*place) for place in self.places[start : start + BATCH_ROWS]]

    @staticmethod
    def _read(path, offset, length):
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(length)


def decode_batch(records):
    """libjpeg-turbo as TensorFlow sets it, to the bit, and OpenCV's resizing of bytes, which rounds
    where TensorFlow's of floats cuts off. Neither holds Python's lock."""
    import cv2
    import simplejpeg

    cv2.setNumThreads(1)
    out = np.empty((len(records), SIDE, SIDE, 3), np.uint8)
    for row, record in enumerate(records):
        pixels = simplejpeg.decode_jpeg(record, fastdct=True)
        cv2.resize(pixels, (SIDE, SIDE), dst=out[row], interpolation=cv2.INTER_LINEAR)
    return Batch(out)


def pool(folder):
    """A thread a core, each with a batch of its own."""
    import cv2
    import simplejpeg

    source = BatchSource(folder)
    threads = ThreadPoolExecutor(THREADS)

    def epoch():
        waiting = deque()
        for index in range(len(source)):
            waiting.append(threads.submit(decode_batch, source[index]))
            if len(waiting) > 2 * THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    return Peer(f"simplejpeg {simplejpeg.__version__}, opencv {cv2.__version__}", epoch, near=True)


PEERS = {"tfdata": tfdata}
