"""One interpreter of a `python` stage, which only a server starts.

Its standard input is a socket. The first message is a job, with the arena's descriptor; each further one is
another job, or asks for some elements of one, and is answered. server/workers/python_worker.c is the other side.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import functools
import gc
import importlib
import inspect
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import time
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, is_typeddict

import numpy as np
from numpy.random import mtrand

from . import worker_sources
from .described import columns, leaves, samples
from .worker_columns import Answer, Arena, Misfit, Request, Spec

_MESSAGE = struct.Struct("QQQQ")
_JOB, _ASK, _ANSWER, _READY, _REFUSED, _TRY, _DROP, _FORK = range(1, 9)
_JOB_SHIFT = 8  # a job's number is above the kind
_WORD = 2**64 - 1
_FRAMES, _ERRORS = 3, 3  # of a traceback, and that led to each other, in a sentence


class _Job:
    """The function, and what is known of its columns. objects: those of jobs that there are, by names and
    arguments."""

    def __init__(self, described: dict[str, Any], objects: dict[tuple[str, str], Any]) -> None:
        self.name: str = described["call"]
        self.rows: str = described["rows"]
        self.timeout: float = described["timeout"]
        self.inputs = [Spec(column) for column in described["inputs"]]
        self.outputs = [Spec(column) for column in described.get("outputs", ())]
        self.is_learned = described.get("learned", "outputs" not in described)
        self.length = 0
        self.data: Any = None
        arguments = described["arguments"] or {}
        self.object_key = ("data" if self.rows == "item" else "call") + self.name, json.dumps(arguments)
        self.object = objects.get(self.object_key)
        if self.object is None:
            self.object = (_data if self.rows == "item" else _callable)(self.name, arguments)
        if self.rows == "item":
            self.data = self.object
            self.length = len(self.data)
            self.call = self._items()
        else:
            self.call = self.object
        self.digest = worker_sources.digest(self.name, getattr(self.call, "tundish_source", None))
        if "outputs" not in described:
            self.learn(_annotated(self.call))
        self.takes_rng = _takes_rng(self.call)
        if self.takes_rng and self.rows == "many":
            raise TypeError(
                f"{self.name} takes rng, and rows: many asks for some rows at once, which would then differ"
                " with their number: write rows: one"
            )

    def learn(self, output: Mapping[str, Any]) -> None:
        """Take columns for those of the output, as the pipeline file would describe them."""
        self.outputs = [
            Spec(
                {
                    "name": name,
                    "dtype": column["dtype"],
                    "kind": 1,
                    "shape": [-1 if size is None else size for size in column.get("shape", ())],
                }
            )
            for name, column in output.items()
        ]
        if self.rows == "item":
            self.call = self._items()

    def described(self) -> bytes:
        """The columns of the output, as server/workers/python_wire.h says; empty: none are known."""
        words, texts = [len(self.outputs)], b""
        for spec in self.outputs:
            name, dtype, shape = spec.name.encode(), spec.dtype.encode(), spec.shape or ()
            if len(shape) > 8:
                raise Misfit(f"column '{spec.name}' has {len(shape)} dimensions, and 8 are the most")
            words += [len(name), len(dtype), len(shape), *shape, *[0] * (8 - len(shape))]
            texts += name + dtype
        return struct.pack(f"={len(words)}q", *words) + texts if self.outputs else b""

    def _items(self) -> Callable[..., Any]:
        """The function that gives the values of an item, in the order of the columns."""
        data = self.data
        count = len(self.outputs)
        is_nested = any("." in spec.name for spec in self.outputs)

        def item(index: int) -> Sequence[Any]:
            made = data[index]
            if type(made) is tuple and len(made) == count and not is_nested:
                return made
            if isinstance(made, Mapping):
                return self.values_of(made)
            if count == 1 and not isinstance(made, tuple):
                return (made,)
            if isinstance(made, list) and len(made) == count:
                return made
            nested = leaves(made)
            if len(nested) == count:
                return self.values_of(nested)
            raise Misfit(f"an item is {type(made).__name__}, and {count} columns are wanted")

        return item

    def values_of(self, made: Any) -> list[Any]:
        """The result of a function, in the order of the columns."""
        if type(made) is not dict and not isinstance(made, Mapping):
            raise Misfit(f"it returned {type(made).__name__}, and a mapping of its columns is wanted")
        try:
            return [made[spec.name] for spec in self.outputs]
        except KeyError:
            nested = leaves(made)
        try:
            return [nested[spec.name] for spec in self.outputs]
        except KeyError as error:
            raise Misfit(f"it returned no {error}") from None


_SCALARS = {bool: "bool", int: "int64", float: "float32", str: "string", bytes: "string"}


def _annotated(call: Callable[..., Any]) -> dict[str, Any]:
    """The columns that a function's return annotation says: a mapping as `output` in the pipeline file, or a
    class of scalars (TypedDict). Empty: it says none."""
    try:
        said = inspect.signature(call, eval_str=True).return_annotation
    except Exception:  # it has no signature, or names what is only there for type checkers
        return {}
    if isinstance(said, Mapping):
        return dict(said)
    try:
        fields = typing.get_type_hints(said) if isinstance(said, type) and is_typeddict(said) else {}
    except NameError:
        return {}
    found: dict[str, Any] = {}
    for name, kind in fields.items():
        is_scalar = isinstance(kind, type) and issubclass(kind, np.generic)
        dtype = np.dtype(kind).name if is_scalar else _SCALARS.get(kind)
        if dtype is None:
            return {}
        found[name] = {"dtype": dtype, "shape": []}
    return found


def _found(name: str) -> Any:
    module_name, _, path = name.partition(":")
    found: Any = importlib.import_module(module_name)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _data(name: str, arguments: dict[str, Any]) -> Any:
    data = _found(name)
    if not hasattr(type(data), "__getitem__") or not hasattr(type(data), "__len__"):
        data = data(**arguments)
    return data


def _callable(name: str, arguments: dict[str, Any]) -> Callable[..., Any]:
    found = _found(name)
    if inspect.isclass(found):
        found = found(**arguments)
    elif arguments:
        found = functools.partial(found, **arguments)
    if not callable(found):
        raise TypeError(f"{name} is {type(found).__name__}, which cannot be called")
    call: Callable[..., Any] = found
    return call


def _takes_rng(call: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(call).parameters
    except ValueError:  # of C, without a signature
        return False


class _Lazy(random.Random):
    """The generator of `random`'s functions, which is seeded when a row first asks for a number: that takes
    microseconds, and most rows ask for none."""

    def __init__(self) -> None:
        super().__init__(0)
        self.waiting: int | None = None

    def begin(self, seed: int) -> None:
        self.waiting = seed
        self.gauss_next = None  # else the row before would decide

    def _settle(self) -> None:
        if self.waiting is not None:
            super().seed(self.waiting)
            self.waiting = None

    def random(self) -> float:
        self._settle()
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        self._settle()
        return super().getrandbits(k)

    def seed(self, a: Any = None, version: int = 2) -> None:
        self.waiting = None
        super().seed(a, version)

    def getstate(self) -> Any:
        self._settle()
        return super().getstate()

    def setstate(self, state: Any) -> None:
        self.waiting = None
        super().setstate(state)

    def install(self) -> None:
        """Make `random`'s functions those of this generator, before anybody imports one by its name."""
        for name in random.__all__:
            if inspect.isroutine(getattr(random, name)) and hasattr(self, name):
                setattr(random, name, getattr(self, name))


