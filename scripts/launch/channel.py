"""How launchers of hosts without ssh hand a command over."""

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import shlex
import shutil
import signal
import socket
import time
from pathlib import Path

from .job import Calls, LATE_WORKERS_S, LAUNCH_SECRET
from .processes import ENDING, END_NOW, LaunchError, end, is_running, next_signal, say, start

# The protocol by which launchers of several hosts hand a command over.
SECRET_BYTES_MIN = 16  # at least
CALL_PORT = 29600
GREETING = b"tundish-launch 1"
NONCE_BYTES = PROOF_BYTES = 32
COMMAND_BYTES_MAX = 1 << 18  # at most
CALLERS_MAX = 32  # connections at once that have not proved yet that they know the secret
PROOF_TIMEOUT_S = 10  # the time that each has for its proof
DISCONNECT_S = 10  # after which a connection is broken


class ControlSocket:
    """The port where a host's launcher waits for the command of mpirun's daemon, which the first task's
    launcher sends (call). A caller must prove that it knows the secret, and the proof contains this
    connection's nonce. Other callers are dropped; each costs a few bytes for a few seconds."""

    def __init__(self, calls):
        self.calls = calls
        self.listener = listen(calls.host, calls.port)
        self.callers = []
        self.caller = None  # the caller whose command runs
        self.daemon = None
        self.has_complained = False

    def look(self):
        """Take the next steps. Returns whether a command has been handed over and has ended."""
        if self.daemon is None:
            self.accept()
            for caller in self.callers[:]:
                self.receive(caller)
            return False
        if self.caller is not None and is_disconnected(self.caller):
            self.disconnect()
        return self.caller is None or not is_running(self.daemon)

    def accept(self):
        with contextlib.suppress(OSError):  # no caller waits, or it has gone again
            while True:
                connection, _ = self.listener.accept()
                if len(self.callers) == CALLERS_MAX:
                    self.drop(self.callers[0])
                connection.setblocking(False)
                self.callers.append(Caller(connection))

    def receive(self, caller):
        try:
            words = caller.receive(self.calls)
        except (OSError, ValueError) as error:
            self.drop(caller)
            if isinstance(error, AuthError) and not self.has_complained:
                self.has_complained = True
                say(f"somebody who does not know this job's secret calls at port {self.calls.port}")
            return
        if words and self.daemon is None:
            self.callers.remove(caller)
            self.caller = caller.connection
            self.daemon = start(words, dict(os.environ), signal.SIGTERM)
            self.close()

    def drop(self, caller):
        self.callers.remove(caller)
        caller.connection.close()

    def close(self):
        self.listener.close()
        for caller in self.callers[:]:
            self.drop(caller)

    def disconnect(self):
        if self.caller is not None:
            self.caller.close()
            self.caller = None

    def end(self, grace_s):
        """Let the daemon end by itself as long as the other side lives."""
        if self.daemon is None:
            self.close()
            return
        while self.caller is not None and is_running(self.daemon):
            number = next_signal(timeout_s=0.05)
            if number in ENDING or number == END_NOW or is_disconnected(self.caller):
                break
        end([self.daemon], grace_s)


class AuthError(ValueError):
    """The other side cannot prove that it knows the secret."""


class Caller:
    """A connection to the control socket: it sends a nonce, a proof, and a command of mpirun's daemon."""

    def __init__(self, connection):
        self.connection = connection
        self.nonce = secrets.token_bytes(NONCE_BYTES)
        self.heard = b""
        self.deadline = time.monotonic() + PROOF_TIMEOUT_S
        with contextlib.suppress(OSError):
            detect_disconnect(connection)
            connection.send(GREETING + self.nonce)

    def receive(self, calls):
        """Returns the command once it is complete, else None. ValueError: it will never be."""
        if time.monotonic() >= self.deadline:
            raise ValueError("too slow")
        with contextlib.suppress(BlockingIOError):
            while piece := self.connection.recv(1 << 16):
                self.heard += piece
                self.wanted()
            raise ValueError("gone")
        if len(self.heard) < self.wanted():
            return None
        start_of_text = NONCE_BYTES + PROOF_BYTES + 4
        nonce, text = self.heard[:NONCE_BYTES], self.heard[start_of_text:]
        told = self.heard[NONCE_BYTES:NONCE_BYTES + PROOF_BYTES]
        if not hmac.compare_digest(told, proof(calls, b"command", self.nonce, nonce, text)):
            raise AuthError
        self.connection.sendall(proof(calls, b"heard", nonce, self.nonce))
        return mpirun_daemon_command(json.loads(text))

    def wanted(self):
        """Returns the number of bytes that the caller sends in all, as far as that is known."""
        head = NONCE_BYTES + PROOF_BYTES + 4
        size = int.from_bytes(self.heard[head - 4:head], "big") if len(self.heard) >= head else 0
        if size > COMMAND_BYTES_MAX or len(self.heard) > head + size:
            raise ValueError("too much")
        return head + size


