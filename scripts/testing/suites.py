"""The suites of scripts/test: each a function that runs it and returns its Tally."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path

from . import frameworks, gpus, limits
from .tally import Tally, failure

REPOSITORY = Path(__file__).resolve().parents[2]

# Fresh memory is full of the digit 7, always: Meson would draw another filler for each run, and a
# number read past the end of its text would be noticed only by the runs that drew a digit.
_FILLER = ord("7")
_ENVIRONMENT = {
    "MALLOC_PERTURB_": str(0xFF ^ _FILLER),  # glibc fills with the complement, and what is freed with it
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:detect_stack_use_after_return=1:"
    f"malloc_fill_byte={_FILLER}:max_malloc_fill_size=1048576",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
# A socket's path has 107 bytes, of which a long name of the folder for temporary files leaves too few.
if len(tempfile.gettempdir()) > 40:
    _ENVIRONMENT["TMPDIR"] = "/tmp"
_CHECKS = ("check-layers", "check-headers", "check-names", "check-calls", "check-format", "check-unfinished",
           "check-english")
_SKIPPED = 77  # as Meson has it
_FILE_S = 600  # for a file of tests in Python; the longest takes two minutes
_SUITE_S = 3300  # for those that run in one process, beside others
_IN_PYTHON = ("-X", "faulthandler", "-m")  # see limits.py; what tests start has no such handler
_MODULES = "import sys, unittest; sys.path.insert(0, sys.argv.pop(1)); unittest.main(None, verbosity=2)"
# For tests whose processes and threads wait for each other, and leave the cores to those of other tests.
_MORE_AT_ONCE = ("--num-processes", str(2 * len(os.sched_getaffinity(0))))
# These files of tests in Python begin first, in this order: they take much longer than their length suggests.
_LONGEST = ("test_in_python.py", "test_public.py", "test_trainers.py", "test_torch_dataset.py", "test_journeys.py",
            "test_torch_iterable.py", "test_data_content.py", "test_recorder.py")
# The meaning of a program as a pipeline file, and recorded cases as programs: Python alone writes the file, and
# `tundish peek` has its values.
_WRITING = ("test_data_meaning.py", "test_data_specs.py", "test_data_content.py", "test_data_recorded.py")
# Here the interpreters of workers do most of the work; they use of the extension what readers do.
_OF_WORKERS = ("test_later_epochs.py", "test_python_stage.py", "test_warm.py")
_GPU_FILES = ("test_device.py", "test_examples.py", "test_readme.py")  # of tests/python
_GPU_STEP_S = 150


def unit():
    """each unit of the server and the SDK by itself"""
    return meson("release", "unit")


def abi():
    """the layout of what two processes share, and the exported names"""
    return meson("release", "abi")


def system():
    """real servers and trainers, killed and restarted"""
    return meson("release", "system", *_MORE_AT_ONCE)


def asan():
    """the unit tests and the recorded cases under AddressSanitizer and UndefinedBehaviorSanitizer"""
    tally = meson("asan", "unit", *_MORE_AT_ONCE, wrapper=_without_address_randomisation())
    tally.add(conformance("asan"))
    return tally


def tsan():
    """the unit tests under ThreadSanitizer"""
    return meson("tsan", "unit", *_MORE_AT_ONCE, wrapper=_without_address_randomisation())


def fuzz():
    """the parsers, fed with noise: FUZZ_SECONDS (5) each, from a fixed seed"""
    return meson("fuzz", "fuzz", wrapper=_without_address_randomisation())


def conformance(flavour="release"):
    """the recorded cases: what TensorFlow delivered"""
    broken = build(flavour, *_NEEDED.get(flavour, ()))
    if broken:
        return broken
    wrapper = _without_address_randomisation() if flavour == "asan" else ()
    command = [*wrapper, "tests/conformance/run", "tests/conformance/cases"]
    lines = _echoed(command, TUNDISH_BUILD=str(_folder(flavour)))
    counts = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", lines[-1] if lines else "")
    if not counts:
        return failure("conformance: the runner did not come to its end")
    notes = [f"conformance: {line}" for line in lines if re.match(r"\d+ skipped: ", line)]
    notes += [f"conformance: {line.split()[1]}" for line in lines if line.startswith("failed ")]
    return Tally(*map(int, counts.groups()), notes)


def tools():
    """the tools around the server: the conformance runner, the launcher, the checks"""
    total = Tally()
    for start, top in (
        ("tests/conformance/runner_tests", "tests/conformance"),
        ("tests/launch", "tests/launch"),
        ("tests/scripts", "tests/scripts"),
    ):
        total.add(_each_file(start, sys.executable, REPOSITORY / start, top=REPOSITORY / top))
    return total


def python():
    """the package for Python and its frameworks: PYTHON, an interpreter that has them, or its own"""
    broken = build("release")
    if broken:
        return broken
    folder, tests = _folder("release"), REPOSITORY / "tests" / "python"
    interpreter, why_not = frameworks.interpreter(folder / "python-venv", tests / "requirements.txt")
    total = Tally()
    if why_not:
        total.add(Tally(skipped=1, notes=[f"python: no framework could be installed: {why_not}"]))
    with ThreadPool(1) as aside:
        typed = aside.apply_async(_typed, (interpreter, folder))
        total.add(_python_tests("release", interpreter))
        total.add(typed.get())
    total.add(_python_asan())
    total.add(_python_debug())
    return total


def port():
    """tundish port on programs with tf.data, against TensorFlow: PYTHON, or an interpreter of its own"""
    broken = build("release")
    if broken:
        return broken
    folder = _folder("release")
    requirements = REPOSITORY / "tests" / "python" / "requirements.txt"
    interpreter, why_not = frameworks.interpreter(folder / "python-venv", requirements)
    if why_not:
        return Tally(skipped=1, notes=[f"port: TensorFlow could not be installed: {why_not}"])
    # Each process imports TensorFlow and makes the data once.
    processes = len(os.sched_getaffinity(0))
    return _python_tests("release", interpreter, tests=REPOSITORY / "tests" / "port", processes=processes)


def gpu():
    """batches in a GPU's memory: on this machine's own, under compute-sanitizer where it is installed"""
    device, why_not = gpus.look()
    if why_not:
        return Tally(skipped=1, notes=[f"gpu skipped: {why_not}"])
    print(f"on {device}", flush=True)
    broken = build("release")
    if broken:
        return broken
    interpreter, why_not = gpus.interpreter()
    total = Tally()
    if why_not:
        total.add(Tally(skipped=1, notes=[f"gpu: no framework takes the batches: {why_not}"]))
    sanitizer = gpus.sanitizer()
    if not sanitizer:
        total.add(Tally(skipped=1, notes=["gpu: compute-sanitizer is not installed"]))
    steps = [_gpu_library, _gpu_streams, *(partial(_gpu_frameworks, interpreter, file) for file in _GPU_FILES)]
    steps += [partial(_gpu_sanitized, sanitizer, tool) for tool in gpus.TOOLS if sanitizer]
    with ThreadPool(max(1, len(os.sched_getaffinity(0)) // 2)) as pool:
        for tally in pool.imap_unordered(lambda step: step(), steps):
            total.add(tally)
    return total


def _gpu_library():
    """The library for C."""
    return _gpu_step("tests/cuda/test_cuda", [str(_folder("release") / "tests" / "cuda" / "test_cuda")])


def _gpu_sanitized(sanitizer, tool):
    test = _folder("release") / "tests" / "cuda" / "test_cuda"
    command = [str(sanitizer), "--tool", tool, *gpus.TOOLS[tool], "--error-exitcode", "1", str(test)]
    return _gpu_step(f"{tool} of tests/cuda/test_cuda", command)


def _gpu_streams():
    """All that is delivered is equal on the host and on the device."""
    folder = _folder("release")
    programs = {
        "TUNDISH_PROGRAM": folder / "server" / "tundish",
        "TUNDISH_READER": folder / "tests" / "system" / "reader",
        "TUNDISH_CUDA_EQUALS": folder / "tests" / "cuda" / "cuda_equals",
        "TUNDISH_CUDA_STEPS": folder / "tests" / "cuda" / "cuda_steps",
        "TUNDISH_CUDA_LIBRARY": folder / "sdk" / "cuda" / "libtundish_cuda.so",
        "TUNDISH_CUDA_PREFETCH": folder / "sdk" / "examples" / "cuda_prefetch",
    }
    command = [sys.executable, "-B", *_IN_PYTHON, "unittest", "discover", "-v", "-s", "tests/system"]
    command += ["-p", "test_cuda.py"]
    return _gpu_step("tests/system/test_cuda.py", command, **{name: str(path) for name, path in programs.items()})


def _gpu_frameworks(interpreter, file):
    tests = REPOSITORY / "tests" / "python"
    command = [str(interpreter), *_IN_PYTHON, "unittest", "discover", "-v", "-s", str(tests), "-p", file]
    # Several processes share the device: JAX would take most of its memory at once.
    return _gpu_step(f"tests/python/{file}", command, XLA_PYTHON_CLIENT_PREALLOCATE="false", **_package("release"))


def _gpu_step(name, command, **environment):
    """One of the programs of `gpu`, which run side by side. It is shown when it ends."""
    begun = time.monotonic()
    status, lines = _ran(command, _GPU_STEP_S, TUNDISH_TEST_GPU="1", **environment)
    took = time.monotonic() - begun
    print(f"-- {name}, {took:.0f} s", *lines, sep="\n", flush=True)
    if "unittest" in command:
        tally = _unittest_tally(f"gpu: {name}", lines)
    else:
        tally = failure(f"gpu: {name}: status {status}") if status else Tally(passed=1)
    tally.parts.append((took, f"gpu {name}"))
    return tally


def manual():
    """the manual for browsers, made without a warning"""
    broken = build("release")
    if broken:
        return broken
    status = subprocess.call(["scripts/manual"], cwd=REPOSITORY, env={**os.environ, "BUILD": str(_folder("release"))})
    if status == _SKIPPED:
        return Tally(skipped=1, notes=["manual skipped: see above"])
    return failure(f"scripts/manual: status {status}") if status else Tally(passed=1)


def install():
    """pip install, from the source and from the wheels of scripts/package, in fresh environments"""
    command = [sys.executable, *_IN_PYTHON, "unittest", "discover", "-v", "-s", "tests/install"]
    return _unittest_tally("tests/install", _echoed(command))


def operations():
    """what operators install: the service, Debian packages, the image; installs what makes them"""
    broken = build("release")
    if broken:
        return broken
    subprocess.call(["scripts/package", "--deps"], cwd=REPOSITORY)  # without them, tests are skipped
    command = [sys.executable, *_IN_PYTHON, "unittest", "discover", "-v", "-s", "tests/operations"]
    return _unittest_tally("tests/operations", _echoed(command, TUNDISH_BUILD=str(_folder("release"))))


def checks():
    """the rules of the tree: who includes whom, one format, nothing unfinished"""
    total = Tally()
    for name in _CHECKS:
        status = subprocess.call([REPOSITORY / "scripts" / name], cwd=REPOSITORY)
        if status == _SKIPPED:
            total.add(Tally(skipped=1, notes=[f"scripts/{name} skipped: see above"]))
        else:
            total.add(failure(f"scripts/{name}") if status else Tally(passed=1))
    return total


ALL = {
    function.__name__: function
    for function in (
        checks, tools, unit, abi, system, manual, conformance, python, port, gpu, install, operations, asan, tsan, fuzz
    )
}
# Suites of which each has a flavour of its name, and what of it is run; of `fuzz` all is compiled, for its warnings.
_NEEDED = {"asan": ("unit", "python"), "tsan": ("unit",), "fuzz": ()}
ahead_s = 0.0  # seconds of the processors that building them ahead took, while other suites ran
QUICK = ("checks", "tools", "unit", "abi", "conformance")


def build_ahead(names):
    """Build the flavours of these suites in this order, where tests leave a core idle.

    A suite that comes to its flavour before that is built waits for it in scripts/build, and tells
    of an error."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}

    def run():
        global ahead_s
        for flavour in (name for name in names if name in _NEEDED):
            command = ["nice", "-n", "19", "scripts/build", flavour, *_NEEDED[flavour]]
            building = subprocess.Popen(command, cwd=REPOSITORY, **quiet)
            _, building.returncode, used = os.wait4(building.pid, 0)
            ahead_s += used.ru_utime + used.ru_stime

    threading.Thread(target=run, daemon=True).start()