class _Philox:
    """numpy's generator Philox, set to a key and a counter. numpy.random's own functions draw from it, too, until
    a program seeds them: then from numpy's generator of old, which gives the numbers of that seed everywhere."""

    def __init__(self) -> None:
        self.bits = np.random.Philox(key=0)
        self._old = np.random.MT19937(0)
        self.is_own = True  # of numpy.random's functions
        self._state: Any = self.bits.state
        self._words = self._found()
        self._seed: Callable[..., None] = np.random.seed
        self._set_state: Callable[..., None] = np.random.set_state
        np.random.seed, np.random.set_state = self.seeded, self.back  # before anybody imports them by their names

    def own(self, is_own: bool) -> None:
        mtrand.set_bit_generator(self.bits if is_own else self._old)
        self.is_own = is_own

    def seeded(self, seed: Any = None) -> None:
        """For numpy.random.seed."""
        self.own(False)
        self._seed(seed)

    def back(self, state: Any) -> None:
        """For numpy.random.set_state: what numpy.random.get_state gave, of either."""
        with contextlib.suppress(KeyError, IndexError, TypeError):  # numpy tells what is wrong with it
            kind = state["bit_generator"] if isinstance(state, Mapping) else state[0]
            self.own(kind == type(self.bits).__name__)
        self._set_state(state)

    def set(self, key: int, counter: int) -> None:
        """Counters count blocks of numbers, in the third word: no row comes into the next one's."""
        if self._words is None:
            self._set_slowly(key, counter)
            return
        counters, keys, position, has_half = self._words
        if position[0] != 4 or counters[0] != 0 or not self.is_own:
            # The row before drew. numpy.random makes two normal numbers and keeps one: this drops it.
            self.own(True)
        counters[0] = counters[1] = counters[3] = keys[1] = 0
        counters[2] = counter
        keys[0] = key
        position[0] = 4
        has_half[0] = 0

    def state(self) -> Any:
        if self._words is None:
            return self.is_own, str(self.bits.state)
        return self.is_own, [list(words) for words in self._words]

    def _set_slowly(self, key: int, counter: int) -> None:
        state = self._state
        state["state"]["key"][:] = key, 0
        state["state"]["counter"][:] = 0, 0, counter, 0
        state["buffer_pos"] = 4
        state["has_uint32"] = 0
        self.bits.state = state
        self.own(True)

    def _found(self) -> Any:
        """The generator's own words: assigning its `state` takes a hundred times as long. None: they are not
        where they are known to be, in this version of numpy."""
        address = self.bits.ctypes.state_address
        pointers = (ctypes.c_uint64 * 2).from_address(address)
        self._words = (
            (ctypes.c_uint64 * 4).from_address(pointers[0]),
            (ctypes.c_uint64 * 2).from_address(pointers[1]),
            (ctypes.c_int * 1).from_address(address + 16),
            (ctypes.c_int * 1).from_address(address + 56),
        )
        found, generator = self._words, np.random.Generator(self.bits)
        self._set_slowly(123, 456)
        wanted = generator.random(3).tolist() + generator.integers(0, 9, 3, np.int32).tolist()
        if (found[0][2], found[1][0]) != (456, 123):
            return None
        self.set(123, 456)
        got = generator.random(3).tolist() + generator.integers(0, 9, 3, np.int32).tolist()
        return found if got == wanted else None


