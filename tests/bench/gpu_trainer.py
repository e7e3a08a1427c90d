"""A training loop on a GPU, fed by one of several pipelines: gpu_trainer.py READER CELL FOLDER SECONDS STEP

READER is tundish, torch, spdl or dali; CELL images, jpegs or criteo. STEP is `none`: batches are on the device
as a train step takes them, and no more; a number: a step that keeps the device busy for so many milliseconds;
`model`: a small model is trained. Images are uint8 [224, 224, 3], which become bfloat16 (DALI has float16),
normalised, channels first; of the click log label and ids are int64, dense is float32.

One line of JSON: rows a second; CPU seconds for 1e9 bytes of columns, of this process, its workers and the
server (whose process is TUNDISH_BENCH_SERVER); with a step, how long it is on a batch that lies there already,
how much longer in the loop, and the share of the loop's time for which the device does not train.
"""

import importlib
import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from harness import processes

BATCH = {"images": 256, "jpegs": 64, "criteo": 8192}
ROW_BYTES = {"images": 224 * 224 * 3, "jpegs": 224 * 224 * 3, "criteo": 8 + 13 * 4 + 26 * 8}
TERMS = 50_002  # of a column of the click log at most, with those that are padding or unknown
MEAN, DEVIATION = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
WORKERS = int(os.environ.get("WORKERS", 2))
SKIPPED_BATCHES = 8
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def synchronize():
    if CUDA:
        torch.cuda.synchronize()


