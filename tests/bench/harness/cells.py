"""The cells: which data, which pipeline, which peers, and what the machine allows."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    name: str
    data: str  # a kind of data.ensure
    pipeline: str  # pipelines/NAME.yaml
    peers: tuple = ()  # names in peers/
    limit: str | None = None  # limits/limit_NAME
    limit_file: str = ""  # in the data folder; else the folder itself
    limit_argument: str = ""  # instead of a file
    consume: tuple = ()  # options of consume: the columns of the digest
    environment: dict = field(default_factory=dict)  # of the server and the peers
    mode: str = "passes"  # or "start", "cold", "replicas", "latency"
    forget: tuple = ()  # what the cache must not have at a start: names begin so

    @property
    def areas(self):
        """Kinds of one thing are chosen together: transport for transport-4KiB, python and python-torch
        for python-torch-jpeg."""
        words = self.name.split("-")
        if words[0] not in _KINDS:
            return {self.name}
        return {words[0], "-".join(words[:2])} if self.framework else {words[0]}

    @property
    def framework(self):
        """Of the cells of Python."""
        words = self.name.split("-")
        return words[1] if words[0] == "python" else None


_KINDS = ("criteo", "latency", "parquet", "python", "startup", "tfrecord", "transport", "vocab")
_CLICKS = ("--dense", "dense", "--label", "label")
_FRAMEWORKS = ("numpy", "torch", "jax")


_BLOCKS = 4  # in a file; a pass takes them again and again
_PASS_BATCHES = 32768
_PASS_KIB = 2 << 20


def _transport(kib):
    batches = min(_PASS_BATCHES, _PASS_KIB // kib)
    return Cell(
        name=f"transport-{kib}KiB",
        data=f"blocks-{kib}",
        pipeline="transport",
        peers=("shm_queue", "zmq", "spdl", "grain", "torch", "tfservice"),
        limit="transport",
        limit_file=f"blocks-{kib}.npy",
        environment={"BLOCK_KIB": str(kib), "BLOCK_REPEATS": str(batches // _BLOCKS)},
    )


def _latency(waiting):
    return Cell(
        name=f"latency-{waiting}",
        data="blocks-4",
        pipeline="latency",
        peers=("shm_queue", "zmq"),
        limit="latency",
        limit_argument=waiting,
        consume=("--latency", waiting),
        environment={"BLOCK_KIB": "4", "BLOCK_REPEATS": "1"},
        mode="latency",
    )


def _parquet(codec):
    """The click log as Parquet. With so little memory row groups are decoded in every pass, as the peers do
    and as data sets larger than the memory need."""
    return Cell(
        name=f"parquet-{codec}",
        data=f"parquet-{codec}",
        pipeline="parquet",
        peers=("polars", "pyarrow", "tfdata_pyarrow"),
        consume=_CLICKS,
        environment={"MEMORY_LIMIT": "160MiB"},
    )


def _parquet_shuffled():
    """Rows in random order, out of all row groups at once: these must have room."""
    return Cell(
        name="parquet-shuffled", data="parquet-snappy", pipeline="parquet-shuffled", consume=_CLICKS
    )


def _without_index(cell):
    """The same from a server that has not seen the files before."""
    return Cell(
        name=f"{cell}-cold",
        data="clicks",
        pipeline=cell,
        limit=cell,
        mode="cold",
        forget=("records-",),
    )


def _user(name, data, peers, dense=True, label=False):
    """A pipeline as users write them (peers/users.py)."""
    columns = (*(("--dense", "dense") if dense else ()), *(("--label", "label") if label else ()))
    return Cell(name=name, data=data, pipeline=name, peers=peers, consume=columns)


def _python(framework):
    """Into what a framework's train step takes; batches of 1,024 rows beside those of 8,192."""
    peers = ("torch", "grain", "spdl", "streaming", "tfdata")
    name = f"python-{framework}"
    clicks = {"data": "clicks", "pipeline": "criteo", "consume": _CLICKS, "mode": "python"}
    return (
        Cell(name=f"{name}-criteo", peers=peers, **clicks),
        Cell(name=f"{name}-criteo-1024", environment={"BATCH": "1024"}, **clicks),
        Cell(name=f"{name}-jpeg", data="jpegs", pipeline="jpeg", peers=peers, mode="python"),
    )


ALL = (
    Cell(
        name="criteo",
        data="clicks",
        pipeline="criteo",
        peers=("tfdata", "polars", "pyarrow", "torch", "grain"),
        limit="criteo",
        consume=_CLICKS,
    ),
    _without_index("criteo"),
    *(_parquet(codec) for codec in ("snappy", "zstd")),
    _parquet_shuffled(),
    Cell(
        name="tfrecord",
        data="clicks",
        pipeline="tfrecord",
        peers=("tfdata",),
        limit="tfrecord",
        consume=_CLICKS,
    ),
    _without_index("tfrecord"),
    Cell(
        name="images-raw",
        data="images",
        pipeline="images-raw",
        peers=("plain", "tfdata", "grain"),
        limit="images_raw",
    ),
    Cell(
        name="jpeg",
        data="jpegs",
        pipeline="jpeg",
        peers=("tfdata",),
        limit="jpeg",
    ),
    Cell(name="jpeg-scaled", data="jpegs", pipeline="jpeg-scaled", limit="jpeg"),
    Cell(
        name="text",
        data="text",
        pipeline="text",
        peers=("tfdata_keras", "tfdata_strings", "torch", "polars"),
        limit="text",
    ),
    _user("mel", "wavs", ("tfdata",)),
    _user("stft", "wavs", ("tfdata", "scipy", "torch")),
    _user("png", "pngs", ("tfdata", "cv2"), dense=False),
    _user("augment", "jpegs", ("tfdata", "cv2")),
    _user("window", "series", ("tfdata", "copy")),
    _user("filtered", "lines", ("polars", "pyarrow"), label=True),
    _user("files", "files", ("tfdata", "plain"), dense=False),
    *(_transport(kib) for kib in (4, 1024, 8192, 32768)),
    *(_latency(waiting) for waiting in ("spin", "sleep")),
    Cell(name="order", data="none", pipeline="order", peers=("tfdata",), limit="order"),
    Cell(name="vocab", data="terms", pipeline="vocab", peers=("tfdata", "polars"), limit="vocab"),
    Cell(
        name="startup",
        data="clicks",
        pipeline="criteo",
        peers=("tfdata", "torch", "grain"),
        mode="start",
    ),
    Cell(name="startup-cold", data="clicks", pipeline="criteo", mode="start", forget=("",)),
    Cell(name="vocab-memory", data="clicks", pipeline="criteo", mode="replicas"),
    *(cell for framework in _FRAMEWORKS for cell in _python(framework)),
    Cell(
        name="python-torch-jpeg-scaled",
        data="jpegs",
        pipeline="jpeg-scaled",
        peers=("torch", "grain", "spdl"),
        mode="python",
    ),
)


def choose(names):
    """The cells with these names or of these areas, all if there are none."""
    known = {cell.name for cell in ALL}.union(*(cell.areas for cell in ALL))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise KeyError(f"{', '.join(unknown)}: not among {', '.join(sorted(known))}")
    return [cell for cell in ALL if not names or cell.name in names or cell.areas & set(names)]
