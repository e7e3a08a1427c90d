"""Python environments with the peers, made once: TensorFlow wants others' libraries otherwise."""

import os
import subprocess
import sys

from .measure import Failure

INSTALL_TIMEOUT_S = 1200

# What a peer needs: its environment and the packages in it. Each is optional.
_TENSORFLOW = ("tensorflow", ("tensorflow-cpu==2.21.0",))
_FRAMEWORKS = {"numpy": ("numpy",), "torch": ("numpy", "torch"), "jax": ("numpy", "jax")}
_JPEG = ("simplejpeg", "opencv-python-headless")
_NEEDS = {
    "tfdata": _TENSORFLOW,
    "tfdata_pyarrow": ("tensorflow", ("tensorflow-cpu==2.21.0", "pyarrow")),
    "tfdata_keras": _TENSORFLOW,
    "tfdata_strings": _TENSORFLOW,
    "tfservice": _TENSORFLOW,
    "polars": ("others", ("numpy", "polars")),
    "pyarrow": ("others", ("numpy", "pyarrow")),
    "grain": ("others", ("numpy", "pyarrow", "grain")),
    "torch": ("others", ("numpy", "pyarrow", "torch")),
    "spdl": ("others", ("numpy", "spdl-core")),
    "zmq": ("others", ("numpy", "pyzmq")),
    "scipy": ("others", ("numpy", "scipy")),
    "cv2": ("others", ("numpy", *_JPEG)),
    "copy": ("others", ("numpy",)),
    "plain": ("others", ("numpy", "google-crc32c")),
    "shm_queue": ("others", ("numpy",)),
}
# Of the cell `remote`.
_NEEDS_OF_REMOTE = {
    "s3torchconnector": ("stores", ("s3torchconnector",)),
    "streaming": ("mosaicml", ("mosaicml-streaming",)),
    "webdataset": ("stores", ("s3torchconnector", "webdataset")),
    # The last release that has file systems for URLs, and the TensorFlow that it is for.
    "tfdata": ("tensorflow-io", ("tensorflow-cpu==2.16.2", "tensorflow-io==0.37.1")),
}
# The same for the cells of Python, where a peer stands beside the framework that it delivers to.
_NEEDS_OF_PYTHON = {
    "torch": ("frameworks", ("numpy", "pyarrow", "torch", *_JPEG)),
    "grain": ("frameworks", ("numpy", "pyarrow", "grain", *_JPEG)),
    "spdl": ("frameworks", ("numpy", "pyarrow", "spdl-core", *_JPEG)),
    "tfdata": ("frameworks", ("tensorflow-cpu==2.21.0",)),
    # It wants an older numpy than the others.
    "streaming": ("mosaicml", ("mosaicml-streaming", "pyarrow", *_JPEG)),
}


class Environments:
    def __init__(self, folder):
        self.folder = folder
        self._failures = {}  # by package: tried once a run

    def python_for(self, peer):
        """The interpreter that a peer runs in, with all it needs. Failure says what is missing."""
        return self.python_with(*_NEEDS[peer])

    def python_of(self, framework, peer=None):
        """The same of the trainer in Python and of its peers: with the framework."""
        name, packages = _NEEDS_OF_PYTHON.get(peer, ("frameworks", ()))
        return self.python_with(name, (*packages, *_FRAMEWORKS[framework]))

    def python_of_remote(self, peer):
        """The same of the peers that read a store."""
        return self.python_with(*_NEEDS_OF_REMOTE[peer])

    def python_with(self, name, packages):
        """An interpreter with these packages; where PYTHON names one nothing is installed."""
        if os.environ.get("PYTHON"):
            return os.environ["PYTHON"]
        python = self._environment(name)
        for package in packages:
            self._ensure(name, python, package)
        return python

    def _environment(self, name):
        python = self.folder / name / "bin" / "python"
        marker = self.folder / name / "installed"
        if not marker.exists():
            _run([sys.executable, "-m", "venv", "--clear", self.folder / name], "venv")
            marker.mkdir()
        return python

    def _ensure(self, name, python, package):
        marker = self.folder / name / "installed" / package
        if marker.exists():
            return
        if package not in self._failures:
            print(f"bench: installing {package}", file=sys.stderr, flush=True)
            try:
                _run([python, "-m", "pip", "install", "--quiet", package], package)
                marker.touch()
                return
            except Failure as failure:
                self._failures[package] = failure
        raise self._failures[package]


def _run(command, what):
    try:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"{what} does not install within {INSTALL_TIMEOUT_S} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["without a word"]
        raise Failure(f"{what} does not install: {lines[-1].strip()}")
