"""Python environments with the peers, made once: TensorFlow wants others' libraries otherwise."""

import subprocess
import sys

TENSORFLOW = ("tensorflow-cpu==2.21.0",)
OTHERS = (
    "numpy", "torch", "polars", "pyarrow", "grain", "pyzmq", "google-crc32c",
)  # fmt: skip


class Environments:
    def __init__(self, folder):
        self.folder = folder

    def python_for(self, peer):
        if peer.startswith("tfdata"):
            return self._python("tensorflow", TENSORFLOW)
        return self._python("others", OTHERS)

    def _python(self, name, packages):
        environment = self.folder / name
        python = environment / "bin" / "python"
        ready = environment / "ready"
        if not ready.exists():
            print(f"bench: installing {' '.join(packages)}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
            ready.touch()
        return python
