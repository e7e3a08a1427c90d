"""Reading: tundish.open and tundish.Reader."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
import weakref
from typing import NamedTuple

from . import _tundish
from .batch import Batch, table
from .errors import ArgumentError, MisuseError, PlaceError, Timeout
from .options import spelt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any

    from .data import Dataset
    from .explaining import Rows
    from .programs import PipelineFile
    from .progress import FirstBatch


# The server's refusal of a place while other replicas still read where they began.
_OTHERS_READ = "other trainers read stream "
_RETRY_S = 0.02
# Options that readers of one group have in common.
_GROUP = ("server", "stream", "session", "group")


class ColumnSpec(NamedTuple):
    """The type of one column of every batch."""

    name: str
    dtype: str  # as "float32", "string"
    shape: tuple[int | None, ...]  # None: batches differ
    kind: str  # "dense", "ragged" or "sparse"
    ragged_rank: int  # dimensions 1 .. ragged_rank are ragged
    widen_dtype: str | None  # None: deliver.widen does not name it
    widen_scale: tuple[float, ...]
    widen_offset: tuple[float, ...]
    widen_layout: str | None = None  # "NCHW": widening puts the channels before height and width


class Info(NamedTuple):
    """A reader's replica among those of its node and of all nodes, and its lane's slots."""

    replica: int
    replica_count: int  # on this node
    first_replica: int  # of this node among those of all
    total_replica_count: int
    slot_count: int
    held_count: int  # batches not given back yet
    stream: str
    first_epoch: int  # where the reader started
    first_step: int
    epoch_steps: int  # of a whole epoch; -1: only reading tells


class Standing(NamedTuple):
    """Where the replicas of a reader's group stand, on all nodes."""

    together: bool  # the place of this reader is that of each of them
    lowest: tuple[int, int] | None  # epoch and step of the batch that the last of them gets next;
    highest: tuple[int, int] | None  # of the first. None: not known of all


# Libraries that take an array on a GPU, as far as they are known here.
_ON_DEVICES = ("numpy", "torch", "jax")
# Whose module converts columns (its function `convert`), by the name of the format.
_MODULES = {"numpy": None, "torch": "torch", "jax": "jax", "tf": "tensorflow"}
_PACKAGE = __file__.removesuffix("reader.py")


