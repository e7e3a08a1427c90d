"""The cell `resume`: how long from starting a server to the first batch at a place.

A million records of 64 bytes in TFRecord files whose indexes are there, batches of 1,024; places
behind the first batch, at half and at nine tenths of the epochs, and no place at all. What is timed
is everything: the server's start, the trainer's, and the order's way to the place.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from small_files import tfrecords

RECORDS, BYTES, BATCH, FILES = 1_000_000, 64, 1024, 16

ONE = "tfrecord: {filenames: rows.tfrecord}"
SHUFFLE = "shuffle: {buffer_size: 100000, seed: 1}"
MANY = [
    'list_files: {file_pattern: "rows-*", seed: 1}',
    "interleave: {dataset: [tfrecord], cycle_length: 16}",
]
STAGES = {
    "indexed": [ONE],
    "permute": [ONE, "permute: {seed: 1}"],
    "shuffle": [ONE, SHUFFLE],
    "shuffle_10_epochs": [ONE, SHUFFLE, "repeat: 10"],
    "files": [*MANY, SHUFFLE],
    "files_10_epochs": [*MANY, SHUFFLE, "repeat: 10"],
}
PLACES = {"none": None, "0%": 0, "50%": 0.5, "90%": 0.9}


class Job:
    """A server and its trainers in a folder of their own."""

    def __init__(self, build, folder, stages):
        self.server_program = build / "server/tundish"
        self.reader_program = build / "tests/system/reader"
        self.file = folder / "pipeline.yaml"
        lines = [*stages, f"batch: {BATCH}"]
        dataset = "".join(f"      - {line}\n" for line in lines)
        self.file.write_text(f"streams:\n  train:\n    dataset:\n{dataset}")
        self.environment = dict(
            os.environ,
            TUNDISH_SERVER=str(folder / "server"),
            TUNDISH_STREAM="train",
            TUNDISH_CACHE=str(folder / "cache"),
        )

    def serve(self):
        read_end, write_end = os.pipe()
        server = subprocess.Popen(
            [self.server_program, "serve", self.file, "--ready-fd", str(write_end)],
            env=self.environment,
            stderr=subprocess.DEVNULL,
            pass_fds=[write_end],
        )
        os.close(write_end)
        word = os.read(read_end, 16)
        os.close(read_end)
        if word != b"ready\n":
            sys.exit("bench: resume: the server did not start")
        return server

    def read(self, *options):
        return subprocess.Popen(
            [self.reader_program, *options],
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def place_after(self, batches):
        server = self.serve()
        reader = self.read("--batches", str(batches))
        out, _ = reader.communicate()
        end(server)
        if "\nplace " not in out:
            sys.exit(f"bench: resume: the trainer ended with {out.splitlines()[-1:]}")
        return out.split("\nplace ")[1].split()[0]

    def resume(self, token):
        """Seconds to the server's word that it is there, and to the first batch at a place, or
        where there is none."""
        start = time.monotonic()
        server = self.serve()
        ready = time.monotonic() - start
        at = ["--place", token] if token else []
        reader = self.read(*at, "--batches", "1")
        lines = []
        for line in reader.stdout:
            lines.append(line)
            if line.startswith("batch "):
                break
        first = time.monotonic() - start
        reader.communicate()
        end(server)
        if not lines or not lines[-1].startswith("batch "):
            sys.exit(f"bench: resume: the trainer said {lines}")
        return ready, first


def end(server):
    server.send_signal(signal.SIGTERM)
    server.wait()


def write_records(path, count):
    """The same few records again and again: their content is not what is measured."""
    records = [tfrecords([bytes([i]) * BYTES]) for i in range(64)]
    block = b"".join(records)
    with open(path, "wb") as file:
        for _ in range(count // 64):
            file.write(block)


def measure(options):
    with tempfile.TemporaryDirectory(prefix="tundish-resume-") as name:
        folder = Path(name)
        write_records(folder / "rows.tfrecord", RECORDS)
        for number in range(FILES):
            write_records(folder / f"rows-{number:02}", RECORDS // FILES)
        time.sleep(2.1)  # an index of a younger file is not kept
        for kind, stages in STAGES.items():
            job = Job(options.build, folder, stages)
            epochs = 10 if kind.endswith("epochs") else 1
            for name, share in PLACES.items():
                batches = max(1, int(RECORDS / BATCH * epochs * (share or 0)))
                token = None if share is None else job.place_after(batches)
                show(options, kind, name, token, [job.resume(token) for _ in range(options.passes)])


def show(options, kind, place, token, times):
    ready, first = (round(1e3 * statistics.median(t), 1) for t in zip(*times))
    characters = len(token or "")
    if options.json:
        line = {
            "cell": "resume",
            "stages": kind,
            "place": place,
            "place_characters": characters,
            "server_ready_ms": ready,
            "first_batch_ms": first,
        }
        print(json.dumps(line), flush=True)
    else:
        print(
            f"resume {kind:18} place {place:>4}: server ready {ready:6.1f} ms, "
            f"first batch {first:6.1f} ms, place of {characters} characters",
            flush=True,
        )
