"""A server of the build on a socket of its own, for tests of the Python package.

    with rig.serve(rig.pipeline("range: {stop: 100}", "batch: 10")) as server:
        with server.open("train") as reader: ...

TUNDISH_BUILD names the folder of the build; the package is imported from there.
"""

import contextlib
import importlib
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TUNDISH_BUILD", REPOSITORY / "build"))
PACKAGE = str(BUILD / "sdk" / "python")
TUNDISH = str(BUILD / "server" / "tundish")
# Against a hang: no machine is as slow as this.
DEADLINE_S = int(os.environ.get("TUNDISH_TEST_DEADLINE_S", "600"))

# A suite that was started in the background has SIGINT ignored, and its children would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

if PACKAGE not in sys.path:
    sys.path.insert(0, PACKAGE)


def pipeline(*stages, replicas=1, deliver="{epochs: 1}", distribute="", seed=1):
    """The text of a pipeline file with one stream, `train`, of these stages."""
    lines = "".join(f"      - {stage}\n" for stage in stages)
    return (
        f"seed: {seed}\nstreams:\n  train:\n    dataset:\n{lines}"
        f"    distribute: {{replicas: {replicas}{distribute and ', '}{distribute}}}\n"
        f"    deliver: {deliver}\n"
    )


@contextlib.contextmanager
def serve(text, *options, files=None):
    """A server of this pipeline text, in a folder of its own with these files ({name: bytes})."""
    with tempfile.TemporaryDirectory(prefix="tundish-python-") as folder:
        path = Path(folder)
        (path / "pipeline.yaml").write_text(text)
        for name, content in (files or {}).items():
            (path / name).write_bytes(content)
        server = Server(path, options)
        try:
            server.start()
            yield server
        finally:
            server.kill()


class Server:
    """A server process: `path` is its folder, `socket` its address."""

    def __init__(self, path, options):
        self.path = path
        self.options = options
        self.socket = str(path / "server")
        self.environment = dict(
            os.environ,
            TUNDISH_SERVER=self.socket,
            TUNDISH_CACHE=str(path / "cache"),
            PYTHONPATH=os.pathsep.join([PACKAGE, os.environ.get("PYTHONPATH", "")]),
        )
        self.process = None

    def start(self):
        """Start it, also again, and wait until readers may come."""
        read_end, write_end = os.pipe()
        with open(self.path / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [TUNDISH, "serve", "pipeline.yaml", *self.options, "--ready-fd", str(write_end)],
                cwd=self.path,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[write_end],
            )
        os.close(write_end)
        ready, _, _ = select.select([read_end], [], [], DEADLINE_S)
        word = os.read(read_end, 200) if ready else b""
        os.close(read_end)
        if word != b"ready\n":
            raise AssertionError(f"the server did not start:\n{self.log()}")

    def kill(self):
        """As a crash would: nothing of a server stays behind."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=DEADLINE_S)

    def log(self):
        return (self.path / "log").read_text()

    def whole_log(self):
        """Stop it, and read its log: while it lives, its last lines may be on their way."""
        self.process.terminate()
        self.process.wait(timeout=DEADLINE_S)
        return self.log()

    def open(self, stream=None, **options):
        """A reader of this server, whatever the environment says."""
        import tundish

        return tundish.open(stream, server=self.socket, **options)

    def python(self, script, *arguments, check=True, **environment):
        """Run a script in a process of its own, whose readers come to this server."""
        result = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env=dict(self.environment, **environment),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        if check and result.returncode != 0:
            raise AssertionError(f"status {result.returncode}:\n{result.stdout}{result.stderr}")
        return result


class SharesForks:
    """The tests of a class share the interpreter that forks workers, as the loaders of a program do."""

    forks = None

    def setUp(self):
        super().setUp()  # which skips where there is no torch
        from tundish import iterating

        type(self).forks = iterating.Forks.of_program("iterables")

    @classmethod
    def tearDownClass(cls):
        cls.forks = None


def needs(test, module):
    """The module, or the test is skipped and says so."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        test.skipTest(f"needs {module}: {error}")
