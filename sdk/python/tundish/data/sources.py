"""Readers of files: tf.data's, and those that it does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .dataset import Dataset
from .graph import Field, Name, Node, Origin, Spec, caller
from .lowering.parsing import csv_default, csv_dtype

__all__ = [
    "CsvDataset", "DirectoryDataset", "FixedLengthRecordDataset", "ParquetDataset", "TFRecordDataset",
    "TextLineDataset", "WebDataset",
]  # fmt: skip


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


def ParquetDataset(
    filenames: Any, columns: Sequence[str] | Mapping[str, Any], origin: Origin | None = None
) -> Dataset:
    """The rows of Parquet files: a dictionary of these columns. A mapping has the values that stand for null,
    or None where a row with null is a bad one. Dtypes are the file's."""
    if isinstance(columns, Mapping):
        written: Any = {
            name: {} if default is None else {"default_value": default} for name, default in columns.items()
        }
    else:
        written = list(columns)
    return _of_columns("parquet", {"filenames": filenames, "columns": written}, list(columns), origin)


def WebDataset(
    filenames: Any,
    columns: Mapping[str, str | Sequence[str]] | Sequence[str],
    missing: str = "error",
    origin: Origin | None = None,
) -> Dataset:
    """The samples of tar files: a dictionary of __key__ and of these columns, which are bytes. A mapping has
    the extensions of each column; a list is of extensions. missing: "error" or "skip" a sample without one."""
    written = dict(columns) if isinstance(columns, Mapping) else list(columns)
    params = {"filenames": filenames, "columns": written}
    if missing != "error":
        params["missing"] = missing
    return _of_columns("webdataset", params, ["__key__", *columns], origin, Spec("string", ()))


def DirectoryDataset(
    directory: str,
    class_names: Sequence[str] | None = None,
    extensions: Sequence[str] | None = None,
    shuffle: bool = False,
    seed: int | None = None,
    origin: Origin | None = None,
    reshuffle_each_iteration: bool | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
) -> Dataset:
    """The files in a folder of folders, one for each class: a dictionary of value (the bytes), label and path.
    validation_split, and subset "training" or "validation": the part that Keras takes with the same seed."""
    params: dict[str, Any] = {"directory": directory}
    given = {"class_names": class_names, "extensions": extensions}
    params |= {name: list(value) for name, value in given.items() if value is not None}
    if shuffle:
        params |= {"shuffle": True} | ({} if seed is None else {"seed": seed})
        if reshuffle_each_iteration is False:
            params["reshuffle_each_iteration"] = False
    params |= {} if validation_split is None else {"validation_split": validation_split}
    params |= {} if subset is None else {"subset": subset}
    fields = {
        "value": Field(Name("value"), Spec("string", ())),
        "label": Field(Name("label"), Spec("int32", ())),
        "path": Field(Name("path"), Spec("string", ())),
    }
    return Dataset(Node("directory", params, (), fields, origin or caller()))


def _of_columns(
    stage: str, params: dict[str, Any], names: list[str], origin: Origin | None, spec: Spec = Spec()
) -> Dataset:
    """A reader whose elements are dictionaries. Files that a dataset names are read one after the other."""
    filenames = params["filenames"]
    if isinstance(filenames, Dataset):
        return filenames.flat_map(
            lambda value: _of_columns(stage, {**params, "filenames": value}, names, origin, spec),
            origin=origin,
        )
    fields = {name: Field(Name(name), spec) for name in names}
    return Dataset(Node(stage, params, (), fields, origin or caller()))
