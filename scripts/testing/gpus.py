"""This machine's GPU, as the driver tells of it, and the tools that check programs on it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import frameworks

# The options of each tool of compute-sanitizer. A call that the driver refuses is not an error of memory: the
# library tries what not every driver can, and goes on without it.
TOOLS = {"memcheck": ("--report-api-errors", "no"), "racecheck": (), "initcheck": (), "synccheck": ()}
FRAMEWORKS = ("torch", "jax", "cupy")
_SANITIZERS = ("compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer")

# In a process of its own: a driver may end it, or never answer.
_LOOK = """
import ctypes
try:
    driver = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    raise SystemExit(f"there is no NVIDIA driver: {error}")
count, version = ctypes.c_int(), ctypes.c_int()
status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
if status or not count.value:
    raise SystemExit(f"the NVIDIA driver finds no GPU (status {status})")
name = ctypes.create_string_buffer(100)
driver.cuDeviceGetName(name, 100, 0)
driver.cuDriverGetVersion(ctypes.byref(version))
print(f"{name.value.decode()}, driver for CUDA {version.value // 1000}.{version.value % 1000 // 10}")
"""
_LOOK_S = 60


def look():
    """(what the GPU is, ""), or ("", why there is none)."""
    command = [sys.executable, "-c", _LOOK]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LOOK_S)
    except subprocess.TimeoutExpired:
        return "", "the NVIDIA driver does not answer"
    if done.returncode == 0:
        return done.stdout.strip(), ""
    return "", (done.stderr.strip().splitlines() or ["the NVIDIA driver ended the program"])[-1]


def interpreter():
    """A Python whose frameworks may use the GPU, and ""; or the machine's own, and why.

    Never the one that the suite `python` installs: its PyTorch has stand-ins for the libraries of CUDA."""
    if os.environ.get("PYTHON"):
        return Path(os.environ["PYTHON"]), ""
    if any(importlib.util.find_spec(name) for name in FRAMEWORKS):
        return Path(sys.executable), ""
    return frameworks.machines_own(), f"{sys.executable} has no torch, jax or cupy: name one by PYTHON"


def sanitizer():
    """compute-sanitizer, or None."""
    found = next((path for path in _SANITIZERS if shutil.which(path)), None)
    return found and Path(shutil.which(found))