class Reader(_tundish.Reader):
    """One replica's view of a stream: `for batch in reader` is one epoch, the next `for` the next.

    A `for` that begins in the midst of an epoch skips the rest of it, as a new iterator of a tf.data
    dataset does; after ServerGone or PeerLost it goes on where the reader stands. After the last of
    deliver.epochs `ended` is True and every `for` is empty. One thread uses a reader at a time, in
    the process that opened it; batches and arrays may be used and dropped in any thread.
    """

    spec: dict[str, ColumnSpec]
    convert: Callable[[Any], Any] | None
    widens: bool
    device: str | None  # as "cuda:0"; None: the CPU's memory
    numbers: frozenset[str]  # columns of dense numbers that come as they lie in the CPU's memory

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._pending: str | None = None
        self._loaded_by = 0
        self._kept: Any = None
        self._wait: FirstBatch | None = None
        self.widens = options["widen"]
        self.device = options["device"]
        self.convert = _converter(options["format"])
        self._open(options["place"])

    def _open(self, place: str | None) -> None:
        try:
            self._open_in_turn(place)
        except ArgumentError as error:
            there = f"by process {os.getpid()}: close its reader there"
            if there not in str(error):
                raise
            here = "by an earlier reader of this program, as of a notebook's earlier cell: close that one"
            raise ArgumentError(str(error).replace(there, f"{here} or use it again")) from None
        _opened.add(self)

    def _open_in_turn(self, place: str | None) -> None:
        try:
            self._open_once(place)
        except ArgumentError:
            if not self._close_unused():
                raise
            self._open_once(place)

    def _close_unused(self) -> bool:
        """Close earlier readers of this replica that nobody can use any more: a notebook's variables still hold the
        last batch of a loop, and its last traceback a reader that has failed."""
        opened = [reader for reader in list(_opened) if not reader.closed and self._is_of_same_replica(reader)]
        was_any = False
        while opened:
            held = [opened.pop()]
            if held[0].ended or held[0]._has_failed or _is_left(held):
                held[0].close()
                was_any = True
        return was_any

    def _is_of_same_replica(self, other: Reader) -> bool:
        return all(other._options[name] == self._options[name] for name in (*_GROUP, "replica"))

    def _open_once(self, place: str | None) -> None:
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
            on_hold=options["on_hold"],
            package=_PACKAGE,
            batch=Batch,
            is_custom=self.widens or self.convert is not None or self.device is not None,
            device=-1 if self.device is None else int(self.device.removeprefix("cuda:")),
        )
        self.spec = {name: ColumnSpec(name, *facts) for name, facts in self._columns().items()}
        on_host = self.device is None
        self.numbers = frozenset(name for name in self.spec if on_host and self._is_numbers(name))

        # One of several trainers on a terminal is enough.
        self._shows_wait = self.info.replica == 0 and self.info.first_replica == 0

    def _show_wait(self, is_over: bool) -> None:
        """While the first batch is waited for without a limit, and once after that: say what it waits for."""
        if self._wait is None and not is_over:
            from .progress import FirstBatch, is_seen

            if is_seen(sys.stderr):
                self._wait = FirstBatch(self.server)
            else:
                self._shows_wait = False
        if self._wait is not None and not is_over:
            self._wait.look()
        elif self._wait is not None:
            self._wait.close()
            self._wait = None

    def _is_numbers(self, name: str) -> bool:
        spec = self.spec[name]
        is_widened = self.widens and spec.widen_dtype is not None
        return spec.kind == "dense" and spec.dtype != "string" and not is_widened

    def _go_to_pending(self) -> None:
        """Begin again at the place that was loaded. If that fails, the next call tries again."""
        if self._pending is not None:
            for reader in list(_opened):
                if reader is self or self._shares_loading(reader):
                    reader._detach()
            self._open_with_others(self._pending)
        self._set_pending(None)

    def _shares_loading(self, other: Reader) -> bool:
        """Another replica of this one's group, whose place this thread has loaded, too: it leaves as well,
        since the server opens none at a place while others stand where they began."""
        return (
            other._pending is not None
            and other._loaded_by == threading.get_ident()
            and all(other._options[name] == self._options[name] for name in _GROUP)
        )

    def _set_pending(self, place: str | None) -> None:
        self._pending = place
        self._has_pending = place is not None

    def _open_with_others(self, place: str) -> None:
        """Open at a place that was loaded. The other replicas of the group have loaded theirs, too, and
        leave where they began; until all have, the server refuses."""
        deadline = time.monotonic() + self._options["timeout"]
        while True:
            try:
                return self._open(place)
            except PlaceError as error:
                if _OTHERS_READ not in str(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(_RETRY_S)

    def __len__(self) -> int:
        """The steps of a whole epoch. TypeError where only reading tells."""
        steps = self.info.epoch_steps
        if steps < 0:
            raise TypeError("the length of an epoch is not known before it is read")
        return int(steps)

    def __bool__(self) -> bool:
        return True

    def __aiter__(self) -> AsyncIterator[Batch]:
        from .asynchronous import batches

        return batches(self, iter(self))

    @property
    def place(self) -> str:
        """Where the reader stands, as printable text: opening there gives the next batch.

        Before the first batch it waits until the server has made one, for `timeout` at most.
        """
        deadline = time.monotonic() + self._options["timeout"]
        while self._pending is None:
            try:
                return self._place
            except Timeout:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_RETRY_S)
        return self._pending

    @property
    def info(self) -> Info:
        """The server's facts about this reader's replica and lane."""
        if self.closed and self._pending is not None:  # it has left with another that has loaded a place
            self._go_to_pending()
        return Info(**self._info)

    def standing(self, timeout: float = 5.0) -> Standing:
        """Whether the place of this reader does for its whole group: `standing().together`.

        The server asks those of the other nodes, for `timeout` seconds at most. Others may go on
        meanwhile, so the answer is good for a checkpoint after a collective, or as long as all wait.
        `lowest` is None where it is not known: a replica has no trainer, or reads ahead for a GPU; the
        nodes take no steps together; a place was loaded here and is not taken yet.
        """
        if self._pending is not None:
            return Standing(False, None, None)
        return Standing(*self._standing(timeout))

    def state_dict(self) -> dict[str, Any]:
        """The place for a checkpoint: small, JSON, and good for any replica that stands at the same step,
        which `standing()` tells."""
        return {"version": 1, "place": self.place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at a place: the next batch is the one after it, of a new `for`, of one that runs, and of
        next(). restart() then passes over the rest of the place's epoch."""
        if not isinstance(state, dict) or state.get("version") != 1 or "place" not in state:
            raise PlaceError("the state is not one that state_dict() of a reader returned")
        if self.closed and self._pending is None:
            raise MisuseError("the reader is closed: open another with tundish.open(place=...)")
        self._set_pending(state["place"])
        self._loaded_by = threading.get_ident()

    get_state = state_dict
    set_state = load_state_dict

    @property
    def server(self) -> str | None:
        """The server's socket, if it was named to tundish.open; else it is that of the environment."""
        server: str | None = self._options["server"]
        return server

    def explain(
        self,
        batch: Batch,
        row: int | None = None,
        *,
        file: PipelineFile | None = None,
        show: bool = False,
        **options: Any,
    ) -> Rows:
        """For each row of a batch (or one) the file, the bytes and the record that it came from.

        file: the pipeline file, if the server is gone or on another machine; else it is asked. show:
        with the bytes of the records. Other options are those of tundish.explain, which says the rest.
        The batch may have been given back; the reader is open.
        """
        from .explaining import of_batch

        return of_batch(self, batch, row, file, {"show": show, **options})

    def in_session(self, session: str) -> Reader:
        """Another reader with this one's options, in a session of its own."""
        own = {"session": session, "group": None, "replica": 0, "place": None}
        return Reader({**self._options, **own})

    def close(self) -> None:
        """Leave the group. Arrays stay valid. A second call does nothing."""
        self._set_pending(None)
        self._detach()
        self._kept = None

    def _keep(self, server: Any) -> None:
        """Until this reader is closed, the object that ends its server stays."""
        self._kept = server

    def __del__(self) -> None:
        # Before the server that it keeps, which would wait for it.
        if getattr(self, "_kept", None) is not None:
            with contextlib.suppress(MisuseError):
                self.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Reader], tuple[dict[str, Any]]]:
        return Reader, ({**self._options, "place": None},)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        columns = ((each.name, _typed(each)) for each in self.spec.values())
        return table(f"<tundish.Reader {state}", columns)


