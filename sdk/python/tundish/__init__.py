"""Read training batches from a Tundish server.

    import tundish

    with tundish.open("train") as reader:   # server, session, replica: from the environment
        for batch in reader:                # one epoch
            train_step(batch["x"], batch["label"])

help() of each name has the details.

    open(stream)          a Reader of a running server, or of a server of its own: open("photos.yaml")
    serve(file)           start a Server in this process, and end it with a `with` block
    Reader                iterate over batches; next, poll, place, state_dict, load_state_dict, info, spec
    Batch                 batch["x"] as a NumPy array; array, epoch, step
    Ragged, Sparse        columns whose rows differ in length, or that hold few values
    Strings               a column of texts
    peek(file)            the first batches of a pipeline file, without a server
    plan(file)            its stages, columns and costs
    explain(file, place=) the file and record that each row of a batch came from
    Transform(file)       the same content stages at inference
    distribute            how tundish.data deals a data set out to replicas

    tundish.data          write pipelines with tf.data's calls; layers, tf and tft have
                          those of Keras, TensorFlow and tensorflow_transform
    tundish.torch         DataLoader, also for a Dataset class of your own
    tundish.jax, tundish.keras, tundish.tensorflow, tundish.lightning, tundish.transformers
                          the same for these
    python -m tundish.demo
                          a server and a trainer, for ten seconds

All errors are a tundish.Error: ArgumentError, PipelineError, ServerGone, Timeout and so on. Each has a
`status` and a `remedy`. EndOfStream, Stopped and PeerLost say why there are no more batches.
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
