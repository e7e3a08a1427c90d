"""Reading: tundish.open and tundish.Reader."""

from __future__ import annotations

from collections import namedtuple

from . import _tundish
from .batch import Batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ColumnSpec = namedtuple(
    "ColumnSpec", "name dtype shape kind ragged_rank widen_dtype widen_scale widen_offset"
)
ColumnSpec.__doc__ = "The type of one column of every batch; None in `shape`: batches differ."

Info = namedtuple(
    "Info",
    "replica replica_count first_replica total_replica_count slot_count held_count stream first_epoch"
    " first_step",
)
Info.__doc__ = "A reader's replica, the replicas of its node and of all nodes, its lane's slots."


class Reader(_tundish.Reader):
    """One replica's view of a stream. A `for` over it is one epoch; the next `for` is the next one."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._open(options["place"])

    def _open(self, place: str | None) -> None:
        options = self._options
        self._attach(
            server=options["server"],
            stream=options["stream"],
            session=options["session"],
            group=options["group"],
            replica=-1 if options["replica"] is None else options["replica"],
            place=place,
            check=options["check"],
            timeout=options["timeout"],
            batch=Batch,
            custom=False,
        )
        self.spec = {name: ColumnSpec(name, *facts) for name, facts in self._columns().items()}

    @property
    def place(self) -> str:
        """Where the reader stands, as printable text: opening there gives the next batch."""
        return self._place

    @property
    def info(self) -> Info:
        """What the server says of this reader's replica and lane."""
        return Info(**self._info)

    def close(self) -> None:
        """Leave the group. Arrays stay valid. A second call does nothing."""
        self._detach()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open(
    stream: str | None = None,
    *,
    server: str | None = None,
    session: str | None = None,
    group: str | None = None,
    replica: int | None = None,
    place: str | None = None,
    check: bool = False,
    timeout: float = 30.0,
) -> Reader:
    """Attach to a server, and wait for one that is starting for `timeout` seconds."""
    return Reader(
        {
            "stream": stream,
            "server": server,
            "session": session,
            "group": group,
            "replica": replica,
            "place": place,
            "check": check,
            "timeout": timeout,
        }
    )
