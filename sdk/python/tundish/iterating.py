"""Batches of an iterable data set, as one worker of a program's torch.DataLoader would make them, in a process of
its own: in the pipeline of torch_iterable.py each worker is one of the `processes` of the source `program`.

The server starts the processes again in each epoch. An import of torch would take longer than many an epoch. So
each of them only hands its output on to a fork of an interpreter that the loader started: Forks.

A row is a batch: `head` has what tells its nest and shapes, pickled, and `data` the bytes of its leaves. Those of a
large batch are in memory that the loader reads: see worker_memory.py. The
server takes a row from each process in turn. So a worker whose data set has ended writes rows without head, one
for each batch that another worker still has to write.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import importlib
import itertools
import os
import pickle
import random
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
import weakref
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from . import loading, programs, serving, worker, worker_memory
from .errors import SystemFault
from .rows import RowWriter
from .worker_columns import Stack
from .worker_memory import Lent, Region

__all__ = ["CONNECT", "NOTHING", "SPEC", "Epoch", "Forks", "main", "read", "write_epoch"]

SPEC = {"head": {"dtype": "uint8", "shape": [None]}, "data": {"dtype": "uint8", "shape": [None]}}
_PR_SET_PDEATHSIG = 1
_POLL_S = 0.02
_TURN_S = 0.002
NOTHING = object()  # in the place of a batch
_PIPE_BYTES = 1 << 20
_LARGE_BYTES = 1 << 16


class Epoch(NamedTuple):
    """An epoch of a loader. The server has it as its epoch `run`."""

    dataset: Any
    collate: Any
    init: Any  # worker_init_fn
    batch_size: int | None
    drop_last: bool
    workers: int  # torch's number, which may be 0
    seed: int
    first: int  # the worker whose turn is the first
    taken: list[int]  # batches of each that the program has had
    memories: list[worker_memory.Address]  # of each


def write_epoch(folder: str, run: int, epoch: Epoch) -> None:
    """Have the server's processes begin it."""
    loading.save(os.path.join(folder, f"epoch-{run}"), epoch)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, f"epoch-{run - 1}"))


def make(folder: str, output: BinaryIO) -> None:
    """Write the rows of one epoch of one worker, which the environment names as `program` does."""
    run = os.environ["TUNDISH_EPOCH"]
    path = os.path.join(folder, f"epoch-{run}")
    while not os.path.exists(path):
        time.sleep(_POLL_S)
    epoch: Epoch = loading.load(path)
    rejects = RowWriter(SPEC, output)
    rounds = _Rounds(folder, rejects)
    number = (epoch.first + rejects.first) % rejects.step
    memory = Lent.at(epoch.memories[number])
    try:
        for batch in itertools.islice(_batches(epoch, number), epoch.taken[number], None):
            row = _row(batch)
            rounds.begin()
            _write(output, *_laid(row, memory))
    except (Exception, SystemExit, GeneratorExit, KeyboardInterrupt) as error:
        rounds.begin()
        rejects.reject(f"worker {number}: {worker.sentence_of(error)}")
        rejects.flush()
    rounds.end()
    while rounds.another_has_more():
        rounds.begin()
        _write(output, b"", b"")


def _write(output: BinaryIO, head: bytes, data: bytes | memoryview) -> None:
    """A row of SPEC, as `program` has it."""
    output.write(struct.pack(f"<Q{len(head)}sQ", len(head), head, len(data)))
    output.write(data)
    output.flush()


class _Rounds:
    """The batches that each worker has written in one pass of the server through the data set: words that all of
    them map."""

    def __init__(self, folder: str, rows: RowWriter) -> None:
        # The server draws the word for each pass.
        word = hashlib.blake2b(os.environ["TUNDISH_REJECT"].encode(), digest_size=8).hexdigest()
        self._path = os.path.join(folder, f"rounds-{word}")
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        os.ftruncate(descriptor, 16 * rows.step)
        with os.fdopen(descriptor, "r+b") as file:
            words = np.memmap(file, np.int64, "r+").reshape(2, -1)
        self._begun, self._ended, self._own = words[0], words[1], rows.first

    def begin(self) -> None:
        self._begun[self._own] += 1

    def end(self) -> None:
        self._ended[self._own] = self._begun[self._own] + 1  # 0: it has not ended

    def another_has_more(self) -> bool:
        """Whether a worker has a batch for the next round; waits until that is known."""
        written = int(self._begun[self._own])
        while True:
            ended = self._ended.copy()  # first: a worker that has ended by then begins none
            more = np.where(ended > 0, ended - 1, self._begun) > written
            if more.any():
                return True
            if ended.all():
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path)
                return False
            time.sleep(_TURN_S)


