"""What other input pipelines bring to a GPU: peers_gpu.py PEER images|criteo FOLDER SECONDS

One line of JSON: rows a second, of batches that are on the device as a train step takes them. Images are
uint8 [224, 224, 3], which become bfloat16 (DALI has float16), normalised, channels first; the click log's
columns are decoded as peers/criteo.py does, label int64, dense float32, ids int64.
"""

import importlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch

BATCH = 256
MEAN, DEVIATION = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
WORKERS = os.cpu_count()
SKIPPED_BATCHES = 8


class Images(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.pixels = np.load(Path(folder) / "pixels.npy", mmap_mode="r")

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.from_numpy(np.array(self.pixels[index % len(self.pixels)]))


def normalised(images):
    mean, deviation = (torch.tensor(values, device="cuda") for values in (MEAN, DEVIATION))
    return ((images.float() - mean) / deviation).permute(0, 3, 1, 2).to(torch.bfloat16).contiguous()


def torch_images(folder):
    loader = torch.utils.data.DataLoader(
        Images(folder), batch_size=BATCH, num_workers=WORKERS, pin_memory=True, prefetch_factor=4
    )
    for images in loader:
        yield normalised(images.to("cuda", non_blocking=True))


def pinned_ahead(batches):
    """Batches of arrays on the device, one copied while the one before is used."""
    stream = torch.cuda.Stream()
    ready = None
    for batch in batches:
        with torch.cuda.stream(stream):
            tensors = [torch.from_numpy(column).pin_memory() for column in batch]
            there = [tensor.to("cuda", non_blocking=True) for tensor in tensors]
        if ready:
            yield ready
        torch.cuda.current_stream().wait_stream(stream)
        ready = there
    if ready:
        yield ready


def spdl_images(folder):
    from spdl.pipeline import PipelineBuilder

    pixels = np.load(Path(folder) / "pixels.npy", mmap_mode="r")

    def batches():
        for start in range(0, 1 << 30, BATCH):
            yield [index % len(pixels) for index in range(start, start + BATCH)]

    pipeline = (
        PipelineBuilder()
        .add_source(batches())
        .pipe(lambda indices: (pixels[indices],), concurrency=WORKERS)
        .add_sink(4)
        .build(num_threads=WORKERS)
    )
    with pipeline.auto_stop():
        for (images,) in pinned_ahead(pipeline):
            yield normalised(images)


def dali_images(folder):
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    pixels = np.load(Path(folder) / "pixels.npy", mmap_mode="r")

    @pipeline_def(batch_size=BATCH, num_threads=WORKERS, device_id=0, prefetch_queue_depth=3)
    def images():
        host = fn.external_source(
            source=lambda sample: np.array(pixels[sample.idx_in_epoch % len(pixels)]),
            batch=False, parallel=True, layout="HWC",
        )  # fmt: skip
        return fn.crop_mirror_normalize(
            host.gpu(), dtype=types.FLOAT16, output_layout="CHW", mean=list(MEAN), std=list(DEVIATION)
        )

    for (batch,) in DALIGenericIterator(images(py_num_workers=WORKERS, py_start_method="spawn"), ["image"]):
        yield batch["image"]


def criteo(peer):
    """The click log is parsed on the host by each: what differs is the way to the device."""

    def batches(folder):
        parsed = importlib.import_module("peers.criteo").PEERS[peer](folder, "criteo")
        while True:
            for batch in pinned_ahead((batch.label, batch.dense, batch.ids) for batch in parsed.epoch()):
                yield batch[0]

    return batches


READERS = {
    ("torch", "images"): torch_images,
    ("spdl", "images"): spdl_images,
    ("dali", "images"): dali_images,
    ("torch", "criteo"): criteo("torch"),
}


def main():
    peer, cell, folder, seconds = sys.argv[1:]
    if not torch.cuda.is_available():
        sys.exit("torch finds no GPU")
    if (peer, cell) not in READERS:
        sys.exit(f"{peer} has nothing for {cell}")
    rows, begun = 0, None
    for number, batch in enumerate(READERS[peer, cell](folder)):
        rows += len(batch)
        if number == SKIPPED_BATCHES:
            torch.cuda.synchronize()
            rows, begun = 0, time.perf_counter()
        elif begun and time.perf_counter() > begun + float(seconds):
            break
    torch.cuda.synchronize()
    rate = rows / (time.perf_counter() - begun)
    print(json.dumps({"rows_per_s": rate, "version": torch.__version__}), flush=True)
    os._exit(0)  # worker processes take seconds to end


if __name__ == "__main__":
    main()
