"""Sentences to 32 word numbers each, 1,024 a batch: 0 fills up, 1 is an unknown word."""

import itertools
import os
import string

import numpy as np

from .peer import Batch, Peer

BATCH_ROWS = 1024
WORDS = 32
PUNCTUATION = r"[!\"#$%&()\*\+,\-\./:;<=>?@\[\\\]^_`{|}~']"


def known_words(folder):
    with open(os.path.join(folder, "words.txt"), encoding="ascii") as file:
        return file.read().split("\n")[:-1]


def tfdata_keras(folder, _cell):
    os.environ["KERAS_BACKEND"] = "tensorflow"
    from .tensorflow_peer import VERSION

    import keras

    layer = keras.layers.TextVectorization(
        standardize="lower_and_strip_punctuation",
        split="whitespace",
        output_sequence_length=WORDS,
        vocabulary=known_words(folder),
    )
    return _tensorflow(folder, layer, f"keras {keras.__version__}, {VERSION}")


def tfdata_strings(folder, _cell):
    from .tensorflow_peer import VERSION, lookup_table, tf

    table = lookup_table(os.path.join(folder, "words.txt"))

    def vectorize(lines):
        lines = tf.strings.regex_replace(tf.strings.lower(lines), PUNCTUATION, "")
        words = tf.strings.split(lines)
        numbers = table.lookup(words.flat_values)
        numbers = tf.where(numbers < 0, tf.constant(1, tf.int64), numbers + 2)
        return words.with_flat_values(numbers).to_tensor(shape=[None, WORDS])

    return _tensorflow(folder, vectorize, VERSION)


def _tensorflow(folder, vectorize, version):
    from .tensorflow_peer import READ_BYTES, THREADS, tf, tuned

    lines = tf.data.TextLineDataset(os.path.join(folder, "text.txt"), buffer_size=READ_BYTES)
    dataset = tuned(lines.batch(BATCH_ROWS).map(vectorize, num_parallel_calls=THREADS))
    return Peer(version, lambda: map(Batch, dataset.as_numpy_iterator()))


def torch(folder, _cell):
    import torch as library
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    numbers = {word: number for number, word in enumerate(known_words(folder), start=2)}
    without = str.maketrans("", "", string.punctuation)

    def vectorize(lines):
        text = "".join(lines).lower().translate(without).split("\n")
        out = np.zeros((len(lines), WORDS), np.int64)
        for row in range(len(lines)):
            words = text[row].split()[:WORDS]
            out[row, : len(words)] = [numbers.get(word, 1) for word in words]
        return library.from_numpy(out)

    class Lines(IterableDataset):
        def __iter__(self):
            worker = get_worker_info()
            with open(os.path.join(folder, "text.txt"), encoding="ascii") as file:
                for number in itertools.count():
                    lines = list(itertools.islice(file, BATCH_ROWS))
                    if not lines:
                        return
                    if number % worker.num_workers == worker.id:
                        yield vectorize(lines)

    loader = DataLoader(
        Lines(),
        batch_size=None,
        num_workers=os.cpu_count(),
        persistent_workers=True,
        prefetch_factor=8,
    )
    return Peer(f"torch {library.__version__}", lambda: (Batch(b.numpy()) for b in loader))


def polars(folder, _cell):
    """Batches follow polars' chunks and are not exactly 1,024 rows."""
    import polars as pl

    path = os.path.join(folder, "text.txt")
    known = pl.Enum(known_words(folder))

    def epoch():
        lines = pl.scan_csv(
            path, has_header=False, separator="\x01", quote_char=None, schema={"t": pl.String}
        )
        words = pl.col("t").str.to_lowercase().str.replace_all("[!-/:-@\\[-`{-~]", "")
        frame = lines.select(words.str.split(" "))
        for part in frame.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
            counts = np.minimum(part["t"].list.len().to_numpy(), WORDS)
            flat = pl.col("t").list.head(WORDS).explode().cast(known, strict=False).to_physical()
            numbers = part.select(flat.cast(pl.Int64).add(2).fill_null(1))["t"].to_numpy()
            out = np.zeros((len(counts), WORDS), np.int64)
            out[np.arange(WORDS) < counts[:, None]] = numbers
            yield Batch(out)

    return Peer(f"polars {pl.__version__}", epoch)


PEERS = {
    "tfdata_keras": tfdata_keras,
    "tfdata_strings": tfdata_strings,
    "torch": torch,
    "polars": polars,
}
