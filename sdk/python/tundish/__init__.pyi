from . import data as data, layers as layers, tf as tf, tft as tft
from ._tundish import Array as Array, DeviceArray as DeviceArray
from .batch import Batch as Batch
from .data import distribute as distribute
from .errors import (
    ArgumentError as ArgumentError,
    ColumnError as ColumnError,
    CorruptError as CorruptError,
    DataError as DataError,
    Detached as Detached,
    EndOfEpoch as EndOfEpoch,
    EndOfStream as EndOfStream,
    Error as Error,
    LayoutError as LayoutError,
    MisuseError as MisuseError,
    OutOfMemory as OutOfMemory,
    PeerLost as PeerLost,
    PipelineError as PipelineError,
    PlaceError as PlaceError,
    ServerGone as ServerGone,
    Stopped as Stopped,
    SystemFault as SystemFault,
    Timeout as Timeout,
)
from .explaining import explain as explain
from .reader import ColumnSpec as ColumnSpec, Info as Info, Reader as Reader, Standing as Standing, open as open
from .serving import Server as Server, peek as peek, plan as plan, serve as serve
from .transform import Transform as Transform

__version__: str