class _Draws:
    """Random numbers that depend on nothing but the stage's seed and the element's number."""

    current: _Draws | None = None  # the interpreter's

    def __init__(self) -> None:
        self._philox = _Philox()
        self.rng = np.random.Generator(self._philox.bits)
        self._lazy = _Lazy()
        self._lazy.install()

    def begin(self, seed: int, ordinal: int) -> None:
        self._philox.set(seed & _WORD, ordinal)
        one = hash((seed, ordinal)) & (2**63 - 1)
        self._lazy.begin(one)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.default_generator.manual_seed(one)

    def state(self) -> Any:
        """It is another one after any draw."""
        torch = sys.modules.get("torch")
        drawn = None if torch is None else torch.default_generator.get_state().numpy().tobytes()
        return self._lazy.waiting, self._philox.state(), drawn


def current_draws() -> _Draws:
    """The interpreter's, which are made with the first that asks."""
    if _Draws.current is None:
        _Draws.current = _Draws()
    return _Draws.current


class _Clock:
    """Ends the interpreter when a call takes longer than allowed, by a signal that says where it is. Setting
    a timer is a system call, so it is done now and then, and the limit is a quarter late at most."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._set_at = -timeout

    def begin(self) -> None:
        now = time.monotonic()
        if now - self._set_at > self._timeout / 4:
            signal.setitimer(signal.ITIMER_REAL, self._timeout * 1.25)
            self._set_at = now

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._set_at = -self._timeout


class _Worker:
    def __init__(self, job: _Job, draws: _Draws, arena: Arena) -> None:
        self.job, self._draws, self._arena = job, draws, arena
        self._clock = _Clock(job.timeout)
        self._progress = arena.array(np.uint64, 2, 0)
        self._progress[1] = os.getpid()

    def answer(self, at: int, answer_at: int) -> int:
        job = self.job
        request = Request(self._arena, at, job.inputs)
        answer = Answer(self._arena, answer_at, job.outputs, request.count)
        if job.rows != "many" or request.one_by_one or not self._many(request, answer):
            answer.cut(0)
            for element in range(request.count):
                self._one(request, answer, element)
        self._clock.stop()
        return answer.finish()

    def described(self, at: int) -> bytes:
        """Make some elements, and describe what they are."""
        job = self.job
        request = Request(self._arena, at, job.inputs)

        def made_of(element: int) -> Any:
            self._progress[0] = element
            self._clock.begin()
            given = self._given(request, element)
            if job.rows == "item" and request.ordinals is not None:
                self._draws.begin(request.seed, request.ordinals[element])
            made = job.data[given] if job.rows == "item" else self._returned(given, request, element)
            if job.rows != "item" and not isinstance(made, Mapping):
                raise Misfit(f"it returned {type(made).__name__}, and a mapping of its columns is wanted")
            return {name: made[name][0] for name in made} if job.rows == "many" else made

        made = samples(made_of, range(request.count))
        self._clock.stop()
        try:
            job.learn(columns(made))
        except ValueError as error:  # whose text is a sentence
            raise Misfit(str(error)) from None
        return job.described()

    def _one(self, request: Request, answer: Answer, element: int) -> None:
        """Make one element, or reject it with a sentence."""
        job = self.job
        if request.barred[element]:
            answer.reject(element, "")  # the server knows why
            return
        self._progress[0] = element
        self._clock.begin()
        try:
            values = self._called(self._given(request, element), request, element)
            for i, spec in enumerate(job.outputs):
                answer.put(element, i, _first(values[i], spec) if job.rows == "many" else values[i])
        except (Exception, SystemExit) as error:
            answer.cut(element)
            item = f" item {int(request.columns[0][element])}:" if job.rows == "item" else ""
            remedy = ""
            if job.is_learned and isinstance(error, Misfit):
                said = "spec" if job.rows == "item" else "output"
                remedy = f"; the columns were learned from a few rows: write {said}, with null for a size that differs"
            name = getattr(job.call, "tundish_name", job.name)
            answer.reject(element, f"{name}:{item} {sentence_of(error)}{remedy}")

    def _given(self, request: Request, element: int) -> Any:
        """The function's arguments for one element."""
        job = self.job
        if job.rows == "item":
            return int(request.columns[0].all[element])
        if job.rows == "many":
            return {s.name: _alone(c[element]) for s, c in zip(job.inputs, request.columns, strict=True)}
        return {s.name: c[element] for s, c in zip(job.inputs, request.columns, strict=True)}

    def _returned(self, given: Any, request: Request, element: int) -> Any:
        job, ordinals = self.job, request.ordinals
        if ordinals is not None:
            self._draws.begin(request.seed, ordinals[element] if job.rows != "many" else 0)
        if job.takes_rng:
            return job.call(given, rng=None if ordinals is None else self._draws.rng)
        return job.call(given)

    def _called(self, given: Any, request: Request, element: int) -> Sequence[Any]:
        """The values of its columns."""
        job = self.job
        made = self._returned(given, request, element)
        if job.rows != "item":
            return job.values_of(made)
        values: Sequence[Any] = made
        return values

    def _many(self, request: Request, answer: Answer) -> bool:
        """Make all elements at once. False: some of them cannot be made."""
        job = self.job
        self._clock.begin()
        try:
            rows = {
                s.name: c.all if c.all is not None else [c[i] for i in range(request.count)]
                for s, c in zip(job.inputs, request.columns, strict=True)
            }
            for i, values in enumerate(self._called(rows, request, 0)):
                if answer.put_all(i, values):
                    continue
                if len(values) != request.count:
                    return False
                for element in range(request.count):
                    answer.put(element, i, values[element])
        except (Exception, SystemExit):
            return False
        return True


