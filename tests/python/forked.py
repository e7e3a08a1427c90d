"""Scripts in processes of their own, all forks of one interpreter, which imports once what takes long:

    interpreter = forked.Interpreter("torch")
    script = interpreter.start(text, "word", environment=os.environ)
    said, status = script.stdout.read(), script.wait()

The interpreter has started no thread and has not seen tundish. Each script has the names, words, environment and end
that `python -c` would give it.
"""

import gc
import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import types

import rig


class Interpreter:
    def __init__(self, *modules):
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno()), *modules],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def start(self, text, *words, environment):
        return Script(self._line, text, words, environment)

    def end(self):
        self._line.close()
        self._process.wait(rig.DEADLINE_S)


class Script:
    """A process in a session of its own."""

    def __init__(self, line, text, words, environment):
        output, theirs = os.pipe()
        self.stdout = os.fdopen(output, encoding="utf-8")
        self._line, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(line, [json.dumps([text, words, dict(environment)]).encode()], [other.fileno(), theirs])
        other.close()
        os.close(theirs)
        self._line.settimeout(rig.DEADLINE_S)
        self.pid = int(self._line.recv(100))

    def wait(self):
        """Its status, as subprocess has it."""
        with self._line, self.stdout:
            return os.waitstatus_to_exitcode(int(self._line.recv(100)))


def _next(line):
    """Wait for scripts; each returns here in a process of its own."""
    while True:
        asked, descriptors, _, _ = socket.recv_fds(line, 1 << 20, 2)
        if not asked:
            os._exit(0)
        assert len(os.listdir("/proc/self/task")) == 1, "a thread would be missing in forks"
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    line.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told, output = descriptors
    child = os.fork()
    if child > 0:
        os.close(output)
        with socket.socket(fileno=told) as told:
            told.send(b"%d" % child)
            told.send(b"%d" % os.waitpid(child, 0)[1])
        os._exit(0)
    os.close(told)
    os.dup2(output, 1)
    os.close(output)
    os.setsid()
    return json.loads(asked)


def _as_fresh(words, environment):
    """What an interpreter would find when it begins."""
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = ["-c", *words]
    sys.path[:] = ["", *environment["PYTHONPATH"].split(os.pathsep), *sys.path[1:]]
    tempfile.tempdir = None
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    gc.unfreeze()
    sys.modules["__main__"] = types.ModuleType("__main__")
    return sys.modules["__main__"].__dict__


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _module in sys.argv[2:]:
        importlib.import_module(_module)
    gc.freeze()
    _text, _words, _environment = _next(socket.socket(fileno=int(sys.argv[1])))
    exec(compile(_text, "<string>", "exec"), _as_fresh(_words, _environment))
