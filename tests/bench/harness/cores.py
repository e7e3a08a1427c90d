"""The cell `cores`: what would stand in the way of many cores, counted on few.

Each of the cells below is served twice: by the server as it is released, with mutexes counted and timed, and by
one whose accesses to memory are counted (`scripts/build counted`). Counts are of whole passes after the first, so
they do not depend on the machine's speed, and little on its other load. Times are of the threads' own CPU.
"""

import json
import os
import struct
import subprocess
import tempfile
from bisect import bisect_right
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from . import cells, data, processes
from .measure import next_line
from .subjects import START_TIMEOUT_S, Tundish

# Their names here, those of the cells, and what differs from them.
CELLS = (
    ("criteo", "criteo", {}),
    ("criteo-1024", "criteo", {"BATCH": "1024"}),
    ("tfrecord", "tfrecord", {}),
    ("text", "text", {}),
    ("jpeg", "jpeg", {}),
    ("images-raw", "images-raw", {}),
)

# As in contention/sites.h.
_LOCKS, _COUNTS, _STEPS = 2048, 16384, 8
_BUCKETS = 40 * _STEPS
_LOCK, _COUNT = struct.Struct(f"5Q{_BUCKETS}Q"), struct.Struct("6Q")
_ATOMIC, _MOVE = 1, 2
_BYTES = _LOCKS * _LOCK.size + _COUNTS * _COUNT.size


def measure(options):
    _build(options)
    for name, base, environment in CELLS:
        cell = next(one for one in cells.ALL if one.name == base)
        cell = replace(cell, environment={**cell.environment, **environment})
        folder = data.ensure(cell.data, options.data, options.build)
        line = {"cell": "cores", "of": name}
        with _counted(options, cell, folder, "bench_locks", options.build) as served:
            line |= _locks_of(served) | _times_of(served)
        with _counted(options, cell, folder, "bench_accesses", _counted_build(options)) as served:
            line |= _accesses_of(served)
        if cell.data == "clicks" and cell.pipeline == "criteo":
            line["order_references_m_a_s"] = _order_rate(options, folder)
        line["cores_by_lock"] = round(line["work_ns_a_row"] / line["ring_ns_a_row"])
        _show(line, options.json)


def _order_rate(options, folder):
    """What the order of the click log gives by itself, in one thread."""
    command = [options.build / "tests/bench/bench_order", "files", folder]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return round(json.loads(out.stdout)["references_per_s"] / 1e6, 1)


def _counted_build(options):
    return options.build.parent / "build-counted"


def _build(options):
    subprocess.run([Path("scripts/build"), "counted", "server/tundish"], check=True, stdout=subprocess.DEVNULL)


class _Served:
    """What was counted between the end of the first pass and that of the last."""

    def __init__(self, rows, batches, threads, before, after, symbols):
        self.rows, self.batches, self.threads, self.symbols = rows, batches, threads, symbols
        self.before, self.after = before, after

    def locks(self):
        """(name of the lock's place, taken, found taken, ns held, buckets) that grew."""
        for offset in range(0, _LOCKS * _LOCK.size, _LOCK.size):
            now = _LOCK.unpack_from(self.after, offset)
            then = _LOCK.unpack_from(self.before, offset)
            if now[2] > then[2]:
                grown = [a - b for a, b in zip(now[2:], then[2:], strict=True)]
                yield now[0], self.symbols.name(now[1]), *grown[:3], grown[3:]

    def counts(self, kind):
        """(name of the place, name of where from, count, apart, to write) that grew."""
        begin = _LOCKS * _LOCK.size
        for offset in range(begin, begin + _COUNTS * _COUNT.size, _COUNT.size):
            now = _COUNT.unpack_from(self.after, offset)
            then = _COUNT.unpack_from(self.before, offset)
            if now[0] & 3 == kind and now[3] > then[3]:
                places = (self.symbols.name(place) for place in now[1:3])
                yield *places, *(a - b for a, b in zip(now[3:], then[3:], strict=True))


