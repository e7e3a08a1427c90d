"""The cell `fetch-once`: what a store gives to the nodes of a job, each for itself or one for all.

The store and the records of the cell `remote`, dealt row by row to the ranks of an MPI job on this machine
for one epoch: the bytes that all of them received from it, what they passed on to each other, and the time.
"""

import json
import shutil
import subprocess
import time

from . import processes
from .measure import Failure
from .nodes import MPIRUN, START_S
from .remote import environment_of, stored

NODES = 3
STAGES = ["list_files: {file_pattern: 's3://bucket/rows-*', seed: 1}",
          "interleave: {dataset: [tfrecord], cycle_length: 4}", "shuffle: {buffer_size: 512, seed: 1}",
          "batch: 48"]


def measure(options):
    if not (options.build / "server/tundish-mpi.so").exists() or not shutil.which("mpirun"):
        print("fetch-once: not measured, there is no MPI here", flush=True)
        return
    with stored(options) as (folder, address):
        for fetch in ("each", "once"):
            _show(options, fetch, _epoch(options, folder, address, fetch))


def _write(folder, address, fetch):
    file = folder / "pipeline.yaml"
    lines = "".join(f"      - {stage}\n" for stage in STAGES)
    file.write_text(f"seed: 1\nremote: {{endpoint: '{address}', region: here, fetch: {fetch}}}\n"
                    f"streams:\n  train:\n    dataset:\n{lines}"
                    "    distribute: {auto_shard: DATA}\n    deliver: {epochs: 1}\n")
    return file


def _epoch(options, folder, address, fetch):
    """From the trainers' start to their end, and what the servers had counted then."""
    file = _write(folder, address, fetch)
    sockets = [folder / f"server.{rank}" for rank in range(NODES)]
    words = list(MPIRUN)
    for rank, socket in enumerate(sockets):
        words += [":"] * bool(rank) + ["-n", "1", options.build / "server/tundish", "serve", file,
                                       "--socket", socket, "--cache", folder / f"cache.{fetch}.{rank}"]
    with processes.Program(words, environment_of(folder), "the servers") as servers:
        _wait_for(servers, sockets)
        begin = time.monotonic()
        trainers = [processes.Program([options.build / "tests/bench/consume", "--unchecked"],
                                      {**environment_of(folder), "TUNDISH_SERVER": str(socket)})
                    for socket in sockets]
        for trainer in trainers:
            trainer.process.wait()
        seconds = time.monotonic() - begin
        time.sleep(1)  # metrics are brought up to date ten times a second
        figures = [_figures(options, socket) for socket in sockets]
    return {
        "seconds": round(seconds, 1),
        "received_mb": [round(sum(store["received_bytes"] for store in each["stores"]) / 1e6)
                        for each in figures],
        "passed_on_mb": [round(each["links"][0]["passed_on_bytes"] / 1e6) for each in figures],
    }


def _wait_for(servers, sockets):
    until = time.monotonic() + START_S
    while not all(socket.exists() for socket in sockets):
        if servers.process.poll() is not None or time.monotonic() > until:
            raise Failure(f"the servers did not start{servers.last_words()}")
        time.sleep(0.02)


def _figures(options, socket):
    command = [options.build / "server/tundish", "status", "--json", "--interval", "1", "--socket", socket]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def _show(options, fetch, figures):
    line = {"cell": "fetch-once", "fetch": fetch, "nodes": NODES, "total_mb": sum(figures["received_mb"]),
            **figures}
    if options.json:
        print(json.dumps(line), flush=True)
    else:
        print("  ".join(f"{name} {value}" for name, value in line.items()), flush=True)