def build(flavour, *targets):
    """Build; the failure if that does not work, else None."""
    status = subprocess.call(["scripts/build", flavour, *targets], cwd=REPOSITORY)
    return failure(f"the {flavour} build") if status else None


def _folder(flavour):
    return REPOSITORY / ("build" if flavour == "release" else f"build-{flavour}")


def meson(flavour, suite, *options, wrapper=()):
    """Build one flavour and run one suite of its Meson tests."""
    broken = build(flavour, *_NEEDED.get(flavour, ()))
    if broken:
        return broken
    folder = _folder(flavour)
    log = folder / "meson-logs" / f"{suite}.json"
    log.unlink(missing_ok=True)
    command = [*wrapper, "meson", "test", "-C", str(folder), "--no-rebuild"]
    command += ["--suite", suite, "--logbase", suite, "--print-errorlogs", *options]
    status = subprocess.call(command, cwd=REPOSITORY, env=dict(os.environ, **_ENVIRONMENT))
    results = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    if not results:
        return failure(f"{suite} ({flavour}): no test ran")
    tally = Tally()
    for result in results:
        name = f"{flavour} {result['name']}"
        tally.add(_meson_tally(name, result))
        tally.parts.append((result["duration"], name))
    if status and not tally.failed:
        tally.add(failure(f"meson test of {suite} ({flavour}) ended with status {status}"))
    return tally