def _typed(spec: ColumnSpec) -> str:
    """As plan and peek have it."""
    sizes = ",".join("-1" if size is None else str(size) for size in spec.shape)
    return f"{spec.dtype}[{sizes}]" + (f" {spec.kind}" if spec.kind != "dense" else "")


def _is_left(held: list[Reader]) -> bool:
    """Do its batches alone hold the reader, beside this list?"""
    alone = [object()]
    batches = sum(isinstance(holder, Batch) for holder in gc.get_referrers(held[0]))
    return sys.getrefcount(held[0]) - sys.getrefcount(alone[0]) == batches


# All of this process.
_opened: weakref.WeakSet[Reader] = weakref.WeakSet()


def readers_of(socket: str) -> list[Reader]:
    """The open readers of the server of this address, also those of other callers."""
    named = os.environ.get("TUNDISH_SERVER")
    return [reader for reader in list(_opened) if (reader.server or named) == socket and not reader.closed]


@spelt("tundish.open()")
def open(
    stream: str | os.PathLike[str] | Dataset | None = None,
    *,
    server: str | None = None,
    session: str | None = None,
    group: str | None = None,
    replica: int | None = None,
    place: str | None = None,
    device: Any = None,
    format: str = "numpy",
    widen: bool = False,
    on_hold: str = "copy",
    check: bool = False,
    timeout: float = 30.0,
) -> Reader:
    """Attach to a server. The caller closes the reader, or uses it in a `with`.

    In place of a stream, a pipeline file ("photos.yaml"), a tundish.data.Dataset, or what has __len__ and
    __getitem__ (Dataset.from_indexable, item by item): a server of its own, which ends with the reader. Its
    stream must have one replica.
    stream, server, session, group, replica: which batches; each from the environment (TUNDISH_STREAM,
    TUNDISH_SERVER, ...) if it is None. The replica may be torchrun's LOCAL_RANK, where neither session nor
    group is named. place: begin there, as reader.place has it. device: "cuda",
    "cuda:1" ...: batches are copied there ahead of the program, and columns are tundish.DeviceArray, or
    what the format makes of it. format: what columns are: "numpy", "torch", "jax" or "tf". widen:
    columns that deliver.widen names come as it says; on a device they always do. on_hold: what
    happens when the next batch needs the slot of one that is kept: "copy" copies the oldest out of
    the slot (on a device it takes memory for one batch more), its arrays stay valid; "error" raises;
    "wait" waits until another thread drops it. check: verify checksums (deliver.checksums). timeout:
    how many seconds to wait for a server that is starting, and after which silence it counts as dead.

    Raises ServerGone (no server listens) or the server's refusal: ArgumentError (unknown stream,
    replica out of range or in use), LayoutError, PipelineError, PlaceError; with a device SystemFault
    (there is no driver, or it is too old).
    """
    if format not in _MODULES:
        raise ArgumentError(f"format {format!r} is not one of {', '.join(_MODULES)}")
    device = _device(device)
    if device is not None and format not in _ON_DEVICES:
        raise ArgumentError(f"format {format!r} is for batches in the CPU's memory: leave out device=")
    options = {
        "server": server,
        "session": session,
        "group": group,
        "replica": replica,
        "place": place,
        "device": device,
        "format": format,
        "widen": widen,
        "on_hold": on_hold,
        "check": check,
        "timeout": timeout,
    }
    if _is_indexable(stream):
        from .data import Dataset

        stream = Dataset.from_indexable(stream)
    require_source(stream, "tundish.open")
    if stream is None or (isinstance(stream, str) and not is_file(stream)):
        return Reader({"stream": stream, **options})
    if isinstance(stream, str | os.PathLike):
        return _serve_alone(stream, options)
    from .data.plan import open_dataset

    return open_dataset(stream, options)


