"""Failures and outcomes of the SDK as exceptions: one class for each status, grouped by the remedy."""


class Error(Exception):
    """Whatever Tundish raises.

    `status` is the status of the C library, as "E_DATA", or "" if Python found the fault; `remedy`
    says in a few words what to do.
    """

    status = ""
    remedy = ""


class EndOfEpoch(Error):
    """next() and poll(): the epoch is over. The next call begins another."""


class EndOfStream(Error):
    """next() and poll(): all of deliver.epochs are over."""


class Stopped(Error):
    """The server drained and stopped on request: save the place, then end."""


class Timeout(Error, TimeoutError):
    """No batch came in time. Nothing is broken: call again."""


class ServerGone(Error):
    """The server died or was restarted. The next call attaches to its successor and goes on."""


def tell_of_loader(gone: ServerGone, may_begin_again: bool = True) -> None:
    """A loader of a data set has a server of its own."""
    begin = "the next loop starts another, with the next epoch" if may_begin_again else "make another loader"
    gone.remedy = f"{begin}; load_state_dict() goes on at a saved place"
    gone.args = (f"the server of the loader has died: {gone.remedy}",)


class PeerLost(Error):
    """Another replica of the group died. Batches follow if its successor comes in time."""


class Detached(Error):
    """The server cut this group off, because it was too slow: open again."""


class DataError(Error):
    """A row of this step is bad: mend the data, or set `deliver: {on_error: skip}`."""


class ArgumentError(Error, ValueError):
    """The program asked for something that is not there."""


class ColumnError(ArgumentError, KeyError):
    """The stream has no column of this name."""

    __str__ = Exception.__str__  # KeyError shows the repr of its argument


class LayoutError(Error):
    """This package and the server are of releases that do not fit."""


class PipelineError(Error):
    """The pipeline file is at fault."""


class PlaceError(Error):
    """The place is of other data, or not of the others' step."""


class SystemFault(Error, OSError):
    """A call of the operating system failed, or a store did not answer: mend that, then open again."""


class CorruptError(Error):
    """Shared memory failed a check."""


class OutOfMemory(Error, MemoryError):
    """There is no memory, or a configured limit was reached."""


class MisuseError(Error, RuntimeError):
    """A call that can never work: on a closed reader, in a forked child, in two threads at once."""


_OF_STATUS: dict[str, type[Error]] = {
    "END": EndOfEpoch,
    "END_OF_STREAM": EndOfStream,
    "STOPPED": Stopped,
    "E_TIMEOUT": Timeout,
    "E_SERVER_GONE": ServerGone,
    "E_PEER_LOST": PeerLost,
    "E_DETACHED": Detached,
    "E_DATA": DataError,
    "E_ARGUMENT": ArgumentError,
    "E_LAYOUT": LayoutError,
    "E_PIPELINE": PipelineError,
    "E_PLACE": PlaceError,
    "E_SYSTEM": SystemFault,
    "E_CORRUPT": CorruptError,
    "E_MEMORY": OutOfMemory,
}


def of_status(status: str, text: str, remedy: str) -> Error:
    """The exception of a status of the C library."""
    is_whole = text == remedy or "; start one: " in text  # no server has died that was never there
    sentence = text if is_whole else f"{text} ({remedy})" if text else remedy
    error = _OF_STATUS.get(status, Error)(sentence)
    error.status = status
    error.remedy = remedy
    return error
