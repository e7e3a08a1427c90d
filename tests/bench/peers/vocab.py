"""Lines looked up in a million terms, 8,192 a batch: 0 is an unknown term."""

import os

from .peer import Batch, Peer

BATCH_ROWS = 8192


def tfdata(folder, _cell):
    from .tensorflow_peer import READ_BYTES, THREADS, VERSION, lookup_table, tf, tuned

    table = lookup_table(os.path.join(folder, "terms.txt"))
    lines = tf.data.TextLineDataset(os.path.join(folder, "lookups.txt"), buffer_size=READ_BYTES)
    ids = lines.batch(BATCH_ROWS).map(lambda x: table.lookup(x) + 1, num_parallel_calls=THREADS)
    dataset = tuned(ids)
    return Peer(VERSION, lambda: map(Batch, dataset.as_numpy_iterator()))


def polars(folder, _cell):
    """Batches follow polars' chunks and are not exactly 8,192 rows."""
    import polars as pl

    with open(os.path.join(folder, "terms.txt"), encoding="ascii") as file:
        terms = pl.Enum(file.read().split("\n")[:-1])
    path = os.path.join(folder, "lookups.txt")
    ids = pl.col("t").cast(terms, strict=False).to_physical().cast(pl.Int64).add(1).fill_null(0)

    def epoch():
        lines = pl.scan_csv(
            path, has_header=False, separator="\x01", quote_char=None, schema={"t": pl.String}
        )
        parts = lines.select(ids).collect_batches(chunk_size=BATCH_ROWS, maintain_order=True)
        for part in parts:
            yield Batch(part["t"].to_numpy())

    return Peer(f"polars {pl.__version__}", epoch)


PEERS = {"tfdata": tfdata, "polars": polars}