def _alone(value: Any) -> Any:
    """An element as the only one of `rows: many`."""
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)[None]
    return [value]


def _first(values: Any, spec: Spec) -> Any:
    if len(values) != 1:
        raise Misfit(f"it returned {len(values)} rows of '{spec.name}' for one")
    return values[0]


def sentence_of(error: BaseException) -> str:
    """The texts of the error and of those that led to it, each with the last frames of the user's own code, on one
    line."""
    told, led = [_sentence_of(error)], _led_to(error)
    while led is not None and len(told) < _ERRORS:
        told.append(_sentence_of(led))
        led = _led_to(led)
    return ", after ".join(told)


def _led_to(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _sentence_of(error: BaseException) -> str:
    own = os.path.dirname(__file__)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if os.path.dirname(f.filename) != own]
    frames = [f for f in frames if "importlib" not in f.filename and "runpy" not in f.filename]
    places = [f"{os.path.basename(f.filename)}:{f.lineno} in {f.name}" for f in frames[-_FRAMES:]]
    text = _text_of(error)
    if not isinstance(error, Misfit):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        places = [f"{os.path.basename(error.filename)}:{error.lineno}"]
    text = " | ".join(text.replace("\0", "\\0").splitlines())  # in C a text ends at a NUL
    return f"{text} ({', from '.join(reversed(places))})" if places else text


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # of a class whose __str__ fails
        return ""


