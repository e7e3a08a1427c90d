"""The cell `remote`: files of a store whose answers come 30 ms late over a link that carries 200 MB/s.

Records in TFRecord files, and files of a picture's size that rows name, are read in epochs with a cache
on disk; beside it what the link gives to 16 connections that do nothing else. Later epochs and those of
local files take turns, each with a server of its own, and what counts is the ratio of neighbouring
turns: the machine's speed falls out of it. The store is a process of its own on this machine. With --peers others read an epoch
of the same store, of the same rows in files of the form that they want.
"""

import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from peers import remote as peers
from small_files import tfrecords

from . import processes
from .environments import Environments
from .measure import Failure, next_line, spread
from .resume import end
from .subjects import BENCH, segments_removed

DELAY_MS, RATE = 30, 200_000_000
PEER_TIMEOUT_S = 300
CONNECTIONS, PART = 16, 8 << 20
RECORDS, RECORD_BYTES, FILES = 4096, 115_000, 4
PICTURES, PICTURE_BYTES = 3000, 110_000
PAIRS, TURN = 9, 3  # of turns, and how many epochs of each are timed

KINDS = {
    "tfrecord": ["list_files: {file_pattern: '%s/rows-*', seed: 1}",
                 "interleave: {dataset: [tfrecord], cycle_length: 4}", "batch: 64"],
    "files": ["list_files: {file_pattern: '%s/pictures/*', seed: 1}", "read_file", "batch: 64"],
}


