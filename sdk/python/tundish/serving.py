"""A server of one's own, for notebooks and tests, and a look at a pipeline without one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import weakref

from . import private_folder, programs, progress
from .errors import ArgumentError, DataError, MisuseError, ServerGone, Timeout
from .reader import open as open_reader, readers_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from .parts import Column
    from .programs import PipelineFile
    from .reader import Reader

__all__ = ["Server", "peek", "plan", "serve"]

GRACE_S = 2.0  # for a server to stop in good order, which takes longer only if trainers do not read
HASTE_S = 0.2  # after Ctrl-C
SOCKET_BYTES = 107  # the longest path of a Unix socket
WATCH_MS = 100


def serve(
    file: PipelineFile | None = None,
    *,
    text: str | None = None,
    replicas: int | None = None,
    threads: int | None = None,
    socket: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Server:
    """Start a server of a pipeline file on a private socket, and wait until trainers may come.

        with tundish.serve("clicks.yaml", replicas=2) as server:
            for batch in server.open("train", replica=0):
                ...

    text: the text of a pipeline, instead of a file. Its relative paths begin at the current folder.
    replicas, threads: as in `tundish serve`; so are other options, with underscores: `seed=1`,
        `stream="train"`, `analyze=True`, `cache="/data/cache"`.
    socket: where to listen; the default is in a new folder that only this user may enter.

    The server ends with the `with` block, with stop(), with the Server object once the readers that its
    open() returned are closed or gone, and with this process, even if that is killed. Its readers in this
    process are closed then; arrays stay valid. Readers in other processes get tundish.Stopped, or, when
    Ctrl-C ends the block, which waits for nobody, tundish.ServerGone.

    Warnings of the server, and what Python functions in the pipeline print, appear on this process' standard
    error; Server.log has all that it logs.

    Raises tundish.PipelineError with file, line and remedy if the file is wrong, tundish.ArgumentError
    for a wrong option, tundish.SystemFault if the machine refuses or the program is missing,
    tundish.LayoutError if its version is another than this package's.
    """
    options = {"replicas": replicas, "threads": threads, **options}
    return Server(file, text, None if socket is None else os.fspath(socket), options)


class Server:
    """A server that this process has started: see tundish.serve.

    socket: its address, which other processes need (as TUNDISH_SERVER).
    pid: its process.
    """

    socket: str
    pid: int
    _uses: Any = None  # it lives until the server has ended

    def __init__(
        self, file: PipelineFile | None, text: str | None, socket: str | None, options: dict[str, Any]
    ) -> None:
        program = programs.find()
        self._owner = os.getpid()
        with tempfile.TemporaryFile() as log:  # has no name, so nothing is left of it
            self._log = os.dup(log.fileno())
        weakref.finalize(self, os.close, self._log)
        folder, self._lock = short_folder()
        self._folder = weakref.finalize(self, _remove, folder, self._lock, self._owner)
        self.socket = os.path.join(folder, "server") if socket is None else socket
        self._start(program, programs.pipeline(file, text, folder, options))

    def _start(self, program: str, words: list[str]) -> None:
        told, tells = os.pipe()
        own = ["--socket", self.socket, "--end-with", str(self._owner), "--ready-fd", str(tells)]
        environment = programs.environment()
        passed = [tells, *programs.show(environment)]
        try:
            try:
                self._process = subprocess.Popen(
                    [program, "serve", *own, *words],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    pass_fds=[*passed, self._lock],
                    process_group=0,  # an interrupt from the keyboard is for Python alone
                )
                self._end = weakref.finalize(self, _end, self._process, self._owner, self.socket)
            finally:
                for descriptor in passed:
                    os.close(descriptor)
            self._await_ready(told)
        except BaseException:
            self._close()
            raise
        finally:
            os.close(told)
        self.pid = self._process.pid

    def _await_ready(self, told: int) -> None:
        """It writes a line when trainers may attach, or ends."""
        waiting = progress.Waiting("tundish: starting a server")
        try:
            while not select.select([told], [], [], WATCH_MS / 1000)[0] and self._process.poll() is None:
                waiting.look(lambda: self.log)
        finally:
            waiting.close()
        if not os.read(told, 100):
            raise programs.failed(self._process.wait(), self.log)

    def open(self, stream: str | None = None, **options: Any) -> Reader:
        """A reader of a stream of this server: tundish.open with this address, and with replica 0 if none is named."""
        # A forked child cannot ask: to it the server is not a child.
        if os.getpid() == self._owner and self._process.poll() is not None:
            raise ServerGone(f"the server of {self.socket} has ended: start it again\n{self.log}")
        if options.get("replica") is None:  # that of the environment is of another server
            options["replica"] = 0
        reader = open_reader(stream, server=self.socket, **options)
        reader._keep(self)
        return reader

    def _open_alone(self, stream: str | None = None, **options: Any) -> Reader:
        """The only reader: others would wait for nobody, and it for them, once their memory is full."""
        reader = self.open(stream, **options)
        count = reader.info.replica_count
        if count == 1:
            return reader
        name = reader.info.stream
        self.stop()
        raise ArgumentError(
            f"stream {name!r} deals its rows to {count} replicas, and this reader with a server of its own is one of "
            "them: give the stream `distribute: {replicas: 1}` to read all rows here; or start the replicas by "
            f"`tundish-launch FILE --replicas {count} -- python TRAINER`; or read each in a thread of this process, "
            "by `server = tundish.serve(FILE)` and `server.open(replica=N)`; tundish.data.save() writes such a FILE"
        )

    @property
    def log(self) -> str:
        """All that the server has logged, also after its end."""
        return os.pread(self._log, os.fstat(self._log).st_size, 0).decode("utf-8", "replace")

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the server has ended by itself or another process has stopped it. Returns its
        exit status, or the negative number of the signal. Raises tundish.Timeout after `timeout`
        seconds."""
        self._check_owner()
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Timeout(f"the server still runs after {timeout} s") from None

    def stop(self) -> int:
        """End the server, and return as wait(). A second call does nothing more."""
        self._check_owner()
        self._close()
        return self._process.returncode

    def _close(self) -> None:
        if hasattr(self, "_end"):
            self._end()
        self._folder()

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise MisuseError(
                f"this server belongs to process {self._owner}, which ends it; here only open() and "
                "socket are of use"
            )

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if os.getpid() != self._owner:  # a forked child that leaves the block
            return
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            _end(self._process, self._owner, self.socket, HASTE_S)
        self.stop()

    def __reduce__(self) -> Any:
        raise TypeError("a server belongs to its process: send server.socket instead")

    def __repr__(self) -> str:
        status = self._process.returncode
        how = "runs" if status is None else f"has ended with {status}"
        return f"<tundish.Server {self.socket}, process {self.pid}, {how}>"


