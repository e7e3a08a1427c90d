"""Read training batches from a Tundish server.

    import tundish

    with tundish.open("train") as reader:   # server, session, replica: from the environment
        for batch in reader:                # one epoch
            train_step(batch["x"], batch["label"])
"""

from ._tundish import Array, DeviceArray, version as __version__
from .batch import Batch
from .errors import (
    ArgumentError,
    ColumnError,
    CorruptError,
    DataError,
    Detached,
    EndOfEpoch,
    EndOfStream,
    Error,
    LayoutError,
    MisuseError,
    OutOfMemory,
    PeerLost,
    PipelineError,
    PlaceError,
    ServerGone,
    Stopped,
    SystemFault,
    Timeout,
)
from .reader import ColumnSpec, Info, Reader, Standing, open

# Imported when they are asked for: they need numpy, other libraries or the server's programs.
_LAZY = {
    "Ragged": "columns",
    "Server": "serving",
    "Sparse": "columns",
    "Strings": "columns",
    "Transform": "transform",
    "distribute": "data",
    "explain": "explaining",
    "peek": "serving",
    "plan": "serving",
    "serve": "serving",
}
_MODULES = ("data", "layers", "tf", "tft")


def __getattr__(name):
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"tundish.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'tundish' has no attribute {name!r}")
    value = getattr(import_module(f"tundish.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return [*globals(), *_LAZY, *_MODULES]