@contextmanager
def stored(options):
    """A folder, and the address of a store that serves the data in it, slowly."""
    with tempfile.TemporaryDirectory(prefix="tundish-remote-", dir=options.build) as name:
        folder = Path(name)
        make_data(folder / "data")
        if options.peers:
            convert(options, folder / "data")
        command = [sys.executable, BENCH.parent / "system/store.py", folder / "data", "bucket",
                   str(DELAY_MS), str(RATE)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as store:
            try:
                yield folder, store.stdout.readline().split()[0]
            finally:
                store.terminate()


def measure(options):
    with stored(options) as (folder, address):
        for kind in KINDS:
            link, *measured = measure_kind(options, kind, folder, address)
            show(options, kind, link, *measured)
            for peer in peers.PEERS if options.peers else ():
                measure_peer(options, kind, peer, (link, address))


def make_data(folder):
    (folder / "pictures").mkdir(parents=True)
    draw = random.Random(1)
    block = tfrecords([draw.randbytes(RECORD_BYTES)])
    for number in range(FILES):
        with open(folder / f"rows-{number:02}", "wb") as file:
            for _ in range(RECORDS // FILES):
                file.write(block)
    for number in range(PICTURES):
        (folder / f"pictures/{number:05}").write_bytes(draw.randbytes(PICTURE_BYTES))
    time.sleep(2.1)  # an index of a younger file is not kept


def convert(options, folder):
    """The rows in the forms that peers read."""
    for kind in KINDS:
        peers.write_tars(kind, folder, folder / f"tar-{kind}")
        try:
            python = Environments(options.data / "environments").python_of_remote("streaming")
        except Failure as failure:
            print(f"bench: {failure}", file=sys.stderr)
            continue
        command = [python, "-m", "peers.remote", "convert", kind, folder, folder / f"mds-{kind}"]
        subprocess.run(command, env=dict(os.environ, PYTHONPATH=str(BENCH)), check=True)


def measure_peer(options, kind, peer, where):
    """One epoch, which is of all rows and bytes."""
    link, address = where
    wanted = (RECORDS, RECORDS * RECORD_BYTES) if kind == "tfrecord" else (PICTURES, PICTURES * PICTURE_BYTES)
    line = {"cell": f"remote-{kind}", "subject": peer, "load": load()}
    try:
        python = Environments(options.data / "environments").python_of_remote(peer)
        command = [python, "-W", "ignore", "-m", "peers.remote", peer, kind, address]
        with segments_removed(), processes.Program(command, {"PYTHONPATH": str(BENCH)}, name=peer) as program:
            said = next_line(program, PEER_TIMEOUT_S)
        line.update(version=said["version"], first_epoch_mb_s=round(said["bytes"] / said["seconds"] / 1e6, 1),
                    of_link=round(said["bytes"] / said["seconds"] / link, 3),
                    first_batch_ms=round(1e3 * said["first_s"]))
        if (said["rows"], said["bytes"]) != wanted:
            line["differs"] = f"{said['rows']} rows of {said['bytes']} bytes in all"
    except (Failure, OSError) as error:
        line["error"] = str(error)
    say(options, line)


def load():
    return round(os.getloadavg()[0], 1)


def measure_kind(options, kind, folder, address):
    files = sorted((folder / "data").glob("rows-*" if kind == "tfrecord" else "pictures/*"))
    link = link_rate(files, folder / "data", address)
    local = write(kind, folder, str(folder / "data"), "")
    store = f"endpoint: '{address}', region: here"
    kept = f"{store}, cache: '{folder}/kept-{kind}', cache_bytes: 4GiB"
    cached = write(kind, folder, "s3://bucket", f"remote: {{{kept}}}", "cached")
    ready = [first_batch(options, file, folder) for file in
             (local, write(kind, folder, "s3://bucket", f"remote: {{{store}}}", "store"))]
    with Turns(options, local, folder, "here") as here, Turns(options, cached, folder, "there") as there:
        pairs = [(here.turn(), there.turn()) for _ in range(PAIRS)]
    return link, there.first_rate, pairs, ready


def link_rate(files, folder, address):
    """Bytes a second of connections that only read."""
    spans = [(file, first, min(first + PART, file.stat().st_size) - 1)
             for file in files for first in range(0, file.stat().st_size, PART)]
    lock, where = threading.Lock(), urlsplit(address)

    def read():
        connection = http.client.HTTPConnection(where.hostname, where.port)
        buffer = bytearray(1 << 20)
        while True:
            with lock:
                if not spans:
                    return
                file, first, last = spans.pop()
            connection.request("GET", f"/bucket/{file.relative_to(folder)}",
                               headers={"Range": f"bytes={first}-{last}"})
            response = connection.getresponse()
            while response.readinto(buffer):
                pass

    total = sum(last - first + 1 for _, first, last in spans)
    threads = [threading.Thread(target=read) for _ in range(CONNECTIONS)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return total / (time.monotonic() - begin)


def write(kind, folder, where, remote, name="local"):
    file = folder / f"{name}.yaml"
    lines = "".join(f"      - {stage}\n" for stage in KINDS[kind]).replace("%s", where)
    file.write_text(f"seed: 1\n{remote}\nstreams:\n  train:\n    dataset:\n{lines}"
                    f"    deliver: {{epochs: {2 + PAIRS * (1 + TURN)}}}\n")
    return file


def environment_of(folder, server="server"):
    names = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return dict(names, TUNDISH_SERVER=str(folder / server), TUNDISH_STREAM="train",
                TUNDISH_CACHE=str(folder / "cache"), AWS_EC2_METADATA_DISABLED="true",
                HOME=str(folder))


def serve(options, file, environment):
    read_end, write_end = os.pipe()
    command = [options.build / "server/tundish", "serve", file, "--ready-fd", str(write_end)]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, pass_fds=[write_end])
    os.close(write_end)
    os.read(read_end, 16)
    os.close(read_end)
    return server


def first_batch(options, file, folder):
    """Seconds from the server's start."""
    begin = time.monotonic()
    server = serve(options, file, environment_of(folder))
    subprocess.run([options.build / "tests/system/reader", "--batches", "1"],
                   env=environment_of(folder), stdout=subprocess.DEVNULL, check=True)
    seconds = time.monotonic() - begin
    end(server)
    return seconds


class Turns:
    """A server and its trainer, who reads when told to. The first epoch is counted from the server's start."""

    def __init__(self, options, file, folder, name):
        environment = environment_of(folder, name)
        begin = time.monotonic()
        self.server = serve(options, file, environment)
        self.trainer = subprocess.Popen([options.build / "tests/bench/consume", "--unchecked", "--turns"],
                                        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        self.first_rate = self.epoch()["bytes"] / (time.monotonic() - begin)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.trainer.stdin.close()
        self.trainer.wait()
        end(self.server)

    def epoch(self):
        self.trainer.stdin.write("\n")
        return json.loads(self.trainer.stdout.readline())

    def turn(self):
        """Bytes a second, and processor seconds of the server. Nothing is left of what was made while
        the other had its turn."""
        self.epoch()
        cpu = processes.own_cpu_s(self.server.pid)
        epochs = [self.epoch() for _ in range(TURN)]
        cpu = processes.own_cpu_s(self.server.pid) - cpu
        return sum(one["bytes"] for one in epochs) / sum(one["seconds"] for one in epochs), cpu


def show(options, kind, link, first_rate, pairs, ready):
    here, there = zip(*pairs)
    line = {
        "cell": f"remote-{kind}",
        "subject": "tundish",
        "load": load(),
        "link_mb_s": round(link / 1e6, 1),
        "first_epoch_mb_s": round(first_rate / 1e6, 1),
        "of_link": round(first_rate / link, 3),
        "later_mb_s": round(statistics.median(rate for rate, _ in there) / 1e6),
        "local_mb_s": round(statistics.median(rate for rate, _ in here) / 1e6),
        "of_local": spread((b[0] / a[0] for a, b in pairs), 3),
        "cpu_of_local": round(sum(cpu for _, cpu in there) / sum(cpu for _, cpu in here), 3),
        "first_batch_ms": round(1e3 * ready[1]),
        "local_first_batch_ms": round(1e3 * ready[0]),
    }
    say(options, line)


def say(options, line):
    if options.json:
        print(json.dumps(line), flush=True)
    else:
        print("  ".join(f"{name} {value}" for name, value in line.items()), flush=True)