def _batches(epoch: Epoch, number: int) -> Iterator[Any]:
    """Those of a worker, whose seeds are those of torch's."""
    import torch
    from torch.utils.data._utils import worker as torch_worker

    dataset, seed = epoch.dataset, epoch.seed + number
    random.seed(seed)
    torch.manual_seed(seed)
    np.random.seed(torch_worker._generate_state(epoch.seed, number))  # type: ignore[no-untyped-call]
    info: Any = None
    if epoch.workers > 0:
        info = torch_worker.WorkerInfo(id=number, num_workers=epoch.workers, seed=seed, dataset=dataset)
        torch_worker._worker_info = info
        if epoch.init is not None:
            epoch.init(number)
    items = iter(dataset)
    worker.use_one_thread()
    is_default = epoch.collate in (loading.collate, loading.convert)
    while True:
        made = list(itertools.islice(items, epoch.batch_size or 1))
        if not made or (epoch.drop_last and len(made) < (epoch.batch_size or 1)):
            return
        if is_default:  # torch's would take shared memory in a worker
            torch_worker._worker_info = None
        yield epoch.collate(made[0] if epoch.batch_size is None else made)
        torch_worker._worker_info = info


# A batch as a row, and back.


class _Row(NamedTuple):
    signature: Any  # None: the one part is the batch, pickled
    shapes: list[list[int]]
    parts: list[Any]  # bytes, arrays and Stacks


def _row(made: Any) -> _Row:
    try:
        signature, leaves = loading.flatten(made)
    except loading.Unfit:
        return _Row(None, [], [loading.pickled_plain(made)])
    row = _Row(signature, [], [])
    for leaf in leaves:
        if isinstance(leaf, list):
            row.shapes.append([len(text) for text in leaf])
            row.parts.append(b"".join(leaf))
        else:
            row.shapes.append(list(leaf.shape))
            row.parts.append(leaf)
    return row


def _laid(row: _Row, memory: Lent | None) -> tuple[bytes, memoryview]:
    """Head and data."""
    sizes = [len(part) if type(part) is bytes else part.size * part.dtype.itemsize for part in row.parts]
    begins = [0, *itertools.accumulate(_aligned(size) for size in sizes)]
    region: Region | None = None
    if memory is not None and begins[-1] >= _LARGE_BYTES:
        region, to = memory.take(begins[-1])
    else:
        to = np.zeros(begins[-1], np.uint8)
    for part, size, begin in zip(row.parts, sizes, begins, strict=False):
        into = to[begin : begin + size]
        if type(part) is Stack:
            part.write(into.view(part.dtype))
        elif type(part) is bytes:
            into[:] = np.frombuffer(part, np.uint8)
        else:
            into.view(part.dtype).reshape(part.shape)[...] = part
    return loading.pickled((row.signature, row.shapes, region)), memoryview(b"") if region is not None else to.data


def _aligned(size: int) -> int:
    return -(-size // worker_memory.ALIGN) * worker_memory.ALIGN


def read(head: Any, data: Any, memory: worker_memory.Memory) -> Any:
    """The batch, with tensors of its own, or NOTHING. `memory` is that of its worker."""
    if len(head) == 0:
        return NOTHING
    signature, shapes, region = pickle.loads(head)
    if region is None:
        return _nest(signature, shapes, data)
    try:
        return _nest(signature, shapes, memory.bytes_of(region))
    finally:
        memory.give_back(region)


def _nest(signature: Any, shapes: list[list[int]], data: Any) -> Any:
    if signature is None:
        return pickle.loads(data)
    return loading.nest(signature, _leaves(loading.leaves(signature), shapes, data))


def _leaves(kinds: Iterator[Any], shapes: list[list[int]], data: Any) -> Iterator[Any]:
    import torch

    at = 0
    for (kind, *facts), shape in zip(kinds, shapes, strict=True):
        if kind in loading.TEXTS:
            ends = list(itertools.accumulate(shape, initial=at))
            yield [bytes(data[begin:end]) for begin, end in itertools.pairwise(ends)]
            at += _aligned(ends[-1] - at)
            continue
        name = loading.constant(facts[0]) if kind == "constant" else facts[0]
        dtype = getattr(torch, name)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        tensor = torch.empty(shape, dtype=dtype)
        if size > 0:
            tensor.reshape(-1).view(torch.uint8).numpy()[:] = data[at : at + size]
        yield tensor
        at += _aligned(size)


# The processes.

# The program of the pipeline. Its interpreter imports little, and is there after 20 ms.
CONNECT = """\
import os, socket, sys
status = b''
try:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(sys.argv[1])
    names = [name for name in os.environ if name.startswith('TUNDISH_')]
    words = '\\0'.join([sys.argv[2], *(f'{name}={os.environ[name]}' for name in names)])
    socket.send_fds(line, [words.encode('utf-8', 'surrogateescape')], [1, 2])
    os.close(1)
    status = line.recv(1)
except OSError:
    pass
sys.exit(status[0] if status else "the loader's interpreter is gone")
"""

_VARIABLES = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"),
    **dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "RAYON_NUM_THREADS"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
}
_BEGIN = (
    "import os, sys\n"
    "for folder in os.environ['TUNDISH_PYTHONPATH'].split(os.pathsep):\n"
    "    if folder and folder not in sys.path: sys.path.append(folder)\n"
    "from tundish import iterating\n"
    "iterating.main(*sys.argv[1:])\n"
)


