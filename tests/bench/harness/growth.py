"""The cells `growth`: how the cost grows over decades, axis by axis.

A line for each size: processor seconds of the whole program, its most memory, and its system calls, of a
run of their own under strace, where that is there. After them the exponents: the slopes of straight
lines through the logarithms of what is more than a program takes that does nothing, and more than noise.
0: it does not grow; 1: as the size does. Absolute times hang on the machine, exponents hardly do.
"""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from . import parquet_file

# What is no more than this above nothing is noise.
NOISE = {
    "cpu_s": 0.006, "memory_mb": 3.0, "calls": 200, "threads": 4, "deal_s": 0.01, "in_order_s": 0.02, "times": 1
}  # fmt: skip
IDLE_S = 3
PASSES = 3  # of which the least is meant


class Run:
    """The programs of a build, in a folder of their own."""

    def __init__(self, build, folder):
        self.server_program, self.consume = build / "server/tundish", build / "tests/bench/consume"
        self.folder = folder
        self.file = folder / "pipeline.yaml"
        self.environment = dict(
            os.environ,
            TUNDISH_SERVER=str(folder / "server"),
            TUNDISH_CACHE=str(folder / "cache"),
            TUNDISH_STREAM="train",
        )

    def write(self, stages, deliver="{epochs: 1}", replicas=1):
        lines = "".join(f"      - {stage}\n" for stage in stages)
        self.file.write_text(
            f"streams:\n  train:\n    dataset:\n{lines}    deliver: {deliver}\n"
            f"    distribute: {{replicas: {replicas}}}\n"
        )

    def tundish(self, *words, again=False):
        """A command of it: what it costs, and in a second run its calls. `again`: what it kept is there."""
        command = [str(self.server_program), words[0], str(self.file), *words[1:]]
        if again:
            self._timed(command)
        figures = self._timed(command, again)
        if shutil.which("strace"):
            figures["calls"] = self._calls(command, again)
        return figures

    def _forget(self):
        shutil.rmtree(self.folder / "cache", ignore_errors=True)
        shutil.rmtree(self.folder / "learned", ignore_errors=True)

    def _timed(self, command, again=False):
        if not again:
            self._forget()
        out = os.open(os.devnull, os.O_WRONLY)
        # A child's most memory begins with its parent's, so a small program stands between.
        time_file = self.folder / "time"
        small = ["/usr/bin/time", "-o", str(time_file), "-f", "%U %S %M"]
        small = small if os.access(small[0], os.X_OK) else []
        actions = [(os.POSIX_SPAWN_DUP2, out, 1)]
        child = os.posix_spawn([*small, *command][0], [*small, *command], self.environment, file_actions=actions)
        _, status, usage = os.wait4(child, 0)
        os.close(out)
        if status != 0:
            raise SystemExit(f"bench: growth: {' '.join(command)} failed")
        memory_kb = int(time_file.read_text().split()[2]) if small else usage.ru_maxrss
        return _figures(usage.ru_utime + usage.ru_stime, memory_kb)

    def _calls(self, command, again):
        if not again:
            self._forget()
        table = self.folder / "calls"
        subprocess.run(
            ["strace", "-f", "-c", "-o", table, *command],
            env=self.environment, stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        return int(table.read_text().strip().splitlines()[-1].split()[3])

    def serve(self, use, *options, again=False, under=()):
        """A server's figures, while or after `use` is called with its process. `again`: what it kept is there."""
        if not again:
            self._forget()
        return self._run(lambda pid, _: use(pid), *under, self.server_program, "serve", self.file, *options)

    def serve_helped(self, use):
        """The same with a helper, whose process `use` is called with, too."""
        self.environment["TUNDISH_HELPER_KEY"] = "a key that is long enough"
        return self._run(
            lambda helper, word: self.serve(
                lambda pid: use(pid, helper), "--threads", "1", "--helpers", f"127.0.0.1:{word.split()[1]}"
            ),
            self.server_program, "helper", self.file, "--listen", "127.0.0.1:0", "--threads", "1",
        )  # fmt: skip

    def _run(self, use, *command):
        """What `use` returns of the command's process and its word that it is ready."""
        read_end, write_end = os.pipe()
        process = subprocess.Popen(
            [*command, "--ready-fd", str(write_end)],
            env=self.environment, stderr=subprocess.DEVNULL, pass_fds=[write_end],
        )  # fmt: skip
        os.close(write_end)
        try:
            word = os.read(read_end, 200).decode()
            if not word.startswith("ready"):
                raise SystemExit(f"bench: growth: {' '.join(map(str, command))} did not start")
            return use(process.pid, word)
        finally:
            os.close(read_end)
            process.send_signal(signal.SIGTERM)
            process.wait()

    def serve_again(self):
        """The figures of a second start, until it is ready."""
        def use(pid):
            return _figures(_cpu_s(pid), int(_status(pid)["VmHWM"]))

        self.serve(use)
        figures = self.serve(use, again=True)
        if shutil.which("strace"):
            table = self.folder / "calls"
            self.serve(use, again=True, under=["strace", "-D", "-f", "-c", "-o", table])
            while not table.exists() or not (lines := table.read_text().strip().splitlines()):
                time.sleep(0.01)
            figures["calls"] = int(lines[-1].split()[3])
        return figures

    def read(self, replicas=1):
        command = [self.consume, "--unchecked"]
        readers = [
            subprocess.Popen(
                command, env={**self.environment, "TUNDISH_REPLICA": str(replica)}, stdout=subprocess.DEVNULL
            )
            for replica in range(replicas)
        ]  # fmt: skip
        if any([reader.wait() for reader in readers]):
            raise SystemExit("bench: growth: a reader failed")


def _figures(cpu_s, memory_kb, **more):
    return {"cpu_s": round(cpu_s, 3), "memory_mb": round(memory_kb / 1024, 1), **more}


def _status(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return {key: value.split()[0] for key, _, value in (l.partition(":") for l in text.splitlines()) if value.split()}


def _cpu_s(pid):
    """Of all threads, in the nanoseconds of the scheduler."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _cpu_of_all_s(pid):
    """Of threads that have ended, too, in ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _nothing(run):
    run.write(["range: 10", "batch: 5"])
    return run.tundish("plan")


def _features(run, size):
    """Named features of parse_example."""
    features = ", ".join(f"f{i}: {{type: FixedLen, dtype: int64, shape: []}}" for i in range(size))
    run.write(["from_tensors: {x: abc}", f"parse_example: {{features: {{{features}}}}}", "select: [f0]", "batch: 5"])
    return run.tundish("plan")


def _maps(run, size):
    """A stage `map` for each column that it makes."""
    run.write(["range: 10", *(f'map: {{c{i}: "value + {i}"}}' for i in range(size)), "batch: 5"])
    return run.tundish("plan")


def _files(run, size):
    """Files, until the first batch."""
    for i in range(size):
        (run.folder / f"file-{i:06}.txt").write_text("1\n2\n")
    run.write(['list_files: {file_pattern: "file-*.txt", shuffle: false}', "flat_map: {dataset: [text_line]}", "batch: 2"])
    return run.tundish("peek", "--steps", "1")


def _files_again(run, size):
    """Files of which samples were hashed in a start before, until ready."""
    for i in range(size):
        with open(run.folder / f"file-{i:06}", "wb") as file:
            file.truncate(300_000)
    time.sleep(2.1)  # younger ones are read again
    run.write([
        'list_files: {file_pattern: "file-*", shuffle: false}',
        "flat_map: {dataset: [{fixed_length_record: {record_bytes: 1000}}]}", "batch: 2",
    ])  # fmt: skip
    return run.serve_again()


def _resume(run, size):
    """The step that windows over a range are resumed at."""
    run.write(["range: 1000000000", "window: {size: 64, shift: 16}", "batch: 64"])
    return run.tundish("explain", "--step", str(size))


def _resume_files(run, size):
    """The step that an interleave of files of lines is resumed at, which an earlier run has indexed."""
    for i in range(8):
        (run.folder / f"part-{i}.txt").write_text("1\n" * (size * 8 + 1000 * i))
    time.sleep(2.1)  # indexes of younger ones are not kept
    run.write([
        'list_files: {file_pattern: "part-*.txt", shuffle: false}',
        "interleave: {dataset: [text_line], cycle_length: 4}", "batch: 64",
    ])  # fmt: skip
    return run.tundish("explain", "--step", str(size), again=True)


def _resume_noted(*stages, first="range: 1000000000"):
    """The step that stages which look at rows, or draw or count them, are resumed at, where an earlier run has
    come so far."""

    def measure(run, size):
        run.write([first, *stages])
        return run.tundish("explain", "--step", str(size), again=True)

    return measure


def _rows(run, size):
    """Rows that discretization learns bins of, each by itself."""
    run.write([f"range: {size}", "discretization: {num_bins: 10}", "batch: 100"])
    return run.tundish("analyze", "--quiet", "--analysis", str(run.folder / "learned"))


def _lengths(run, size):
    """The length of a Fourier transform, a prime. The signal is twenty frames."""
    prime = next(n for n in range(size, 2 * size) if all(n % p for p in range(2, math.isqrt(n) + 1)))
    (run.folder / "signal").write_bytes(bytes(4 * 20 * prime))
    run.write([
        f"fixed_length_record: {{filenames: signal, record_bytes: {4 * 20 * prime}}}",
        "decode_raw: float32",
        f"ensure_shape: {{shape: [{20 * prime}]}}",
        f"stft: {{frame_length: {prime}, frame_step: {prime}, fft_length: {prime}}}",
        "batch: 1",
    ])  # fmt: skip
    return run.tundish("peek", "--epochs", "1")


def _terms(run, size):
    """Terms of a vocabulary that is built."""
    lines = [f"t{i * 2654435761 % (1 << 32):x}\n" for i in range(size)]
    random.Random(1).shuffle(lines)
    (run.folder / "terms.txt").write_text("".join(lines))
    run.write(["from_tensors: {x: abc}", "string_lookup: {vocabulary: terms.txt}", "batch: 1"])
    return run.tundish("peek")


def _filter(run, size):
    """Rows of JSON through two filters: what making them for these costs the dealing thread, which has ended."""
    row = '{{"a":{},"b":{},"c":{}.5,"d":"word{}"}}\n'
    lines = (row.format(i, i * 2654435761 % 1000, i % 77, i % 997) for i in range(size))
    (run.folder / "rows.jsonl").write_text("".join(lines))
    dtypes = {"a": "int64", "b": "int64", "c": "float32", "d": "string"}
    features = ", ".join(f"{name}: {{type: FixedLen, shape: [], dtype: {dtype}}}" for name, dtype in dtypes.items())
    run.write([
        "text_line: rows.jsonl", f"decode_json: {{features: {{{features}}}}}",
        'filter: "b < 900"', 'filter: "c > 1"', "batch: 256",
    ])  # fmt: skip

    def use(pid):
        run.read()
        live_s, memory_kb, all_s = _cpu_s(pid), int(_status(pid)["VmHWM"]), _cpu_of_all_s(pid)
        return _figures(all_s, memory_kb, deal_s=round(max(all_s - live_s, 0), 3))

    return run.serve(use)


def _parquet(run, size):
    """Rows of Parquet in random order, with memory for no more than some: a server's first pass, and how many times
    one in the file's order that is."""
    parquet_file.write(run.folder / "rows.parquet", size)

    def use(pid):
        before = _cpu_of_all_s(pid)
        run.read()
        return _figures(_cpu_of_all_s(pid) - before, int(_status(pid)["VmHWM"]))

    def least(*order):
        run.write(["parquet: rows.parquet", *order, "batch: 4096"], deliver="{epochs: 1, memory_limit: 64MiB}")
        return min((run.serve(use) for _ in range(PASSES)), key=lambda figures: figures["cpu_s"])

    in_order, shuffled = least(), least("shuffle: {buffer_size: -2, seed: 1}")
    in_order_s = in_order["cpu_s"]
    return {**shuffled, "in_order_s": in_order_s, "times": round(shuffled["cpu_s"] / max(in_order_s, 0.01), 2)}


def _batches(run, size):
    """Rows of a batch, of fifty million in all."""
    run.write(["range: 50000000", f"batch: {size}"])

    def use(pid):
        run.read()
        return _figures(_cpu_s(pid), int(_status(pid)["VmHWM"]))

    return run.serve(use)


def _cut(run, size):
    row = '{{"a":[{}]}}\n'
    lines = (row.format(",".join(str(k) for k in range(i * 7919 % 60))) for i in range(64 * 2000))
    (run.folder / "rows.jsonl").write_text("".join(lines))
    run.write(
        ["text_line: rows.jsonl", "decode_json: {features: {a: {type: Ragged, dtype: int64}}}", "padded_batch: 2000"],
        replicas=size,
    )


def _replicas(run, size):
    """Replicas, whose slices are cut from a batch that is padded to its longest row."""
    _cut(run, size)

    def use(pid):
        run.read(size)
        return _figures(_cpu_s(pid), int(_status(pid)["VmHWM"]))

    return run.serve(use)


def _helped(run, size):
    """The same of a server with a helper, both together."""
    _cut(run, size)

    def use(pid, helper):
        run.read(size)
        memory_kb = sum(int(_status(process)["VmHWM"]) for process in (pid, helper))
        return _figures(_cpu_s(pid) + _cpu_s(helper), memory_kb)

    return run.serve_helped(use)


def _streams(run, size):
    """Streams that nobody reads."""
    stream = "  s{}:\n    dataset:\n      - range: 1000000\n      - batch: 512\n"
    run.file.write_text("streams:\n" + "".join(stream.format(i) for i in range(size)))

    def use(pid):
        time.sleep(IDLE_S)
        status = _status(pid)
        return _figures(_cpu_s(pid), int(status["VmRSS"]), threads=int(status["Threads"]))

    return run.serve(use)


def _processes(run, size):
    """Other processes on a machine without a free processor; seconds of an idle server in a hundred."""
    run.write(["range: 1000000", "batch: 512"])
    others = [subprocess.Popen(["sleep", "1000"]) for _ in range(size)]
    others += [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]

    def use(pid):
        time.sleep(1)
        before = _cpu_s(pid)
        time.sleep(4 * IDLE_S)
        used = (_cpu_s(pid) - before) / (4 * IDLE_S) * 100
        return _figures(used, int(_status(pid)["VmRSS"]))

    try:
        return run.serve(use)
    finally:
        for other in others:
            other.kill()
        for other in others:
            other.wait()


AXES = {
    "features": (_features, (100, 1000, 10000)),
    "maps": (_maps, (20, 200, 2000)),
    "files": (_files, (100, 1000, 10000)),
    "files-again": (_files_again, (100, 1000, 10000)),
    "resume-window": (_resume, (1000, 10000, 100000)),
    "resume-interleave": (_resume_files, (1000, 10000, 100000)),
    "resume-filter": (_resume_noted('filter: "value % 3 != 0"', "batch: 64"), (1000, 10000, 100000)),
    "resume-inside": (
        _resume_noted(
            "interleave: {dataset: [{range: 100000}, {filter: 'value % 3 != 0'}], cycle_length: 4}", "batch: 64"
        ),
        (1000, 10000, 100000),
    ),
    "resume-keys": (_resume_noted('group_by_window: {key: "value % 10", window_size: 64}'), (1000, 10000, 100000)),
    "resume-lengths": (
        _resume_noted(
            'map: {length: "value * 7919 % 1000"}',
            "bucket_by_sequence_length: {column: length, bucket_boundaries: [100, 200, 400, 800], "
            "bucket_batch_sizes: [64, 64, 64, 64, 64]}",
        ),
        (1000, 10000, 100000),
    ),
    "resume-draws": (
        _resume_noted(
            "batch: 64", first="sample_from_datasets: {datasets: [[{range: 1000000000}], [{range: 1000000000}]], seed: 1}"
        ),
        (1000, 10000, 100000),
    ),
    "resume-rebatch": (_resume_noted("batch: 48", "rebatch: 64"), (1000, 10000, 100000)),
    "discretization": (_rows, (10000, 100000, 1000000)),
    "stft": (_lengths, (100, 1000, 10000)),
    "vocabulary": (_terms, (100000, 1000000, 10000000)),
    "filter": (_filter, (10000, 100000, 1000000)),
    "parquet": (_parquet, (30000, 300000, 3000000)),
    "batch": (_batches, (10000, 100000, 1000000)),
    "replicas": (_replicas, (1, 4, 16)),
    "helped": (_helped, (1, 2, 4, 8)),
    "streams": (_streams, (8, 64, 256)),
    "processes": (_processes, (15, 150, 1500)),
}


def exponent(sizes, values, noise):
    """Of the power of the size that the values come nearest to, from which those of nothing are taken.
    Only those above the noise count, but for the last ones."""
    points = list(zip(sizes, values))
    loud = [(size, value) for size, value in points if value > noise]
    points = loud if len(loud) > 1 else [(size, max(value, noise)) for size, value in points[-2:]]
    xs, ys = ([math.log(number) for number in numbers] for numbers in zip(*points))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def measure(options):
    with tempfile.TemporaryDirectory(prefix="tundish-growth-") as name:
        nothing = _nothing(Run(options.build, Path(name)))
    for axis, (take, sizes) in AXES.items():
        lines = []
        for size in sizes:
            with tempfile.TemporaryDirectory(prefix="tundish-growth-") as name:
                lines.append(take(Run(options.build, Path(name)), size))
            show(options, {"cell": "growth", "axis": axis, "size": size, **lines[-1]})
        exponents = {
            figure: round(exponent(sizes, [line[figure] - nothing.get(figure, 0) for line in lines], NOISE[figure]), 2)
            for figure in lines[0]
        }
        show(options, {"cell": "growth", "axis": axis, "exponents": exponents})


WORDS = {"cpu_s": "CPU s", "memory_mb": "MB", "calls": "calls", "threads": "threads", "deal_s": "s to deal"}
WORDS |= {"in_order_s": "CPU s in order", "times": "times that"}


def show(options, line):
    if options.json:
        print(json.dumps(line), flush=True)
        return
    figures = line.get("exponents", line)
    said = [f"{figures[name]:>10,} {word}" for name, word in WORDS.items() if name in figures]
    size = "exponents" if "exponents" in line else f"{line['size']:,}"
    print(f"growth {line['axis']:15} {size:>11} {' '.join(said)}", flush=True)