def _meson_tally(name, result):
    if result["result"] in ("OK", "EXPECTEDFAIL"):
        return Tally(passed=1)
    said = (result.get("stdout", "") + result.get("stderr", "")).strip().splitlines()
    if result["result"] == "SKIP":
        reason = said[-1].strip() if said else "gave no reason"
        return Tally(skipped=1, notes=[f"{name} skipped: {reason}"])
    note = f"{name}: {result['result'].lower()}"
    return Tally(failed=1, notes=[note], reports=[[note, *said]])


def _python_tests(flavour, interpreter, tests=REPOSITORY / "tests" / "python", **options):
    """The tests of a folder, with the package of this build."""
    return _each_file(flavour, interpreter, tests, **options, **_package(flavour))


def _package(flavour):
    """The environment in which Python finds the package of a build."""
    folder = _folder(flavour)
    return {
        "PYTHONPATH": str(folder / "sdk" / "python"),
        "TUNDISH_BUILD": str(folder),
        # Modules are compiled once, in the build folder.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "python-cache"),
    }


def _each_file(name, interpreter, tests, top=None, files="test_*.py", without=(), processes=None, **environment):
    """Each file of a folder of tests in a process of its own, or all in `processes` of them; as many at once as there are cores.

    The longest begin first; each process is shown when it ends.
    """
    start = [str(interpreter), "-X", "faulthandler", "-c", _MODULES, str(top or tests)]

    def run(share):
        begin = time.monotonic()
        modules = [".".join(file.relative_to(top or tests).with_suffix("").parts) for file in share]
        lines = _printed([*start, *modules], limit=_FILE_S * len(share), **environment)
        more = f" and {len(share) - 1} more" if len(share) > 1 else ""
        return share[0].name + more, lines, time.monotonic() - begin

    total = Tally()
    chosen = (file for file in tests.glob(files) if file.name not in without)
    turns = {name: turn for turn, name in enumerate(_LONGEST)}
    longest_first = sorted(chosen, key=lambda file: (turns.get(file.name, len(turns)), -file.stat().st_size))
    processes = min(processes or len(longest_first), len(longest_first))
    shares = [longest_first[first::processes] for first in range(processes)]
    with ThreadPool(len(os.sched_getaffinity(0))) as pool:
        for file, lines, seconds in pool.imap_unordered(run, shares):
            print(f"-- {file}", *lines, sep="\n", flush=True)
            total.add(_unittest_tally(f"{name} {file}", lines))
            total.parts.append((seconds, f"{name} {file}"))
    return total


