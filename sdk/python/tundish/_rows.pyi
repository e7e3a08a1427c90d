from typing import Any, final

@final
class TableRows:
    """The rows of an Arrow stream, some at a time as bytes."""

    def __new__(
        cls,
        capsule: Any,
        columns: list[tuple[str, str, tuple[int | None, ...], bytes | None]],
        /,
    ) -> TableRows: ...
    def __iter__(self) -> TableRows: ...
    def __next__(self) -> bytes: ...
