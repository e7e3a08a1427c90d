"""A batch: a mapping of column names to arrays."""

from __future__ import annotations

from collections.abc import Mapping

from . import _tundish
from .errors import ColumnError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


class Batch(_tundish.Batch, Mapping):
    """The columns of one step, as numpy arrays (or what the reader's `format` names).

    batch["x"] is a read-only view of shared memory, made at its first use; so is batch.x, if the
    name is an identifier that no attribute has. The batch and each array of it keep its slot; it
    goes back to the server when the last of them is gone, or after release() when the last array is.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"a batch has no attribute {name!r}" + nearest(name, self))

    def __missing__(self, name: object) -> NoReturn:
        raise ColumnError(f"the stream has no column {name!r}" + nearest(name, self))

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<tundish.Batch epoch {self.epoch} step {self.step}: {', '.join(self)}>"

    def _made(self, name: str) -> Any:
        """What [name] gives where that is not just a view of dense numbers."""
        return self._view(name)


def nearest(name: object, names: Mapping[str, Any]) -> str:
    """The end of the sentence: which column was meant, or all there are."""
    import difflib

    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f": did you mean {close[0]!r}?"
    return f": it has {', '.join(map(repr, names))}"
