from collections.abc import Iterable

ColumnFacts = tuple[str, str, str, tuple[int, ...], int]
Buffers = tuple[object, object | None, object | None]

class Result:
    def column(self, index: int, /) -> tuple[str, str, list[int], list[Part]]: ...

class Part:
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Transform:
    def __new__(
        cls,
        path: str,
        stream: str | None,
        until: str | None,
        root: str | None,
        analysis: str | None,
        cache: str | None,
        /,
    ) -> Transform: ...
    def inputs(self) -> tuple[ColumnFacts, ...]: ...
    def outputs(self) -> tuple[ColumnFacts, ...]: ...
    def records(self, records: Iterable[bytes | str], /) -> Result: ...
    def rows(self, columns: list[Buffers], row_count: int, /) -> Result: ...
