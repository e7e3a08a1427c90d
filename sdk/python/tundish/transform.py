"""The content stages of a pipeline in this process: at inference the same columns as in training."""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import _transform
from .batch import nearest
from .errors import ArgumentError, ColumnError
from .options import spelt
from .parts import column
from .reader import ColumnSpec
from .rows_in import Input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .parts import Column
    from .programs import PipelineFile

__all__ = ["Transform"]


class Transform:
    """Applies the content stages of a stream to rows, by the server's own code and without a server.

        transform = tundish.Transform("clicks.yaml", stream="train")
        columns = transform(examples)                # serialized Examples: a list of bytes
        columns = transform(["3,red", "4,blue"])     # lines of CSV, where the stream reads CSV
        columns = transform({"x": x, "words": ["a b", "c"]})

    All rows of a call make one batch, whatever the stream's batch_size is. The result is a dict of
    column names to what a Batch has of them: read-only arrays, Strings, Ragged or Sparse. They are not
    copied, and live as long as something refers to them. A Transform may be used by many threads at
    once; they run in parallel.

    stream: the default is the only one, or the file's learn_from.
    until: the last stage to apply, by name; the default is all of them.
    root, analysis, cache: the folders of relative paths, of what was learned, of compiled vocabularies.

    Raises tundish.PipelineError with all errors of the file, or if what `tundish analyze` learns is
    missing. A call raises tundish.DataError, which names the row, if a row is bad, and
    tundish.ArgumentError if the rows are not such as the stream takes.
    """

    @spelt("tundish.Transform()")
    def __init__(
        self,
        file: PipelineFile,
        stream: str | None = None,
        *,
        until: str | None = None,
        root: PipelineFile | None = None,
        analysis: PipelineFile | None = None,
        cache: PipelineFile | None = None,
    ) -> None:
        folders = (None if folder is None else os.fspath(folder) for folder in (root, analysis, cache))
        self._transform = _transform.Transform(os.fspath(file), stream, until, *folders)
        self.inputs = _specs(self._transform.inputs())
        self.spec = _specs(self._transform.outputs())
        self._inputs = [Input(spec) for spec in self.inputs.values()]

    def __call__(self, rows: Mapping[str, Any] | Iterable[bytes | str]) -> dict[str, Column]:
        """The columns of rows: records, as the stream's source reads them, or a mapping of the columns
        of `inputs` to arrays, lists, Strings or Ragged with an entry for each row."""
        if isinstance(rows, Mapping):
            result = self._transform.rows(*self._columns(rows))
        elif isinstance(rows, (bytes, str)):
            raise ArgumentError("this is one record: pass a list of records")
        else:
            result = self._transform.records(rows)
        return {name: column(*result.column(i)) for i, name in enumerate(self.spec)}

    def _columns(self, rows: Mapping[Any, Any]) -> tuple[list[Any], int]:
        for name in rows:
            if name not in self.inputs:
                raise ColumnError(f"the stream takes no column {name!r}" + nearest(name, self.inputs))
        missing = [name for name in self.inputs if name not in rows]
        if missing:
            raise ColumnError(f"the rows have no column {missing[0]!r}" + nearest(missing[0], rows))
        columns = [taken.column(rows[name]) for name, taken in zip(self.inputs, self._inputs)]
        counts = {name: count for name, (count, _) in zip(self.inputs, columns)}
        if len(set(counts.values())) > 1:
            raise ArgumentError(f"the columns have different numbers of rows: {counts}")
        return [parts for _, parts in columns], max(counts.values(), default=0)

    def __reduce__(self) -> Any:
        raise TypeError("a Transform belongs to its process: open the pipeline file in each")


def _specs(columns: Iterable[tuple[Any, ...]]) -> dict[str, ColumnSpec]:
    return {
        name: ColumnSpec(
            name, dtype, tuple(None if size < 0 else size for size in shape), kind, rank, None, (), ()
        )
        for name, dtype, kind, shape, rank in columns
    }