def _prepare(described: dict[str, Any]) -> None:
    """Modules are looked for beside the pipeline file first."""
    if sys.path[0] != described["folder"]:
        sys.path.insert(0, described["folder"])


def use_one_thread() -> None:
    """For the libraries that the module has imported."""
    torch, cv2 = sys.modules.get("torch"), sys.modules.get("cv2")
    with contextlib.suppress(AttributeError, RuntimeError):
        if torch is not None:
            torch.set_num_threads(1)
        if cv2 is not None:
            cv2.setNumThreads(0)


def _messages(server: socket.socket) -> Iterator[tuple[int, int, int, int]]:
    while message := server.recv(_MESSAGE.size):
        yield _MESSAGE.unpack(message)


def _refusal(arena: Arena, at: int, error: BaseException) -> bytes:
    sentence = sentence_of(error).encode("utf-8", "replace")[:16384]
    arena.reach(at + len(sentence))
    arena.memory[at : at + len(sentence)] = sentence
    return _MESSAGE.pack(_REFUSED, at, len(sentence), 0)


def _tried(worker: _Worker, arena: Arena, begin: int, answer_at: int) -> bytes:
    """Answer what the output is."""
    try:
        said = worker.described(begin)
    except (Exception, SystemExit) as error:
        return _refusal(arena, answer_at, error)
    arena.reach(answer_at + len(said))
    arena.memory[answer_at : answer_at + len(said)] = said
    return _MESSAGE.pack(_ANSWER, answer_at, len(said), 0)


class _Interpreter:
    """The jobs of this process, by their numbers."""

    def __init__(self, server: socket.socket, arena: Arena, objects: dict[tuple[str, str], Any] | None = None) -> None:
        self._server, self._arena = server, arena
        self._workers: dict[int, _Worker] = {}
        self._forked = objects  # of the one that this is a fork of
        self._unready = list((objects or {}).values())
        self.is_warm = False  # it makes nothing itself, and is forked

    def objects(self) -> dict[tuple[str, str], Any]:
        """Those of the jobs that there are."""
        own = {worker.job.object_key: worker.job.object for worker in self._workers.values()}
        return {**(self._forked or {}), **own}

    def begin(self, number: int, at: int, size: int) -> None:
        """Take a job, and say what is known of it, or why it cannot be done."""
        arena = self._arena
        described = json.loads(arena.memory[at : at + size])
        _prepare(described)
        try:
            draws = current_draws()
            self.is_warm = _Forks.here = described["warm"] and self._forked is None
            for each in self._unready:
                if hasattr(each, "tundish_forked"):
                    each.tundish_forked()
            self._unready = []
            job = _Job(described, self.objects())
            self._workers[number] = _Worker(job, draws, arena)
            use_one_thread()
            threads = len(os.listdir("/proc/self/task")) - 1
            if self.is_warm and threads > 0:
                raise Misfit(f"{job.name} has started {threads} threads, which forks would not have: write warm: start")
        except (Exception, SystemExit) as error:
            self._server.send(_refusal(arena, at, error))
            return
        said = b"" if "outputs" in described else job.described()
        arena.reach(at + len(said))
        arena.memory[at : at + len(said)] = said
        self._server.send(_MESSAGE.pack(_READY, job.digest, len(said), job.length))

    def answer(self, kind: int, at: int, size: int, answer_at: int) -> None:
        number, kind = kind >> _JOB_SHIFT, kind & (1 << _JOB_SHIFT) - 1
        self._arena.reach(at + size)
        if kind == _JOB:
            self.begin(number, at, size)
        elif kind == _DROP:
            self._workers.pop(number, None)
        elif kind == _TRY:
            self._server.send(_tried(self._workers[number], self._arena, at, answer_at))
        else:
            made = self._workers[number].answer(at, answer_at)
            self._server.send(_MESSAGE.pack(_ANSWER, answer_at, made, 0))


