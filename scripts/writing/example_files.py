"""The files that the examples of the stages read, and the batches that they make of them."""

import base64
import gzip
import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

COUNT = """import struct, sys

for number in range(3):
    sys.stdout.buffer.write(struct.pack("<q", number))
"""
MINE = """class Squares:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index * index


def double(row, rng):
    return {"x": 2 * row["x"]}
"""
# Eight grey pixels by eight.
PHOTO = (
    "/9j/4AAQSkZJRgABAQEBLAEsAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62r"
    "Z4C8ybqmx5moq6T/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AO//Z"
)
ROWS = [{"text": "to be", "label": 1, "ids": [3, 1]}, {"text": "or not", "label": 0, "ids": [2]}]


def write(folder, build):
    """Make them in a folder; shared objects come from a build."""
    small = _small_files()
    for part in range(2):
        numbers = range(3 * part, 3 * part + 3)
        records = [small.example({"label": [n], "tags": list(range(n % 3)), "word": [b"w%d" % n]}) for n in numbers]
        (folder / f"train-{part}.tfrecord").write_bytes(small.tfrecords(records))
    for number in range(4):
        photo = folder / "photos" / ("cats", "dogs")[number % 2] / f"{number}.png"
        photo.parent.mkdir(parents=True, exist_ok=True)
        photo.write_bytes(small.png(4, 4, number))
    samples = [(f"{n}.{kind}", data) for n in range(2) for kind, data in (("png", small.png(4, 4, n)), ("cls", b"%d" % n))]
    (folder / "shard.tar").write_bytes(small.tar(samples))
    lines = b"to be\nor not\nto be\n"
    (folder / "lines.txt").write_bytes(lines)
    (folder / "lines.txt.gz").write_bytes(gzip.compress(lines, mtime=0))
    (folder / "people.csv").write_text("name,age\nAda,36\nAlan,\nGrace,85\n")
    (folder / "numbers.bin").write_bytes(struct.pack("<3q", 1, 2, 3))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "sound.wav").write_bytes(_sound(64))
    (folder / "count.py").write_text(COUNT)
    (folder / "mine.py").write_text(MINE)
    data = ROOT / "tests/conformance/cases/data"
    shutil.copy(data / "integers.parquet", folder / "table.parquet")
    (folder / "photo.jpg").write_bytes(base64.b64decode(PHOTO))
    (folder / "weights.npy").write_bytes(small.npy([1, 2, 3]))
    (folder / "rows.npy").write_bytes(small.npy([4, 0, 4]))
    for epoch in range(2):
        (folder / f"order-{epoch}.npy").write_bytes(small.npy([4, 0, 4]))
    for library in ("libop_clamp.so", "libsource_count.so"):
        shutil.copy(build / "sdk/examples" / library, folder)


def batches(program, stages, folder, python=sys.executable):
    """{name: what `tundish peek` prints of the first batches, or None if it fails, and what it said}."""
    (folder / "programs").mkdir()
    (folder / "programs" / "python3").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
    (folder / "programs" / "python3").chmod(0o755)
    package = Path(program).parents[1] / "sdk/python"
    environment = {**os.environ, "TUNDISH_CACHE": str(folder / "cache"), "PYTHONPATH": str(package),
                   "PATH": f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}"}  # fmt: skip

    def peek(stage):
        file = folder / f"{stage['name']}.yaml"
        file.write_text(pipeline(stage["example"]))
        done = subprocess.run([program, "peek", "--analyze", "--steps", "2", file], env=environment,
                              capture_output=True, text=True, check=False)  # fmt: skip
        return stage["name"], (done.stdout if done.returncode == 0 else None, done.stderr)

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(peek, stages))


def pipeline(example):
    """A file of an example: a list of stages, or what stands beside one."""
    lines = example.rstrip("\n").splitlines()
    if lines[0].startswith("train:"):
        return "seed: 1\nstreams:\n" + "".join(f"  {line}\n" for line in lines)
    if lines[0].startswith("remote:"):
        return f"{example}seed: 1\nstreams: {{train: {{dataset: [{{range: 3}}, {{batch: 3}}]}}}}\n"
    if not lines[0].startswith("- "):
        image = "{from_tensors: {image: {values: [[1, 2]], dtype: uint8}}}"
        beside = "".join(f"    {line}\n" for line in lines)
        return f"seed: 1\nstreams:\n  train:\n    dataset: [{image}, {{batch: 4}}]\n{beside}"
    return "seed: 1\nstreams:\n  train:\n    dataset:\n" + "".join(f"      {line}\n" for line in lines)


def _small_files():
    spec = importlib.util.spec_from_file_location("small_files", ROOT / "tests/data/small_files.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sound(count):
    """A WAV file of a triangle, 8,000 samples of 16 bits a second."""
    data = struct.pack(f"<{count}h", *(abs(n % 16 - 8) * 2000 - 8000 for n in range(count)))
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16,
                       b"data", len(data))  # fmt: skip
    return head + data