class Images(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.pixels = np.load(Path(folder) / "pixels.npy", mmap_mode="r")

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.from_numpy(np.array(self.pixels[index % len(self.pixels)]))


class Photographs(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.source = importlib.import_module("peers.jpeg").BatchSource(folder)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        import cv2

        cv2.setNumThreads(1)
        record = self.source._read(*self.source.places[index % len(self.source.places)])
        pixels = cv2.cvtColor(cv2.imdecode(np.frombuffer(record, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        return torch.from_numpy(cv2.resize(pixels, (224, 224)))


def normalised(images):
    mean, deviation = (torch.tensor(values, device=DEVICE) for values in (MEAN, DEVIATION))
    return ((images.float() - mean) / deviation).permute(0, 3, 1, 2).to(torch.bfloat16).contiguous()


def torch_images(folder, cell):
    loader = torch.utils.data.DataLoader(
        (Images if cell == "images" else Photographs)(folder),
        batch_size=BATCH[cell],
        num_workers=WORKERS,
        pin_memory=CUDA,
        prefetch_factor=4,
    )
    for images in loader:
        yield (normalised(images.to(DEVICE, non_blocking=True)),)


def pinned_ahead(batches):
    """Batches of arrays on the device, one copied while the one before is used."""
    stream = torch.cuda.Stream() if CUDA else None
    ready = None
    for batch in batches:
        if CUDA:
            with torch.cuda.stream(stream):
                tensors = [torch.from_numpy(column).pin_memory() for column in batch]
                there = [tensor.to("cuda", non_blocking=True) for tensor in tensors]
        else:
            there = [torch.from_numpy(column) for column in batch]
        if ready:
            yield ready
        if CUDA:
            torch.cuda.current_stream().wait_stream(stream)
        ready = there
    if ready:
        yield ready


def spdl_images(folder, cell):
    from spdl.pipeline import PipelineBuilder

    pixels = np.load(Path(folder) / "pixels.npy", mmap_mode="r")

    def batches():
        for start in range(0, 1 << 30, BATCH[cell]):
            yield [index % len(pixels) for index in range(start, start + BATCH[cell])]

    pipeline = (
        PipelineBuilder()
        .add_source(batches())
        .pipe(lambda indices: (pixels[indices],), concurrency=WORKERS)
        .add_sink(4)
        .build(num_threads=WORKERS)
    )
    with pipeline.auto_stop():
        for (images,) in pinned_ahead(pipeline):
            yield (normalised(images),)


def dali_images(folder, cell):
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    pixels = np.load(Path(folder) / "pixels.npy", mmap_mode="r")

    @pipeline_def(batch_size=BATCH[cell], num_threads=WORKERS, device_id=0, prefetch_queue_depth=3)
    def images():
        host = fn.external_source(
            source=lambda sample: np.array(pixels[sample.idx_in_epoch % len(pixels)]),
            batch=False, parallel=True, layout="HWC",
        )  # fmt: skip
        return fn.crop_mirror_normalize(
            host.gpu(), dtype=types.FLOAT16, output_layout="CHW", mean=list(MEAN), std=list(DEVIATION)
        )

    for (batch,) in DALIGenericIterator(images(py_num_workers=WORKERS, py_start_method="spawn"), ["image"]):
        yield (batch["image"],)


def torch_criteo(folder, _cell):
    """The click log is parsed by Arrow in worker processes."""
    module = importlib.import_module("peers.criteo")
    module.THREADS = WORKERS
    parsed = module.PEERS["torch"](folder, "criteo")
    while True:
        for columns in pinned_ahead((batch.label, batch.dense, batch.ids) for batch in parsed.epoch()):
            yield columns


def tundish(_folder, cell):
    """The server of the environment."""
    from tundish.torch import DataLoader

    train = DataLoader("bench", device=DEVICE) if CUDA else DataLoader("bench")
    while True:
        for batch in train:
            if cell == "criteo":
                yield batch["label"], batch["dense"], batch["ids"]
            else:
                images = batch["image" if cell == "images" else "ids"]
                yield (images if images.dtype == torch.bfloat16 else normalised(images),)


READERS = {
    ("tundish", "images"): tundish,
    ("tundish", "jpegs"): tundish,
    ("tundish", "criteo"): tundish,
    ("torch", "images"): torch_images,
    ("torch", "jpegs"): torch_images,
    ("torch", "criteo"): torch_criteo,
    ("spdl", "images"): spdl_images,
    ("dali", "images"): dali_images,
}


def busy_step(milliseconds):
    """A step that multiplies matrices for so long, whatever the batch."""
    side = 4096 if CUDA else 256
    one, other, product = (torch.randn(side, side, device=DEVICE, dtype=torch.bfloat16) for _ in range(3))

    def multiply(count):
        for _ in range(count):
            torch.mm(one, other, out=product)

    multiply(20)
    count = 8
    while True:
        took_ms = 1000 * seconds_of(multiply, count)
        if took_ms > 10 * milliseconds:
            break
        count *= 2
    count = max(1, round(count * milliseconds / took_ms))
    return lambda *_: multiply(count)


def seconds_of(function, *arguments):
    synchronize()
    begun = time.perf_counter()
    function(*arguments)
    synchronize()
    return time.perf_counter() - begun


def model_step(cell):
    """A step that trains a small network for images, or one with embeddings for the click log."""
    torch.manual_seed(1)
    make = click_network if cell == "criteo" else image_network
    model, loss_of = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(*batch):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = loss_of(*batch)
        loss.backward()
        optimizer.step()

    return step


def image_network():
    layers, channels = [], 3
    for more in (32, 64, 128, 256):
        layers += [torch.nn.Conv2d(channels, more, 3, stride=2, padding=1), torch.nn.BatchNorm2d(more), torch.nn.ReLU()]
        channels = more
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, 10)]
    model = torch.nn.Sequential(*layers).to(DEVICE)
    labels = torch.arange(max(BATCH.values()), device=DEVICE) % 10
    return model, lambda images: torch.nn.functional.cross_entropy(model(images.float()), labels[: len(images)])


def click_network():
    class Clicks(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(26 * TERMS, 16)
            sizes = (13 + 26 * 16, 1024, 512, 256, 1)
            layers = [torch.nn.Linear(*pair) for pair in zip(sizes, sizes[1:], strict=False)]
            self.layers = torch.nn.ModuleList(layers)
            self.register_buffer("offsets", torch.arange(26) * TERMS)

        def forward(self, dense, ids):
            found = torch.cat([dense, self.embedding(ids + self.offsets).flatten(1)], dim=1)
            for layer in self.layers[:-1]:
                found = torch.relu(layer(found))
            return self.layers[-1](found)[:, 0]

    model = Clicks().to(DEVICE)
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    return model, lambda label, dense, ids: loss(model(dense, ids).float(), label.float())


def step_of(name, cell):
    if name == "none":
        return None
    return model_step(cell) if name == "model" else busy_step(float(name))


def cpu_s():
    server = os.environ.get("TUNDISH_BENCH_SERVER")
    return processes.cpu_s([os.getpid(), *([int(server)] if server else [])])


def loop(batches, step, seconds, row_bytes):
    """The line's figures. A step begins when the one before is done, as where its loss is looked at."""
    line, count, rows, begun = {}, 0, 0, None
    for number, batch in enumerate(batches):
        if number < SKIPPED_BATCHES:
            if step:
                step(*batch)
            if number == SKIPPED_BATCHES - 1:
                if step:
                    line["step_ms"] = 1000 * statistics.median(seconds_of(step, *batch) for _ in range(30))
                synchronize()
                begun, busy_s = time.perf_counter(), cpu_s()
            continue
        if step:
            step(*batch)
            synchronize()
        rows += len(batch[0])
        count += 1
        if time.perf_counter() > begun + seconds:
            break
    synchronize()
    took_s, busy_s = time.perf_counter() - begun, cpu_s() - busy_s
    line |= {"rows_per_s": rows / took_s, "cpu_s_per_gb": busy_s / (rows * row_bytes / 1e9)}
    if step:
        loop_ms = 1000 * took_s / count
        line["stall_ms"] = loop_ms - line["step_ms"]
        line["idle_share"] = line["stall_ms"] / loop_ms
    return {name: float(f"{value:.4g}") for name, value in line.items()}


def main():
    reader, cell, folder, seconds, step = sys.argv[1:]
    if not CUDA and os.environ.get("TUNDISH_BENCH_STAND_IN") != "1":
        sys.exit("torch finds no GPU")
    if (reader, cell) not in READERS:
        sys.exit(f"{reader} has nothing for {cell}")
    line = loop(READERS[reader, cell](folder, cell), step_of(step, cell), float(seconds), ROW_BYTES[cell])
    print(json.dumps({**line, "version": torch.__version__}), flush=True)
    os._exit(0)  # worker processes take seconds to end


if __name__ == "__main__":
    main()
