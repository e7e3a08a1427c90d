"""Records of about 115 KB as they are, 32 a batch."""

import importlib.metadata
import itertools
import os
import struct

from .peer import Batch, Peer

BATCH_ROWS = 32


def paths_in(folder):
    return [os.path.join(folder, f"images-{shard}.tfrecord") for shard in range(2)]


def tfdata(folder, _cell):
    from .tensorflow_peer import READ_BYTES, VERSION, tf, tuned

    records = tf.data.TFRecordDataset(paths_in(folder), buffer_size=READ_BYTES)
    dataset = tuned(records.batch(BATCH_ROWS))
    return Peer(VERSION, lambda: (Batch(list(batch)) for batch in dataset.as_numpy_iterator()))


def grain(folder, _cell):
    """Does not check the records' checksums."""
    import grain as library
    from grain import experimental

    files = [experimental.TFRecordIterDataset(path) for path in paths_in(folder)]
    joined = experimental.InterleaveIterDataset(files, cycle_length=1)
    dataset = joined.batch(BATCH_ROWS, batch_fn=Batch)
    return Peer(f"grain {importlib.metadata.version('grain')}", lambda: iter(dataset))


def plain(folder, _cell):
    """A loop in the trainer itself, which waits while it reads."""
    import google_crc32c

    def check(masked, data):
        rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
        if ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF != google_crc32c.value(data):
            raise ValueError("a record is damaged")

    def records(path):
        with open(path, "rb", buffering=1 << 20) as file:
            while header := file.read(12):
                length, header_crc = struct.unpack("<QI", header)
                data, footer = file.read(length), file.read(4)
                check(header_crc, header[:8])
                check(struct.unpack("<I", footer)[0], data)
                yield data

    def epoch():
        rows = itertools.chain.from_iterable(map(records, paths_in(folder)))
        while batch := list(itertools.islice(rows, BATCH_ROWS)):
            yield Batch(batch)

    return Peer(f"google-crc32c {importlib.metadata.version('google-crc32c')}", epoch)


PEERS = {"tfdata": tfdata, "grain": grain, "plain": plain}