def _is_indexable(source: Any) -> bool:
    """Is it a data set of the program's own, as PyTorch's and Grain's? Lists are taken for mistakes."""
    kind = type(source)
    is_plain = isinstance(source, str | bytes | list | tuple | dict)
    return not is_plain and hasattr(kind, "__getitem__") and hasattr(kind, "__len__")


def is_file(source: Any) -> bool:
    """Is it a pipeline file's name, rather than a stream's?"""
    return isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith((".yaml", ".yml")))


def _serve_alone(file: PipelineFile, options: dict[str, Any]) -> Reader:
    """A reader of a server of its own, which ends with it. Trainers of one job share theirs."""
    from .ranks import Ranks
    from .serving import serve

    if (options.pop("server") or os.environ.get("TUNDISH_SERVER")) is not None:
        raise ArgumentError(f"{str(file)!r} is a pipeline file, and there is a server already: name a stream of that")
    world = max(int(os.environ.get("WORLD_SIZE") or 1), Ranks(is_shared=True).world)
    if world > 1:
        here = os.environ.get("LOCAL_WORLD_SIZE") or world
        raise ArgumentError(
            f"{str(file)!r} is a pipeline file, whose server the ranks of a job share: give its stream `distribute: "
            f"{{replicas: {here}}}`, start them by `tundish-launch {file} --replicas {here} -- python TRAINER`, and "
            "leave it out here"
        )
    return serve(file)._open_alone(**options)


def require_source(source: Any, taker: str, *besides: type) -> None:
    """Raise ArgumentError for what people try first, who do not know yet what a stream is."""
    if is_file(source):
        return
    # Nobody has a tundish.data.Dataset who has not imported it.
    data = sys.modules.get("tundish.data.dataset")
    kinds = (str, *besides) if data is None else (str, *besides, data.Dataset)
    if source is not None and not isinstance(source, kinds):
        taken = "".join(f" or a {kind.__name__}" for kind in besides)
        raise ArgumentError(
            f"{taker}() takes a stream's name{taken}, not {type(source).__name__}: the server reads the "
            "data that a pipeline file names; what Python makes comes by its stages `python_dataset` and `program`"
        )


def _device(name: Any) -> str | None:
    """As "cuda:0"; None of the CPU. A torch.device or JAX's says its name by str()."""
    if name is None or str(name) == "cpu":
        return None
    kind, colon, number = str(name).partition(":")
    if kind != "cuda" or (colon and not (number.isascii() and number.isdigit() and len(number) < 4)):
        raise ArgumentError(f"device {str(name)!r} is not 'cpu', 'cuda' or 'cuda:N'")
    return f"cuda:{int(number or 0)}"


def _converter(format: str) -> Callable[[Any], Any] | None:
    module = _MODULES[format]
    if module is None:
        return None
    from importlib import import_module

    convert: Callable[[Any], Any] = import_module(f"tundish.{module}").convert
    return convert