def proof(calls, of_what, *parts):
    """The proof that a launcher knows the secret. All parts but the last have a fixed length."""
    said = b"".join((GREETING, of_what.ljust(8), bytes.fromhex(calls.job), *parts))
    return hmac.new(calls.secret, said, hashlib.sha256).digest()


def mpirun_daemon_command(words):
    """Take the command of this host's mpirun daemon out of a command line for a remote shell."""
    at = next((i for i, word in enumerate(words) if os.path.basename(word) == "orted"), None)
    if at is None:
        raise LaunchError("was called to run something that is not mpirun's daemon (orted)")
    program = words[at] if os.access(words[at], os.X_OK) else shutil.which("orted")
    if program is None:
        raise LaunchError("mpirun's daemon (orted) is not in PATH on this host", 127)
    return [program, *words[at + 1:]]


def listen(host, port):
    """Listen on the address by which others know this host if it is local, else on all addresses."""
    for address in (host, ""):
        try:
            both = address == "" and socket.has_dualstack_ipv6()
            family = socket.AF_INET6 if both else socket.getaddrinfo(address or "0.0.0.0", port)[0][0]
            listener = socket.create_server((address, port), family=family, dualstack_ipv6=both)
            listener.setblocking(False)
            return listener
        except OSError as error:
            reason = error.strerror
    raise LaunchError(f"cannot listen on port {port}, where the first task's launcher calls: "
                      f"{reason} (--call-port chooses another, for all launchers)")


def is_disconnected(connection):
    """Has the other side closed the connection?"""
    try:
        connection.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def detect_disconnect(connection):
    """Notice within seconds that the other side's host is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DISCONNECT_S * 1000)
    for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
        connection.setsockopt(socket.IPPROTO_TCP, option, DISCONNECT_S // 3)


def call(path, host, *words):
    """As mpirun's remote shell: have the launcher of a host run the daemon for as long as this process
    lives. That launcher may still be starting. Returns an exit status."""
    made = json.loads(Path(path).read_text())
    calls = Calls(bytes.fromhex(made["secret"]), made["job"], made["port"])
    text = json.dumps(shlex.split(" ".join(words))).encode()
    late_at, is_late = time.monotonic() + LATE_WORKERS_S, False
    while True:
        with contextlib.suppress(OSError, ValueError):
            with socket.create_connection((host, calls.port), timeout=PROOF_TIMEOUT_S) as connection:
                hand_over(calls, connection, text)
                connection.settimeout(None)
                detect_disconnect(connection)
                connection.recv(1)  # it is over
                return 0
        if not is_late and time.monotonic() >= late_at:
            is_late = True
            say(f"still waits for the launcher of {host} to answer at port {calls.port}, with the "
                "secret of this job")
        time.sleep(0.25)


def hand_over(calls, connection, text):
    """ValueError or OSError: the other side did not accept the command."""
    theirs = receive(connection, len(GREETING) + NONCE_BYTES)[len(GREETING):]
    own = secrets.token_bytes(NONCE_BYTES)
    size = len(text).to_bytes(4, "big")
    connection.sendall(own + proof(calls, b"command", theirs, own, text) + size + text)
    answer = receive(connection, PROOF_BYTES)
    if not hmac.compare_digest(answer, proof(calls, b"heard", own, theirs)):
        raise ValueError("not the launcher of this job")


def receive(connection, count):
    heard = b""
    while len(heard) < count:
        piece = connection.recv(count - len(heard))
        if not piece:
            raise ValueError("the connection ended")
        heard += piece
    return heard


def find_calls(options, job, host=""):
    """How to reach the launchers of other hosts with the same secret; None: this launcher has no secret.
    job: a value that only the launchers of this job know."""
    secret = os.environ.get(LAUNCH_SECRET, "").encode()
    if options.secret_file is not None:
        secret = read_secret(options.secret_file)
    if not secret:
        return None
    if len(secret) < SECRET_BYTES_MIN:
        raise ValueError(f"the launchers' secret has {len(secret)} bytes, fewer than {SECRET_BYTES_MIN}: "
                         "make one with `openssl rand -hex 32`")
    if not 0 < options.call_port < 1 << 16:
        raise ValueError(f"--call-port {options.call_port} is not a port")
    digest = hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()
    return Calls(secret, digest, options.call_port, host)


def read_secret(path):
    try:
        with open(path, "rb") as file:
            mode, secret = os.fstat(file.fileno()).st_mode, file.read(1 << 12).strip()
    except OSError as error:
        raise ValueError(f"--secret-file {path}: {error.strerror}") from error
    if mode & 0o007:
        raise ValueError(f"--secret-file {path} is open to everybody: chmod o= (in Kubernetes, the "
                         "volume's defaultMode: 0440)")
    if not secret:
        raise ValueError(f"--secret-file {path} is empty")
    return secret
