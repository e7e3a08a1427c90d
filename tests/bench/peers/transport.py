"""Blocks of float32 from a process that copies them to one that looks at them, one a batch.

A block's first value is its number in the file that Tundish reads; a pass takes eight files' worth.
"""

import importlib.metadata
import itertools
import multiprocessing
import sys
import tempfile
from multiprocessing import shared_memory

import numpy as np

from .peer import Batch, Peer

SLOTS = 8
REPEATS = 8
FILE_BYTES = 64 << 20
FILE_BLOCKS_MIN = 4
LATENCY_KIB = 8


class Blocks:
    """The blocks of a cell such as transport-1024KiB, over and over."""

    def __init__(self, cell):
        size = cell.removeprefix("transport-").removesuffix("KiB")
        self.block_bytes = (int(size) if size.isdigit() else LATENCY_KIB) << 10
        self.file_blocks = max(FILE_BLOCKS_MIN, FILE_BYTES // self.block_bytes)
        self.pass_blocks = self.file_blocks * REPEATS

    def source(self):
        return np.random.default_rng(1).random(self.block_bytes // 4, dtype=np.float32)

    def stamp(self, block, number):
        block[0] = number % self.file_blocks
        return block


def _peer(version, blocks, stream):
    """A pass takes as many batches as one of Tundish does; the stream itself never ends."""
    iterator = iter(stream)

    def epoch():
        for block in itertools.islice(iterator, blocks.pass_blocks):
            yield Batch(block.reshape(1, -1))

    return Peer(version, epoch)


def _fill_shared_memory(names, free, full, blocks):
    segments = [shared_memory.SharedMemory(name=name) for name in names]
    slots = [np.ndarray(blocks.block_bytes // 4, np.float32, s.buf) for s in segments]
    source = blocks.source()
    for number in itertools.count():
        slot = free.get()
        slots[slot][:] = source
        blocks.stamp(slots[slot], number)
        full.put(slot)


def shm_queue(_folder, cell):
    """The plainest ring: slots in shared memory, their numbers over two queues."""
    blocks = Blocks(cell)
    context = multiprocessing.get_context("fork")
    segments = [
        shared_memory.SharedMemory(create=True, size=blocks.block_bytes) for _ in range(SLOTS)
    ]
    slots = [np.ndarray(blocks.block_bytes // 4, np.float32, s.buf) for s in segments]
    free, full = context.SimpleQueue(), context.SimpleQueue()
    for slot in range(SLOTS):
        free.put(slot)
    names = [segment.name for segment in segments]
    context.Process(
        target=_fill_shared_memory, args=(names, free, full, blocks), daemon=True
    ).start()

    def stream():
        first = full.get()
        for segment in segments:
            segment.unlink()  # both sides have it open: nothing is left whoever is killed
        yield slots[first]
        free.put(first)
        while True:
            slot = full.get()
            yield slots[slot]
            free.put(slot)

    return _peer(f"python {sys.version.split()[0]}", blocks, stream())


def _send(address, blocks, is_small):
    import zmq as library

    socket = library.Context().socket(library.PUSH)
    socket.setsockopt(library.SNDHWM, 2)
    socket.connect(address)
    source = blocks.source()
    for number in itertools.count():
        socket.send(blocks.stamp(source.copy(), number), copy=is_small)


def zmq(_folder, cell):
    import zmq as library

    blocks = Blocks(cell)
    is_small = blocks.block_bytes < 64 << 10
    address = f"ipc://{tempfile.mkdtemp()}/socket"
    socket = library.Context().socket(library.PULL)
    socket.setsockopt(library.RCVHWM, 2)
    socket.bind(address)
    multiprocessing.get_context("fork").Process(
        target=_send, args=(address, blocks, is_small), daemon=True
    ).start()

    def stream():
        while True:
            message = socket.recv(copy=is_small)
            yield np.frombuffer(message if is_small else message.buffer, np.float32)

    return _peer(f"pyzmq {library.__version__}", blocks, stream())


def torch(_folder, cell):
    """One copy, straight into the shared memory in which the loader hands tensors over."""
    import torch as library
    from torch.utils.data import DataLoader, IterableDataset

    blocks = Blocks(cell)
    library.set_num_threads(1)

    class Copies(IterableDataset):
        def __iter__(self):
            source = library.from_numpy(blocks.source())
            for number in itertools.count():
                storage = library.UntypedStorage._new_shared(source.nbytes)
                copy = library.empty(0, dtype=library.float32).set_(storage)[: source.numel()]
                copy.copy_(source)
                yield blocks.stamp(copy, number)

    loader = DataLoader(Copies(), batch_size=None, num_workers=1, prefetch_factor=4)
    stream = (tensor.numpy() for tensor in loader)
    return _peer(f"torch {library.__version__}", blocks, stream)


class GrainCopies:
    def __init__(self, blocks):
        self.blocks, self.source = blocks, None

    def __call__(self, number):
        if self.source is None:
            self.source = self.blocks.source()
        return self.blocks.stamp(self.source.copy(), int(number))


def grain(_folder, cell):
    from absl import flags

    flags.FLAGS(sys.argv[:1])
    import grain as library

    blocks = Blocks(cell)
    dataset = library.MapDataset.range(1 << 30).map(GrainCopies(blocks))
    dataset = dataset.to_iter_dataset(library.ReadOptions(num_threads=1, prefetch_buffer_size=2))
    dataset = dataset.mp_prefetch(
        library.MultiprocessingOptions(num_workers=1, per_worker_buffer_size=4)
    )
    return _peer(f"grain {importlib.metadata.version('grain')}", blocks, dataset)


PEERS = {"shm_queue": shm_queue, "zmq": zmq, "torch": torch, "grain": grain}