def _keep_freed_memory() -> None:
    """Have malloc keep up to 64 MiB: arrays of each row come and go, and fresh pages cost a fifth of an image's time."""
    with contextlib.suppress(AttributeError):  # a C library without it
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD
        mallopt(-1, 64 << 20)  # M_TRIM_THRESHOLD


class _Forks:
    """Those of a warm interpreter: each has a line, on which somebody waits for its status, or that is closed
    to end it."""

    here = False  # this process is forked

    def __init__(self, server: socket.socket, interpreter: _Interpreter) -> None:
        self._server, self._interpreter = server, interpreter
        self._poll = select.poll()
        self._poll.register(server, select.POLLIN)
        self._forks: dict[int, tuple[int, socket.socket]] = {}  # by a descriptor of the process: its number
        self._lines: dict[int, int] = {}  # those descriptors by the lines'
        gc.collect()
        gc.freeze()  # a collection would write to what is shared

    def run(self) -> socket.socket | None:
        """The socket of a fork, in that; None at the end."""
        while True:
            for number, _ in self._poll.poll():
                if number in self._forks:
                    self._end(number)
                elif number in self._lines:
                    with contextlib.suppress(ProcessLookupError):
                        signal.pidfd_send_signal(self._lines[number], signal.SIGKILL)
                    self._poll.unregister(number)
                elif number == self._server.fileno():
                    message, descriptors, _, _ = socket.recv_fds(self._server, _MESSAGE.size, 3)
                    if not message:
                        return None
                    if not descriptors:
                        self._interpreter.answer(*_MESSAGE.unpack(message))
                    elif (forked := self._fork(*descriptors)) is not None:
                        return forked

    def _fork(self, given: int, errors: int, line: int) -> socket.socket | None:
        parent = os.getpid()
        process = os.fork()
        if process == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            if os.getppid() != parent:
                os._exit(1)
            for number in [line, self._server.detach(), *self._forks, *self._lines]:
                os.close(number)
            for standard in (1, 2):
                os.dup2(errors, standard)
            os.close(errors)
            return socket.socket(fileno=given)
        os.close(given)
        os.close(errors)
        watched = os.pidfd_open(process)
        self._forks[watched] = process, socket.socket(fileno=line)
        self._lines[line] = watched
        self._poll.register(watched, select.POLLIN)
        self._poll.register(line, 0)  # its other end's close
        return None

    def _end(self, watched: int) -> None:
        process, line = self._forks.pop(watched)
        _, status = os.waitpid(process, 0)
        with contextlib.suppress(OSError):
            line.send(struct.pack("i", status), socket.MSG_NOSIGNAL)
        for number in (watched, line.fileno()):
            with contextlib.suppress(KeyError):
                self._poll.unregister(number)
        del self._lines[line.fileno()]
        line.close()
        os.close(watched)


def is_forked() -> bool:
    """Does this process make nothing itself, but its forks do? They call `tundish_forked` of the user's object."""
    return _Forks.here


def _introduced(server: socket.socket, objects: dict[tuple[str, str], Any] | None) -> _Interpreter | None:
    """One that has the job of the first message, which comes with the arena."""
    message, descriptors, _, _ = socket.recv_fds(server, _MESSAGE.size, 1)
    if not descriptors:
        return None
    os.set_inheritable(descriptors[0], False)
    interpreter = _Interpreter(server, Arena(descriptors[0]), objects)
    interpreter.answer(*_MESSAGE.unpack(message))
    return interpreter


def main() -> None:
    server: socket.socket | None = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the function prints goes to the server's log
    # A call that hangs, or crashes, says where.
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, chain=True)
    _keep_freed_memory()
    worker_sources.install()
    assert server is not None
    interpreter = _introduced(server, None)
    if interpreter is not None and interpreter.is_warm:
        server = _Forks(server, interpreter).run()
        if server is None:
            return
        interpreter = _introduced(server, interpreter.objects())
    if interpreter is not None:
        for words in _messages(server):
            interpreter.answer(*words)
