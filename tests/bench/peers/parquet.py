"""The click log from Parquet in the file's order: label, 13 logarithms, 26 ids, 8,192 rows a batch."""

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .clicks import INTEGERS, TERMS, vocabulary, vocabulary_path
from .criteo import BATCH_ROWS, THREADS, rebatch
from .peer import Batch, Peer


def polars(folder, _cell):
    import polars as pl

    path = os.path.join(folder, "train.parquet")
    numbers = [
        pl.col(name).fill_null(0).cast(pl.Float32).clip(lower_bound=0).log1p() for name in INTEGERS
    ]
    ids = [
        pl.col(name)
        .cast(pl.Enum(vocabulary(folder, name)), strict=False)
        .to_physical()
        .cast(pl.Int64)
        .add(1)
        .fill_null(0)
        for name in TERMS
    ]

    def parts():
        frame = pl.scan_parquet(path).select([pl.col("label").cast(pl.Float32), *numbers, *ids])
        for part in frame.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
            yield Batch(
                part.select(TERMS).to_numpy(order="c"),
                part.select(INTEGERS).to_numpy(order="c"),
                part["label"].to_numpy(),
            )

    return Peer(f"polars {pl.__version__}", lambda: rebatch(parts()))


class Lookup:
    """Row groups to ids. Terms stay dictionaries, of which each word is looked up once."""

    def __init__(self, folder):
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet

        self.path = os.path.join(folder, "train.parquet")
        self.compute, self.parquet = pyarrow.compute, pyarrow.parquet
        self.vocabularies = [pyarrow.array(vocabulary(folder, term)) for term in TERMS]
        self.groups = pyarrow.parquet.ParquetFile(self.path).num_row_groups

    def __call__(self, group):
        file = self.parquet.ParquetFile(self.path, read_dictionary=TERMS)
        table = file.read_row_group(group, use_threads=False).combine_chunks()
        dense = np.empty((table.num_rows, len(INTEGERS)), np.float32)
        ids = np.empty((table.num_rows, len(TERMS)), np.int64)
        for i, name in enumerate(INTEGERS):
            dense[:, i] = self.compute.fill_null(table[name], 0).to_numpy()
        for i, name in enumerate(TERMS):
            column = table[name].combine_chunks()
            found = self.compute.index_in(column.dictionary, value_set=self.vocabularies[i])
            words = self.compute.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
            ids[:, i] = words[column.indices.to_numpy(zero_copy_only=False)]
        np.log1p(np.maximum(dense, 0, out=dense), out=dense)
        label = table["label"].to_numpy().astype(np.float32)
        return Batch(ids + 1, dense, label)

    def in_order(self):
        """As many row groups at a time as there are cores."""
        with ThreadPoolExecutor(THREADS) as pool:
            waiting = deque()
            for group in range(self.groups):
                waiting.append(pool.submit(self, group))
                if len(waiting) > THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()


def pyarrow(folder, _cell):
    import pyarrow as arrow

    lookup = Lookup(folder)
    return Peer(f"pyarrow {arrow.__version__}", lambda: rebatch(lookup.in_order()))


def tfdata_pyarrow(folder, _cell):
    """Batches that pyarrow reads, looked up in tf.data."""
    import pyarrow.compute as compute
    import pyarrow.parquet as parquet

    from .tensorflow_peer import VERSION, lookup_table, tf, tuned
    from .tensorflow_peer import THREADS as threads

    tables = [lookup_table(vocabulary_path(folder, term)) for term in TERMS]
    path = os.path.join(folder, "train.parquet")

    def batches():
        for batch in parquet.ParquetFile(path).iter_batches(BATCH_ROWS):
            terms = [batch[name].to_numpy(zero_copy_only=False) for name in TERMS]
            dense = [compute.fill_null(batch[name], 0).to_numpy() for name in INTEGERS]
            yield np.stack(terms), np.stack(dense), batch["label"].to_numpy()

    def look_up(terms, dense, label):
        ids = tf.stack([table.lookup(terms[i]) + 1 for i, table in enumerate(tables)], axis=1)
        dense = tf.transpose(tf.math.log1p(tf.maximum(tf.cast(dense, tf.float32), 0.0)))
        return ids, dense, tf.cast(label, tf.float32)

    signature = (
        tf.TensorSpec((len(TERMS), None), tf.string),
        tf.TensorSpec((len(INTEGERS), None), tf.int64),
        tf.TensorSpec((None,), tf.int64),
    )
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    dataset = tuned(dataset.map(look_up, num_parallel_calls=threads))

    def epoch():
        for parts in dataset.as_numpy_iterator():
            yield Batch(*parts)

    return Peer(VERSION, epoch)


PEERS = {"polars": polars, "pyarrow": pyarrow, "tfdata_pyarrow": tfdata_pyarrow}