def _typed(interpreter, folder):
    """The package as mypy and pyright see it."""
    mypy = ["mypy", "--strict", "--cache-dir", str(folder / "mypy-cache"), "sdk/python/tundish"]
    pyright = ["basedpyright", "--project", "sdk/python", "--level", "error", "--pythonpath", str(interpreter)]
    total = _checked(interpreter, mypy, "Success")
    total.add(_checked(interpreter, pyright, "0 errors"))
    return total


def _checked(interpreter, command, fine):
    """By a module of the interpreter, whose last lines say that all is fine."""
    if not _works([str(interpreter), "-m", command[0], "--version"]):
        return Tally(skipped=1, notes=[f"python: {command[0]} is not installed"])
    lines = _echoed([str(interpreter), "-m", *command])
    if any(line.startswith(fine) for line in lines):
        return Tally(passed=1)
    faults = [line.strip() for line in lines if "error" in line] or lines[-1:]
    return failure(f"{' '.join(command)}: {'; '.join(faults[:3])}")


def _python_asan():
    """The extension under AddressSanitizer. The interpreter itself frees little at its end."""
    broken = build("asan", "python")
    if broken:
        return broken
    runtime = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True).strip()
    return _python_core(
        "asan",
        frameworks.machines_own(),
        without=_WRITING,
        LD_PRELOAD=runtime,
        PYTHONMALLOC="malloc",
        ASAN_OPTIONS=_ENVIRONMENT["ASAN_OPTIONS"].replace("detect_leaks=1", "detect_leaks=0"),
    )