@contextmanager
def _counted(options, cell, folder, library, build):
    """Serve the cell with a library before the server's own functions."""
    with tempfile.TemporaryDirectory(prefix="tundish-bench-") as scratch:
        scratch = Path(scratch)
        sites = scratch / "sites"
        with open(sites, "wb") as file:
            file.truncate(_BYTES)
        preloaded = {
            "LD_PRELOAD": str(options.build / "tests/bench/contention" / f"{library}.so"),
            "BENCH_SITES": str(sites),
        }
        counted = replace(cell, environment={**cell.environment, **preloaded})
        tundish = Tundish(options.build)
        tundish.server = build / "server" / "tundish"
        with tundish.serve(counted, folder, scratch) as server:
            with tundish.consume(scratch, ["--unchecked"]) as trainer:
                next_line(trainer, START_TIMEOUT_S)
                before, threads = sites.read_bytes(), _thread_ns(server.pid)
                passes = [next_line(trainer, START_TIMEOUT_S) for _ in range(options.passes)]
                after, later = sites.read_bytes(), _thread_ns(server.pid)
            symbols = _Symbols(server.pid)
        taken = Counter()
        for thread, (name, ns) in later.items():
            taken[name] += ns - threads.get(thread, (name, 0))[1]
        rows, batches = (sum(one[key] for one in passes) for key in ("rows", "batches"))
        yield _Served(rows, batches, taken, before, after, symbols)


def _thread_ns(pid):
    """Each thread's name, and its own CPU time."""
    threads = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        ns = int((task / "schedstat").read_text().split()[0])
        threads[task.name] = (task / "comm").read_text().strip(), ns
    return threads


class _Symbols:
    """Names of functions in a process, by address."""

    def __init__(self, pid):
        self.mappings, self.tables = [], {}
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            for line in file:
                fields = line.split(maxsplit=5)
                if len(fields) == 6 and fields[5].startswith("/"):
                    begin, end = (int(word, 16) for word in fields[0].split("-"))
                    self.mappings.append((begin, end, int(fields[2], 16), fields[5].strip()))

    def name(self, address):
        for begin, end, offset, path in self.mappings:
            if begin <= address < end:
                return self._of_file(path, address - 1 - begin + offset)
        return "?"

    def _of_file(self, path, offset):
        table = self.tables.get(path)
        if table is None:
            table = self.tables[path] = _functions(path)
        at = bisect_right(table, (offset, chr(0x10FFFF))) - 1
        name = table[at][1] if at >= 0 else "?"
        library = os.path.basename(path).split(".so")
        return f"{library[0]}: {name}" if len(library) > 1 else name


def _functions(path):
    """Sorted (offset in the file, name); a library without symbols has what it exports."""
    segments = []
    out = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True)
    for line in out.stdout.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"]:
            segments.append([int(word, 16) for word in words[1:3]])
    table = []
    for option in ("-n", "-Dn"):
        out = subprocess.run(["nm", option, path], capture_output=True, text=True)
        for line in out.stdout.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "tTwWi":
                address = int(words[0], 16)
                base = max((s for s in segments if s[1] <= address), key=lambda s: s[1], default=[0, 0])
                table.append((address - base[1] + base[0], words[2].split(".")[0].split("@")[0]))
    return sorted(set(table))


