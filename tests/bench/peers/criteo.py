"""The click log from TSV in the file's order: label, 13 logarithms, 26 ids, 8,192 rows a batch."""

import importlib.metadata
import itertools
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .clicks import COLUMNS, INTEGERS, TERMS, vocabulary, vocabulary_path
from .peer import Batch, Peer

BATCH_ROWS = 8192
THREADS = os.cpu_count()


def tfdata(folder, _cell):
    from .tensorflow_peer import READ_BYTES, VERSION, lookup_table, tf, tuned
    from .tensorflow_peer import THREADS as threads

    tables = [lookup_table(vocabulary_path(folder, term)) for term in TERMS]
    defaults = [[0.0]] * (1 + len(INTEGERS)) + [[""]] * len(TERMS)

    def parse(lines):
        columns = tf.io.decode_csv(lines, defaults, field_delim="\t", use_quote_delim=False)
        dense = tf.stack(columns[1 : 1 + len(INTEGERS)], axis=1)
        terms = columns[1 + len(INTEGERS) :]
        ids = tf.stack([table.lookup(term) + 1 for table, term in zip(tables, terms)], axis=1)
        return ids, tf.math.log1p(tf.maximum(dense, 0.0)), columns[0]

    lines = tf.data.TextLineDataset(os.path.join(folder, "train.tsv"), buffer_size=READ_BYTES)
    dataset = tuned(lines.batch(BATCH_ROWS).map(parse, num_parallel_calls=threads))
    return Peer(VERSION, lambda: itertools.starmap(Batch, dataset.as_numpy_iterator()))


def polars(folder, _cell):
    import polars as pl

    path = os.path.join(folder, "train.tsv")
    schema = {name: pl.Float32 for name in COLUMNS[: 1 + len(INTEGERS)]}
    schema |= {name: pl.String for name in TERMS}
    numbers = [
        pl.col(name).fill_null(0).clip(lower_bound=0).log1p().cast(pl.Float32) for name in INTEGERS
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
        frame = pl.scan_csv(path, separator="\t", has_header=False, schema=schema, quote_char=None)
        frame = frame.select([pl.col("label"), *numbers, *ids])
        for part in frame.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
            yield Batch(
                part.select(TERMS).to_numpy(order="c"),
                part.select(INTEGERS).to_numpy(order="c"),
                part["label"].to_numpy(),
            )

    return Peer(f"polars {pl.__version__}", lambda: rebatch(parts()))


class ArrowParser:
    """Lines to a Batch with Arrow's CSV reader, which lets other Python threads run."""

    def __init__(self, folder):
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv

        self.arrow, self.csv = pyarrow, pyarrow.csv
        types = {name: pyarrow.float32() for name in COLUMNS[: 1 + len(INTEGERS)]}
        types |= {name: pyarrow.string() for name in TERMS}
        self.parse_options = self.csv.ParseOptions(delimiter="\t", quote_char=False)
        self.convert_options = self.csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=False, check_utf8=False
        )
        self.vocabularies = [pyarrow.array(vocabulary(folder, term)) for term in TERMS]

    def __call__(self, text):
        read_options = self.csv.ReadOptions(
            column_names=COLUMNS, block_size=len(text) + 1, use_threads=False
        )
        table = self.csv.read_csv(
            self.arrow.BufferReader(text), read_options, self.parse_options, self.convert_options
        ).combine_chunks()
        dense = np.empty((table.num_rows, len(INTEGERS)), np.float32)
        ids = np.empty((table.num_rows, len(TERMS)), np.int64)
        for i, name in enumerate(INTEGERS):
            dense[:, i] = np.nan_to_num(table[name].to_numpy(zero_copy_only=False), nan=0.0)
        for i, name in enumerate(TERMS):
            found = self.arrow.compute.index_in(table[name], value_set=self.vocabularies[i])
            ids[:, i] = self.arrow.compute.fill_null(found, -1).to_numpy(zero_copy_only=False)
        np.log1p(np.maximum(dense, 0, out=dense), out=dense)
        return Batch(ids + 1, dense, table["label"].to_numpy(zero_copy_only=False))


def line_blocks(path, rows):
    with open(path, "rb", buffering=1 << 20) as file:
        while block := b"".join(itertools.islice(file, rows)):
            yield block


def pyarrow(folder, _cell):
    """Blocks of several batches, parsed by as many threads as there are cores."""
    import pyarrow as arrow

    parse = ArrowParser(folder)
    pool = ThreadPoolExecutor(THREADS)

    def parts():
        waiting = deque()
        for block in line_blocks(os.path.join(folder, "train.tsv"), 4 * BATCH_ROWS):
            waiting.append(pool.submit(parse, block))
            if len(waiting) > 2 * THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    return Peer(f"pyarrow {arrow.__version__}", lambda: rebatch(parts()))


def torch(folder, _cell):
    """A worker of n parses every n-th block with Arrow, so the loader keeps the file's order."""
    import torch as library
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    library.set_num_threads(1)

    class Blocks(IterableDataset):
        def __iter__(self):
            worker = get_worker_info()
            parse = ArrowParser(folder)
            blocks = line_blocks(os.path.join(folder, "train.tsv"), BATCH_ROWS)
            for block in itertools.islice(blocks, worker.id, None, worker.num_workers):
                batch = parse(block)
                yield tuple(
                    library.from_numpy(np.ascontiguousarray(part))
                    for part in (batch.ids, batch.dense, batch.label)
                )

    loader = DataLoader(
        Blocks(), batch_size=None, num_workers=THREADS, persistent_workers=True, prefetch_factor=4
    )

    def epoch():
        for parts in loader:
            yield Batch(*(part.numpy() for part in parts))

    return Peer(f"torch {library.__version__}", epoch)


class BlockSource:
    """Random access to blocks of lines; where they start is found beforehand."""

    def __init__(self, path, rows=BATCH_ROWS):
        self.path = path
        lengths = [len(block) for block in line_blocks(path, rows)]
        self.offsets = [0, *itertools.accumulate(lengths)]

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, index):
        with open(self.path, "rb") as file:
            file.seek(self.offsets[index])
            return file.read(self.offsets[index + 1] - self.offsets[index])


def grain(folder, _cell):
    import grain as library

    blocks = library.MapDataset.source(BlockSource(os.path.join(folder, "train.tsv")))
    dataset = blocks.map(ArrowParser(folder)).to_iter_dataset(
        library.ReadOptions(num_threads=THREADS, prefetch_buffer_size=4)
    )
    return Peer(f"grain {importlib.metadata.version('grain')}", lambda: iter(dataset))


def rebatch(parts):
    """Batches of any length cut into those of BATCH_ROWS rows."""
    held, held_rows = [], 0
    for part in parts:
        start = 0
        while start < part.rows:
            end = min(part.rows, start + BATCH_ROWS - held_rows)
            held.append((part.ids[start:end], part.dense[start:end], part.label[start:end]))
            held_rows += end - start
            start = end
            if held_rows == BATCH_ROWS:
                yield join(held)
                held, held_rows = [], 0
    if held:
        yield join(held)


def join(held):
    return Batch(*(held[0] if len(held) == 1 else map(np.concatenate, zip(*held))))


PEERS = {"tfdata": tfdata, "polars": polars, "pyarrow": pyarrow, "torch": torch, "grain": grain}
