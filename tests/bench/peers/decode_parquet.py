"""Make Parquet files of one kind of column each, and decode them with pyarrow in one thread.

    python -m peers.decode_parquet make FOLDER
    python -m peers.decode_parquet read FILE ...
"""

import json
import sys
import time
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

ROWS = 4_000_000
COLUMNS = 4
PASSES = 5


def kinds():
    """Name to the values of a column, and how they are encoded."""
    draw = numpy.random.default_rng(1)
    numbers = draw.integers(-(1 << 40), 1 << 40, ROWS)
    words = numpy.array([f"{number:08x}" for number in draw.integers(0, 1 << 32, 5000)])
    few = draw.zipf(1.3, ROWS) % 5000
    texts = pyarrow.array(words[few])
    return {
        "int64-plain": (pyarrow.array(numbers), "PLAIN"),
        "int64-dictionary": (pyarrow.array(few), None),
        "int64-delta": (pyarrow.array(numpy.cumsum(draw.integers(0, 1000, ROWS))), "DELTA_BINARY_PACKED"),
        "text-plain": (texts, "PLAIN"),
        "text-dictionary": (texts, None),
        "text-delta": (texts, "DELTA_BYTE_ARRAY"),
    }


def make(folder):
    for name, (values, encoding) in kinds().items():
        names = [f"c{i}" for i in range(COLUMNS)]
        pyarrow.parquet.write_table(
            pyarrow.table({column: values for column in names}),
            folder / f"{name}.parquet",
            compression="NONE",
            use_dictionary=encoding is None,
            column_encoding=encoding and {column: encoding for column in names},
            row_group_size=1 << 20,
        )


def read(path):
    """Texts of a dictionary stay words, as in Tundish: what pyarrow does faster."""
    words = [f"c{i}" for i in range(COLUMNS)] if path.name == "text-dictionary.parquet" else None
    taken = []
    for _ in range(PASSES):
        begin = time.process_time()
        pyarrow.parquet.ParquetFile(path, read_dictionary=words).read(use_threads=False)
        taken.append(time.process_time() - begin)
    print(json.dumps({"cpu_s": min(taken)}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        for name in sys.argv[2:]:
            read(Path(name))