def _locks_of(served):
    """Acquisitions, and how long a session's lock is held; its places are those of the lock that
    `session_work` takes."""
    locks, held_ns, taken, contended = {}, Counter(), 0, 0
    for lock, place, count, found_taken, ns, buckets in served.locks():
        taken += count
        contended += found_taken
        held_ns[lock] += ns
        places = locks.setdefault(lock, {})
        old = places.setdefault(place, [0] * (_BUCKETS + 1))
        places[place] = [a + b for a, b in zip(old, [count, *buckets], strict=True)]
    ((lock, ring),) = ((lock, places) for lock, places in locks.items() if "session_work" in places)
    held = {place: counts[1:] for place, counts in ring.items()}
    everywhere = [sum(column) for column in zip(*held.values(), strict=True)]
    by_lock = Counter()
    for places in locks.values():
        by_lock[" ".join(sorted(places, key=lambda place: -places[place][0])[:3])] += sum(
            counts[0] for counts in places.values()
        )
    return {
        "locks_a_batch": round(taken / served.batches, 2),
        "locks_a_1000_rows": round(1e3 * taken / served.rows, 2),
        "locks_found_taken_share": round(contended / taken, 4),
        "locks": {name: round(count / served.batches, 2) for name, count in by_lock.most_common(6)},
        "ring_holds_a_batch": round(sum(everywhere) / served.batches, 2),
        "ring_ns_a_row": round(held_ns[lock] / served.rows, 3),
        "ring_held_us": {
            **{f"p{100 * share:g}": _quantile(everywhere, share) / 1e3 for share in (0.5, 0.9, 0.95, 0.99, 0.999)},
            **{f"{place} p99": _quantile(counts, 0.99) / 1e3 for place, counts in held.items()},
        },
    }


def _quantile(buckets, share):
    """The upper end of the bucket in which the quantile lies, in ns."""
    left = share * sum(buckets)
    for bucket, count in enumerate(buckets):
        left -= count
        if left <= 0:
            return _bucket_end(bucket)
    return _bucket_end(len(buckets) - 1)


def _bucket_end(bucket):
    if bucket < _STEPS:
        return bucket + 1
    bits = bucket // _STEPS + 2
    return (_STEPS + bucket % _STEPS + 1) << (bits - 3)


def _times_of(served):
    """What a row costs the thread that deals, and those that make content: so many of the latter
    are fed by the former."""
    work = sum(ns for name, ns in served.threads.items() if name.startswith("work"))
    deal = served.threads["deal"]
    return {
        "deal_ns_a_row": round(deal / served.rows, 2),
        "work_ns_a_row": round(work / served.rows, 2),
        "cores_fed": round(work / deal),
        "references_m_a_s": round(served.rows / deal * 1e3, 1),
        "rows_m_a_s_a_core": round(served.rows / work * 1e3, 3),
    }


def _accesses_of(served):
    atomics, moves, pairs = 0, Counter(), Counter()
    by_place = Counter()
    for place, _, count, _, _ in served.counts(_ATOMIC):
        atomics += count
        by_place[place] += count
    for place, source, count, apart, to_write in served.counts(_MOVE):
        moves.update({"all": count, "apart": apart, "to_write": to_write})
        pairs[f"{source} -> {place}"] += count
    mutexes = sum(one[2] for one in served.locks())
    return {
        "atomics_a_batch": round((atomics + 2 * mutexes) / served.batches, 2),
        "atomics_a_1000_rows": round(1e3 * (atomics + 2 * mutexes) / served.rows, 2),
        "atomics": {name: round(count / served.batches, 2) for name, count in by_place.most_common(6)},
        "lines_moved_a_1000_rows": round(1e3 * moves["all"] / served.rows, 2),
        "lines_moved_to_write_a_1000_rows": round(1e3 * moves["to_write"] / served.rows, 2),
        "lines_moved_in_vain_a_1000_rows": round(1e3 * moves["apart"] / served.rows, 2),
        "moves": {name: round(1e3 * count / served.rows, 3) for name, count in pairs.most_common(8)},
    }


def _show(line, as_json):
    if as_json:
        print(json.dumps(line), flush=True)
        return
    print(f"cores {line['of']}:", flush=True)
    for key, value in line.items():
        if isinstance(value, dict):
            print(f"    {key}: " + ", ".join(f"{name} {figure:g}" for name, figure in value.items()))
        elif key not in ("cell", "of"):
            print(f"    {key}: {value:g}")
