"""tf.data's readers of files."""

from __future__ import annotations

from typing import Any

from .dataset import Dataset
from .graph import Field, Name, Node, Origin, Spec, caller
from .lowering.parsing import csv_default, csv_dtype

__all__ = ["CsvDataset", "FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"]


def _reader(stage: str, filenames: Any, params: dict[str, Any], origin: Origin | None) -> Dataset:
    given = {name: value for name, value in params.items() if value is not None and value != ""}
    if isinstance(filenames, Dataset):
        return filenames.flat_map(lambda value: _reader(stage, value, params, origin), origin=origin)
    if hasattr(filenames, "tolist"):
        filenames = filenames.tolist()
    node = Node(
        stage,
        {"filenames": filenames, **given},
        (),
        Field(Name("value", False), Spec("string", ())),
        origin or caller(),
    )
    return Dataset(node)


def TFRecordDataset(
    filenames: Any,
    compression_type: str | None = None,
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    name: str | None = None,
    origin: Origin | None = None,
) -> Dataset:
    """The records of TFRecord files."""
    params = {"compression_type": compression_type, "num_parallel_reads": num_parallel_reads}
    return _reader("tfrecord", filenames, params, origin)


def TextLineDataset(
    filenames: Any,
    compression_type: str | None = None,
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    name: str | None = None,
    origin: Origin | None = None,
) -> Dataset:
    """The lines of text files."""
    params = {"compression_type": compression_type, "num_parallel_reads": num_parallel_reads}
    return _reader("text_line", filenames, params, origin)


def FixedLengthRecordDataset(
    filenames: Any,
    record_bytes: int,
    header_bytes: int | None = None,
    footer_bytes: int | None = None,
    buffer_size: int | None = None,
    compression_type: str | None = None,
    num_parallel_reads: int | None = None,
    name: str | None = None,
    origin: Origin | None = None,
) -> Dataset:
    """Records of one length."""
    params = {
        "record_bytes": record_bytes,
        "header_bytes": header_bytes or None,
        "footer_bytes": footer_bytes or None,
        "compression_type": compression_type,
        "num_parallel_reads": num_parallel_reads,
    }
    return _reader("fixed_length_record", filenames, params, origin)


def CsvDataset(
    filenames: Any,
    record_defaults: Any,
    compression_type: str | None = None,
    buffer_size: int | None = None,
    header: bool = False,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None,
    exclude_cols: Any = None,
    origin: Origin | None = None,
) -> Dataset:
    """The rows of CSV files: a tuple with a component for each record default."""
    fields = tuple(
        Field(Name(f"column_{i}", False), Spec(csv_dtype(default), ()))
        for i, default in enumerate(record_defaults)
    )
    params = {
        "filenames": filenames,
        "record_defaults": [csv_default(default) for default in record_defaults],
        "column_names": [field.name for field in fields],
    }
    given = {
        "compression_type": (compression_type, None),
        "header": (header, False),
        "field_delim": (field_delim, ","),
        "use_quote_delim": (use_quote_delim, True),
        "na_value": (na_value, ""),
        "select_cols": (select_cols, None),
        "exclude_cols": (exclude_cols, None),
    }
    params |= {
        name: value for name, (value, default) in given.items() if value != default and value != ""
    }
    return Dataset(Node("csv", params, (), fields, origin or caller()))