def _python_debug():
    """The extension in an interpreter that checks reference counts and what functions return."""
    interpreter = shutil.which("python3-dbg")
    if not interpreter:
        return Tally(skipped=1, notes=["python: there is no python3-dbg to check reference counts"])
    return _python_core("release", interpreter, without=(*_WRITING, *_OF_WORKERS))


def _python_core(flavour, interpreter, without, **environment):
    """The tests that need no framework; those that are skipped for want of one have run already."""
    tally = _python_tests(flavour, interpreter, without=without, **environment)
    failures = [note for note in tally.notes if not re.search(r": \d+ skipped: ", note)]
    return Tally(tally.passed, tally.failed, 0, failures, reports=tally.reports)


def _unittest_tally(name, lines):
    ran = [int(m.group(1)) for m in (re.match(r"Ran (\d+) tests?", line) for line in lines) if m]
    if not ran or not lines or not re.match(r"OK|FAILED|NO TESTS RAN", lines[-1]):
        begun = [line for line in lines if re.match(r"test_\w+ \(", line)]
        return failure(f"{name}: unittest did not come to its end" + (f": {begun[-1]}" if begun else ""))
    counts = dict(re.findall(r"(failures|errors|skipped)=(\d+)", lines[-1]))
    failed = int(counts.get("failures", 0)) + int(counts.get("errors", 0))
    skipped = int(counts.get("skipped", 0))
    reports = [_report(lines, at) for at, line in enumerate(lines) if re.match(r"(FAIL|ERROR): ", line)]
    notes = [f"{name}: {report[0]}: {report[-1].strip()}" for report in reports]
    skips = [re.search(r"\bskipped ['\"](.+)['\"]$", line) for line in lines]  # as -v prints them
    reasons = Counter(skip[1] for skip in skips if skip)
    notes += [f"{name}: {count} skipped: {reason}" for reason, count in reasons.items()]
    return Tally(max(0, ran[-1] - failed - skipped), failed, skipped, notes, reports=reports)


def _report(lines, at):
    """The lines of a failure. The last one has the exception."""
    report = itertools.takewhile(lambda line: not re.match(r"={70}|Ran \d", line), lines[at:])
    return [line for line in report if line.strip("- ")]


def _echoed(command, **environment):
    """Run a command, showing what it prints, and return its lines."""
    return _printed(command, _SUITE_S, show=True, **environment)


def _printed(command, limit=_FILE_S, show=False, **environment):
    """Run a command and return the lines that it printed."""
    return _ran(command, limit, show, **environment)[1]


def _ran(command, limit, show=False, **environment):
    """Run a command: its status, and the lines that it printed. One that hangs is ended."""
    lines = []
    environment = {**os.environ, **_ENVIRONMENT, **environment}
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, **piped) as process:
        with limits.of(process, limit) as ran:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if show:
                    sys.stdout.write(line)
                    sys.stdout.flush()
    if ran:
        more = [f"ended after {limit} s. There ran:", *ran]
        lines += more
        if show:
            print(*more, sep="\n", flush=True)
    return process.returncode, lines


def _without_address_randomisation():
    """Sanitizers cannot place their shadow under some kernels' wide randomisation."""
    return ("setarch", "-R") if _works(["setarch", "-R", "true"]) else ()


def _works(command):
    quiet = subprocess.DEVNULL
    return subprocess.call(command, stdout=quiet, stderr=quiet) == 0
