"""The table of tf.data's names and Tundish's: python -m tundish.data.table

It is made of the rules that programs are lowered by.
"""

from __future__ import annotations

import inspect

from .absent import ABSENT
from .dataset import Dataset
from .lowering import RULES, find
from .remaining import REMAINING

__all__ = ["table"]

INTRODUCTION = """\
# From tf.data to Tundish

TensorFlow's names, and the lines that `tundish.data` writes for them into the pipeline file.
`python -m tundish.data.table` makes this page. Names of `tf.math` may be written without `math`; `tf` is
`tundish.tf`, `tf.keras.layers` also `tundish.layers`, `tft` is `tundish.tft`. `ParquetDataset`, `WebDataset` and
`DirectoryDataset` of `tundish.data` are readers that tf.data does not have.
"""
# Where the stage has another name than the method.
STAGES = {
    "tf.data.CsvDataset": "`csv` (in TensorFlow `tf.data.experimental.CsvDataset`)",
    "tf.data.FixedLengthRecordDataset": "`fixed_length_record`",
    "tf.data.TFRecordDataset": "`tfrecord`",
    "tf.data.TextLineDataset": "`text_line`",
    "prefetch": "nothing: the server always works ahead",
    "apply": "what the function makes of the dataset",
    "with_options": "`distribute: {auto_shard}`; the rest changes no batch",
    "window": "`window`, where `flat_map(lambda window: window.batch(size))` follows",
}
REST = """\
## What remains

Functions of TensorFlow that pipelines call and that are not carried over yet, the most common first. The order is an
estimate from TensorFlow's tutorials, Keras' code examples and the official models.

| TensorFlow | instead |
|---|---|
"""
OURS = ("from_indexable", "map_python", "yaml", "save", "peek", "element_spec", "stage", "check")


def table() -> str:
    """The page."""
    parts = [
        INTRODUCTION,
        "## Datasets\n",
        _rows(_datasets()),
        "## Functions and layers\n",
        _rows(_functions()),
        REST + "".join(f"| `{name}` | {remedy} |\n" for name, remedy in _remaining()),
    ]
    return "\n".join(parts)


def _datasets() -> list[tuple[str, str]]:
    rows = [(name, says) for name, says in STAGES.items() if name.startswith("tf.data.")]
    rows += [(f"tf.data.Dataset.{name}", f"refused: {remedy}") for name, remedy in ABSENT.items()]
    for name, _ in inspect.getmembers(Dataset, callable):
        if not name.startswith("_") and name not in OURS:
            rows.append((f"tf.data.Dataset.{name}", STAGES.get(name, f"`{name}`")))
    return sorted(rows)


def _remaining() -> list[tuple[str, str]]:
    return [(name, remedy) for name, remedy in REMAINING.items() if find(name) is None]


def _functions() -> list[tuple[str, str]]:
    return sorted(
        (rule.name, rule.says) for rule in RULES.values() if not rule.name.startswith("tundish.")
    )


def _rows(rows: list[tuple[str, str]]) -> str:
    lines = [f"| `{name}` | {says.replace('|', chr(92) + '|')} |" for name, says in rows]
    return "\n".join(["| tf.data | Tundish |", "|---|---|", *lines, ""])


if __name__ == "__main__":
    print(table(), end="")