# What ends a server is kept apart from the object, so that it can happen when that is gone; and it does
# nothing in a forked child, which has a copy of it.


def _end(
    process: subprocess.Popen[bytes], owner: int, socket: str, patience_s: float = GRACE_S
) -> None:
    if os.getpid() != owner:
        return
    try:
        # A server that stops waits for trainers with a full lane, and this process does not read now.
        for reader in readers_of(socket):
            with contextlib.suppress(MisuseError):  # another thread uses it
                reader.close()
        for _ in range(2):  # a second signal ends it at once
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience_s)
    finally:
        process.kill()  # does nothing if it has ended
        process.wait()


def _remove(folder: str, lock: int, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def short_folder() -> tuple[str, int]:
    """One with a path that leaves room for a socket's name."""
    folder, lock = private_folder.make()
    if len(os.fsencode(folder)) + len("/server") <= SOCKET_BYTES:
        return folder, lock
    os.rmdir(folder)
    os.close(lock)
    return private_folder.make("/tmp")


def plan(file: PipelineFile | None = None, *, text: str | None = None, **options: Any) -> dict[str, Any]:
    """The plan of a stream, and its needs: stages, sharding, columns, memory, resume.

    Options are those of `tundish plan`, with underscores: stream, replicas, num_workers, worker.
    Returns what `tundish plan --json` prints. Raises tundish.PipelineError if the file is wrong, and
    tundish.SystemFault if files or memory are missing.
    """
    found: dict[str, Any] = json.loads(_run("plan", file, text, {"json": True, **options}))
    return found


def outline(text: str, root: str) -> dict[str, Any]:
    """The last stage of a pipeline in a plan, and its inputs. Files that cannot be read do not matter."""
    with tempfile.TemporaryDirectory(prefix="tundish-") as folder:
        words = programs.pipeline(None, text, folder, {"json": True, "root": root})
        done = subprocess.run(
            [programs.find(), "plan", *words],
            env=programs.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    if not done.stdout.startswith(b"{"):
        raise programs.failed(done.returncode, done.stderr.decode("utf-8", "replace"))
    found: dict[str, Any] = json.loads(done.stdout)["root"]
    return found


def peek(
    file: PipelineFile | None = None,
    steps: int = 3,
    *,
    text: str | None = None,
    stream: str | None = None,
    replica: int = 0,
    **options: Any,
) -> list[dict[str, Column]]:
    """The first batches of a stream, made without a server.

        for batch in tundish.peek("clicks.yaml", steps=2):
            print(batch["label"])

    Other options are those of `tundish peek`: seed, epochs, num_workers, analyze, root, twice. Returns at most
    `steps` batches of one replica (of worker 0), each a dict of column names to arrays, Strings, Ragged
    or Sparse, which are the caller's own. Raises tundish.PipelineError if the file is wrong, and
    tundish.DataError if the data is.
    """
    options = {"steps": steps, "stream": stream, "replica": replica, "worker": 0, **options}
    return _batches(memoryview(_run("peek", file, text, {"raw": True, **options})))


def analyze(file: PipelineFile | None = None, *, text: str | None = None, **options: Any) -> None:
    """Learn the statistics that a pipeline's stages need.

    Options are those of `tundish analyze`: stream, root, cache, analysis, threads, memory. Raises
    tundish.PipelineError if the file is wrong, and tundish.DataError if the data is.
    """
    _run("analyze", file, text, {"quiet": True, **options})


def _run(command: str, file: PipelineFile | None, text: str | None, options: dict[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="tundish-") as folder:
        return programs.run(command, *programs.pipeline(file, text, folder, options))


def _batches(printed: memoryview) -> list[dict[str, Column]]:
    """Lines of JSON; the parts of a batch's columns follow its line."""
    batches = []
    while printed:
        size = _line_bytes(printed)
        line, printed = json.loads(bytes(printed[:size])), printed[size:]
        if "columns" in line:
            columns = {}
            for name, column in line["columns"].items():
                columns[name], printed = _take_column(column, printed)
            batches.append(columns)
        elif isinstance(line.get("end"), dict):
            raise _stopped(line["end"])
    return batches


def _line_bytes(printed: memoryview) -> int:
    """The first line's."""
    ahead = 1 << 12
    while (size := bytes(printed[:ahead]).find(b"\n") + 1) == 0:
        ahead *= 2
    return size


def _take_column(column: dict[str, Any], printed: memoryview) -> tuple[Column, memoryview]:
    from . import parts

    taken = []
    for size in column["parts"]:
        # A copy, because the part may begin at any address and the output holds all of them.
        taken.append(bytearray(printed[:size]))
        printed = printed[size:]
    return parts.column(column["dtype"], column["kind"], column["shape"], taken), printed


def _stopped(end: dict[str, Any]) -> Exception:
    """The exception for a last line that is not an end in good order."""
    if "refused" in end:
        return programs.failed(programs.REFUSED, "\n".join(end["errors"]))
    return DataError(end["message"])