class Forks:
    """The interpreter that forks the workers of all loaders of this program. It has imported torch and the module of
    the first one's data set, and ends with this object."""

    @staticmethod
    def of_program(module: str) -> Forks:
        found = _forks.get(os.getpid())
        if found is None or found.is_outdated():
            found = _forks[os.getpid()] = Forks(module)
        return found

    def __init__(self, module: str) -> None:
        self._modules = loading.modules()
        self.folder, lock = serving.short_folder()
        command = [sys.executable, "-P", "-c", _BEGIN, self.folder, module, str(os.getpid())]
        self.process = subprocess.Popen(
            command,
            env={**programs.environment(), **_VARIABLES},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            pass_fds=[lock],
            start_new_session=True,  # of a Ctrl-C this program hears alone
        )
        self.stop = weakref.finalize(self, _end, self.process, self.folder, lock, os.getpid())
        assert self.process.stdout is not None
        if not self.process.stdout.read(1):
            self.stop()
            raise SystemFault("the interpreter of the data set's workers could not begin: it has said why")

    def is_outdated(self) -> bool:
        """It is gone, or has other code than the program has by now."""
        return self.process.poll() is not None or loading.were_reloaded(self._modules)

    @property
    def address(self) -> str:
        return os.path.join(self.folder, "forks")


# By process, since a fork of the program has the objects of the one before.
_forks: weakref.WeakValueDictionary[int, Forks] = weakref.WeakValueDictionary()


def _end(process: Any, folder: str, lock: int, owner: int) -> None:
    if os.getpid() == owner:
        process.terminate()  # workers end with it
        process.stdout.close()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def main(folder: str, module: str, owner: str) -> None:
    program = os.pidfd_open(int(owner))
    if os.getppid() != int(owner):
        return
    import torch

    torch.set_num_threads(1)
    with contextlib.suppress(Exception):  # a worker that needs it tells why it cannot be had
        importlib.import_module(module)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(os.path.join(folder, "forks"))
    listener.listen(1024)
    said = os.dup(1)
    os.dup2(2, 1)
    os.write(said, b"1")
    os.close(said)
    with selectors.DefaultSelector() as selector:
        selector.register(program, selectors.EVENT_READ, lambda: False)  # it has ended
        selector.register(listener, selectors.EVENT_READ, lambda: _fork(selector, listener))
        while all([key.data() for key, _ in selector.select() if key.fd in selector.get_map()]):
            pass


def _fork(selector: selectors.BaseSelector, listener: socket.socket) -> bool:
    """Fork a worker for what the server has started, and let both end together."""
    line, _ = listener.accept()
    words, descriptors, _, _ = socket.recv_fds(line, 1 << 20, 2)
    if len(descriptors) < 2:  # it was killed
        line.close()
        return True
    parent, child = os.getpid(), os.fork()
    if child == 0:
        status = 1
        try:
            status = _work(parent, words, *descriptors)
        finally:
            os._exit(status)
    for descriptor in descriptors:
        os.close(descriptor)
    ended = os.pidfd_open(child)

    def reap() -> bool:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):
            line.send(bytes([code if code >= 0 else 128 - code]))
        for each in (ended, line):
            with contextlib.suppress(KeyError):
                selector.unregister(each)
        os.close(ended)
        line.close()
        return True

    def kill() -> bool:
        selector.unregister(line)
        os.kill(child, signal.SIGKILL)
        return True

    selector.register(ended, selectors.EVENT_READ, reap)
    selector.register(line, selectors.EVENT_READ, kill)
    return True


def _work(parent: int, words: bytes, output: int, errors: int) -> int:
    """In a fork: write rows to one descriptor, and what the data set prints to the server's log."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 1
    for descriptor in (1, 2):
        os.dup2(errors, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    kept = os.dup(output)
    with contextlib.suppress(OSError):  # beyond this user's share
        fcntl.fcntl(kept, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
    folder, *variables = words.decode("utf-8", "surrogateescape").split("\0")
    for text in variables:
        name, value = text.split("=", 1)
        os.environ[name] = value
    try:
        with os.fdopen(kept, "wb") as rows:
            make(folder, rows)
    except BrokenPipeError:  # the server wants no more
        return 1
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return 1
    return 0
