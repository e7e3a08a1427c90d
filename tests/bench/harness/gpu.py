"""The cell `gpu`: batches in a GPU's memory, beside what the link gives in the same run.

Blocks of 1, 8 and 64 MiB in both modes; images of uint8 that are normalised to bfloat16, channels first, on the
device; the click log. `bench_gpu` reads each for some seconds, then copies as many bytes as a batch has
as fast as the link does, from pinned memory and from other memory, and with one core's memcpy. Of images and
of the click log it also times the kernel alone, against copies on the device. With TUNDISH_BENCH_STAND_IN=1
it runs on the stand-in for a driver of tests/cuda, to see that it runs.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from . import cells, data, processes
from .environments import Environments
from .measure import Failure
from .subjects import BENCH, Tundish

MIB = (1, 8, 64)
SIDE, IMAGES = 224, 512
START_S = 120
STAND_IN = os.environ.get("TUNDISH_BENCH_STAND_IN") == "1"
WARNING = "on the stand-in for a driver: the figures mean nothing"
PEERS = {  # what is installed for each
    "torch": ("numpy", "torch"),
    "spdl": ("numpy", "torch", "spdl-core", "spdl-io"),
    "dali": ("numpy", "torch", "nvidia-dali-cuda130"),
}


def measure(options):
    why_not = look()
    if why_not:
        print(f"gpu                not measured: {why_not}", flush=True)
        return
    if STAND_IN:
        print(f"gpu                {WARNING}", flush=True)
    for name, cell, kind, mode, groups in subjects():
        folder = ensure(kind, options)
        line = {"cell": f"gpu-{name}", "peer": "tundish"}
        try:
            line |= read(options, cell, folder, mode, groups)
        except Failure as failure:
            line["error"] = str(failure)
        show(add_ratios(line), options.json)
        for peer in PEERS if options.peers and name in ("images", "criteo") else ():
            show(measure_peer(options, peer, name, folder, line), options.json)


def look():
    """Why there is no GPU to measure; "" where there is one."""
    if STAND_IN:
        return ""
    sys.path.insert(0, str(BENCH.parents[1] / "scripts"))
    from testing import gpus

    return gpus.look()[1]


def subjects():
    """(name, cell, kind of data, mode, groups). How soon a batch is ready is asked where the server, not the
    link, says how many there are."""
    for mib in MIB:
        cell = cells.Cell(
            name=f"gpu-{mib}MiB",
            data=f"blocks-{mib << 10}",
            pipeline="gpu-blocks",
            environment={"BLOCK_KIB": str(mib << 10)},
        )
        for mode in ("copy", "pin"):
            yield f"{mib}MiB-{mode}", cell, cell.data, mode, 1
    yield "images", cells.Cell(name="gpu-images", data="pixels", pipeline="gpu-images"), "pixels", "auto", 1
    clicks = next(cell for cell in cells.ALL if cell.name == "criteo")
    yield "criteo", clicks, "clicks", "auto", 1
    yield "criteo-ready", replace(clicks, environment={"GROUP_COUNT": "2"}), "clicks", "auto", 2


def ensure(kind, options):
    if kind == "pixels":
        return pixels(options.data)
    return data.ensure(kind, options.data, options.build)


def pixels(folder):
    """Images as one array of numpy's, whose header is written out here: numpy may be missing."""
    target = folder / "pixels"
    if not target.is_dir():
        target.mkdir(parents=True)
        shape = f"({IMAGES}, {SIDE}, {SIDE}, 3)"
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
        header += " " * (63 - (len(header) + 10) % 64) + "\n"
        with open(target / "pixels.npy", "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
            for _ in range(IMAGES):
                file.write(os.urandom(SIDE * SIDE * 3))
    return target


def read(options, cell, folder, mode, groups):
    """What bench_gpu prints of a cell."""
    program = options.build / "tests" / "bench" / "bench_gpu"
    seconds = str(max(1, round(options.seconds)))
    command = [program, mode, seconds, *(["host"] if groups > 1 else [])]
    with tempfile.TemporaryDirectory(prefix="tundish-bench-") as scratch:
        environment = {
            "TUNDISH_SERVER": str(Path(scratch) / "socket"),
            "TUNDISH_STREAM": "bench",
            "TUNDISH_REPLICA": "0",
        }
        if STAND_IN:
            environment["LD_LIBRARY_PATH"] = str(options.build / "tests" / "cuda")
        tundish = Tundish(options.build)
        with tundish.serve(cell, folder, Path(scratch)):
            with processes.Program(command, environment) as trainer:
                way = way_of(tundish, trainer.process, environment["TUNDISH_SERVER"])
                return line_of(trainer, START_S) | way


def way_of(tundish, trainer, socket):
    """How batches come to the trainer's device, which need not be as it was asked, and why."""
    deadline = time.monotonic() + START_S
    while trainer.poll() is None and time.monotonic() < deadline:
        try:
            for device in tundish.stream(socket)["devices"]:
                return {"mode": device["mode"], "why": device["why"]}
        except (subprocess.CalledProcessError, IndexError):
            pass  # the server has no stream yet
        time.sleep(0.05)
    return {}


def line_of(program, timeout_s):
    text = program.read_line(timeout_s)
    try:
        return json.loads(text)
    except ValueError:
        raise Failure(f"{program.name} said {text!r}{program.last_words()}") from None


def add_ratios(line):
    """To the link's peaks, of the time to readiness to that of the bare copy, of the kernel to copies there."""
    if "error" in line:
        return line
    if "kernel" in line:
        kernel = line["kernel"]
        line = {**line, "kernel_to_copy": round(kernel["bytes_per_s"] / kernel["copy_bytes_per_s"], 3)}
    if "ready_us" in line:
        return {**line, "ready_to_copy": round(line["ready_us"] / line["copy_us"], 3)}
    rate = line["bytes_per_s"]
    peaks = {name: line[f"{name}_bytes_per_s"] for name in ("pinned", "pageable", "memcpy")}
    return {**line, "ratio_to": {name: round(rate / peak, 3) for name, peak in peaks.items()}}


def measure_peer(options, peer, name, folder, own):
    line = {"cell": f"gpu-{name}", "peer": peer}
    if STAND_IN:
        return {**line, "error": "it needs a GPU"}
    try:
        python = os.environ.get("PYTHON")  # where nothing can be installed
        python = python or Environments(options.data / "environments").python_with("gpu", PEERS[peer])
        command = [python, BENCH / "peers_gpu.py", peer, name, folder, str(options.seconds)]
        with processes.Program(command) as program:
            line |= line_of(program, START_S)
    except (Failure, OSError, subprocess.SubprocessError) as failure:
        return {**line, "error": str(failure)}
    if "rows_per_s" in own:
        line["tundish_to_it"] = round(own["rows_per_s"] / line["rows_per_s"], 2)
    return line


def show(line, as_json):
    if STAND_IN:
        line = {**line, "stand_in": True}
    if as_json:
        print(json.dumps(line), flush=True)
        return
    parts = [f"{line['cell']:18} {line['peer']:16}"]
    if "error" in line:
        parts.append(f"did not run: {line['error']}")
    if "mode" in line:
        parts.append(f"{line['mode']} ({line['why']})")
    if "rows_per_s" in line:
        parts.append(f"{line['rows_per_s']:>12,.0f} rows/s")
    if "bytes_per_s" in line:
        parts.append(f"{line['bytes_per_s'] / 1e9:7.2f} GB/s")
    for name, ratio in line.get("ratio_to", {}).items():
        parts.append(f"{ratio:.2f} of {name}")
    if "ready_to_copy" in line:
        parts.append(f"ready after {line['ready_us']:,.0f} us, {line['ready_to_copy']:.2f} of a bare copy")
    if "kernel_to_copy" in line:
        rate = line["kernel"]["bytes_per_s"] / 1e9
        parts.append(f"kernel {rate:,.0f} GB/s, {line['kernel_to_copy']:.2f} of a copy on the device")
    if "next_wait_us" in line:
        times = line["next_wait_us"]
        parts.append(f"next and wait {times['p50']:.1f} us, p99 {times['p99']:.1f}")
    if "tundish_to_it" in line:
        parts.append(f"Tundish to it {line['tundish_to_it']}")
    print("  ".join(parts), flush=True)
