"""The cell `gpu`: batches in a GPU's memory, beside what the link gives in the same run.

Blocks of 1, 8 and 64 MiB in both modes; images of uint8 that are normalised to bfloat16, channels first, on the
device; the click log. `bench_gpu` reads each for some seconds, then copies as many bytes as a batch has
as fast as the link does, from pinned memory and from other memory, and with one core's memcpy. Of images and
of the click log it also times the kernel alone, against copies on the device. With --peers training loops in
PyTorch read these and photographs, once with Tundish and once with its peers. With TUNDISH_BENCH_STAND_IN=1
all runs on the stand-in for a driver of tests/cuda, to see that it runs.
"""

import contextlib
import importlib.util
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
IMAGES_CELL = cells.Cell(name="gpu-images", data="pixels", pipeline="gpu-images")
STAND_IN = os.environ.get("TUNDISH_BENCH_STAND_IN") == "1"
WARNING = "on the stand-in for a driver: the figures mean nothing"
PEERS = {  # what is installed for each
    "torch": ("numpy", "torch", "pyarrow", "opencv-python-headless"),
    "spdl": ("numpy", "torch", "spdl-core", "spdl-io"),
    "dali": ("numpy", "torch", "nvidia-dali-cuda130"),
}
# (cell, step of gpu_trainer.py, its readers, processes of torch's DataLoader; None: one a core).
LOOPS = (
    ("images", "none", ("tundish", *PEERS), 2),
    ("images", "5", ("tundish", "torch"), 2),
    ("criteo", "5", ("tundish", "torch"), 2),
    ("images", "model", ("tundish", "torch"), 2),
    ("criteo", "model", ("tundish", "torch"), 2),
    ("jpegs", "model", ("tundish", "torch"), None),
)


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
    for name, step, readers, workers in LOOPS if options.peers else ():
        own = None
        for reader in readers:
            line = measure_loop(options, name, step, reader, workers or os.cpu_count())
            own = own or line
            show(beside(line, own), options.json)


def window_s(options):
    """Shorter than others': a machine with a GPU may be lent by the minute."""
    return 0.4 * options.seconds


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
    yield "images", IMAGES_CELL, "pixels", "auto", 1
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
    seconds = str(max(1, round(window_s(options))))
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
    """How batches come to the trainer's device, which need not be as it was asked, and why; and the share of
    the time for which the link has copied, between two looks."""
    deadline = time.monotonic() + START_S
    first = None
    while trainer.poll() is None and time.monotonic() < deadline:
        try:
            device = tundish.stream(socket)["devices"][0]
        except (subprocess.CalledProcessError, IndexError):
            time.sleep(0.05)  # the server has no stream yet
            continue
        now = time.monotonic()
        if first:
            busy = (device["copy_seconds"] - first[1]) / (now - first[0])
            return {"mode": device["mode"], "why": device["why"], "link_busy": round(busy, 3)}
        first = now, device["copy_seconds"]
        time.sleep(0.5)
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


def measure_loop(options, name, step, reader, workers):
    """A training loop in PyTorch."""
    line = {"cell": f"gpu-{name}-{step}", "peer": reader}
    line |= {"workers": workers} if reader == "torch" else {}
    environment = {
        "PYTHONPATH": os.pathsep.join([str(BENCH), str(options.build / "sdk" / "python")]),
        "WORKERS": str(workers),
        "TUNDISH_STREAM": "bench",
    }
    try:
        python = python_for(reader, options)
        kind = {"images": "pixels", "criteo": "clicks"}.get(name, name)
        folder = ensure(kind, options)
        command = [python, BENCH / "gpu_trainer.py", reader, name, folder, str(window_s(options)), step]
        with contextlib.ExitStack() as stack:
            if reader == "tundish":
                scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tundish-bench-")))
                environment["TUNDISH_SERVER"] = str(scratch / "socket")
                served = Tundish(options.build).serve(loop_cell(name), folder, scratch)
                environment["TUNDISH_BENCH_SERVER"] = str(stack.enter_context(served).pid)
            program = stack.enter_context(processes.Program(command, environment))
            return line | line_of(program, START_S)
    except (Failure, OSError, subprocess.SubprocessError) as failure:
        return {**line, "error": str(failure)}


def python_for(reader, options):
    """This interpreter if it has torch, since nothing may be installed there; else one of its own, or PYTHON."""
    if importlib.util.find_spec("torch") and not os.environ.get("PYTHON"):
        return sys.executable
    packages = PEERS.get(reader, PEERS["torch"])
    return Environments(options.data / "environments").python_with("gpu", packages)


def loop_cell(name):
    if name == "images":
        return IMAGES_CELL
    return next(cell for cell in cells.ALL if cell.name == {"jpegs": "jpeg"}.get(name, name))


def beside(line, own):
    """With Tundish's rows a second to the reader's."""
    if line is own or "error" in line or "error" in own:
        return line
    return {**line, "tundish_to_it": round(own["rows_per_s"] / line["rows_per_s"], 2)}


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
    if "link_bytes" in line:
        parts.append(f"{line['link_bytes'] / 1e6:.2f} MB a batch over the link for {line['batch_bytes'] / 1e6:.2f}")
    if "link_busy" in line:
        parts.append(f"link busy {100 * line['link_busy']:.0f} %")
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
    if "cpu_s_per_gb" in line:
        parts.append(f"{line['cpu_s_per_gb']:.2f} CPU-s a GB")
    if "stall_ms" in line:
        parts.append(f"step {line['step_ms']:.2f} ms, stalled {line['stall_ms']:.2f} ms")
        parts.append(f"idle {100 * line['idle_share']:.0f} %")
    if "tundish_to_it" in line:
        parts.append(f"Tundish to it {line['tundish_to_it']}")
    print("  ".join(parts), flush=True)
