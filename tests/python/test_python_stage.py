"""Functions of the user's own, which a pipeline's stage `python` calls in interpreters of the server."""

import contextlib
import grp
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import rig

import tundish

try:
    import numpy
except ImportError:
    numpy = None

FUNCTIONS = '''
import os, pathlib, random, time, typing
import numpy as np

def where(row): return {"path": __import__("sys").executable}

def draw(row, rng):
    n = int(row["value"])
    return {"x": np.full((2, 3), n, np.float32) + rng.random(), "list": np.arange(n % 4),
            "text": f"row {n}", "careless": random.random() + np.random.rand() + random.gauss(0, 1) + np.random.randn()}

np.random.seed(5)
fixed = np.random.rand()  # of a program's own seed: the same wherever the module is imported
def seeds(row):
    """Numbers of the program's own seeds, and those of the row."""
    own = np.random.randn()
    state = np.random.get_state(legacy=False)
    before = np.random.rand()
    np.random.seed(int(row["value"]))
    numbers = np.array([fixed, np.random.rand(), np.random.randn()])
    np.random.set_state(state)
    return {"numbers": numbers, "own": own, "goes_on": np.random.rand() == before}

def double(rows):
    return {"value": rows["value"] * 2, "text": [str(v) for v in rows["value"]]}

def picky(rows):
    if (rows["value"] == 3).any():
        raise ValueError("three is bad")
    return {"value": rows["value"], "text": ["" for _ in rows["value"]]}

def led_to(row):
    try: return {"y": row["label"]}
    except KeyError as error: raise ValueError("no label") from error
def three_is_bad(row):
    if row["value"] == 3:
        raise ValueError("three\\nis bad")
    return {"y": row["value"]}

class Added:
    def __init__(self, number, words=()):
        self.number = number + len(words)
    def __call__(self, row):
        return {"y": row["value"] + self.number}

def dies_once(row):
    if row["value"] == 3 and not os.path.exists("died"):
        pathlib.Path("died").touch()
        os.kill(os.getpid(), 9)
    return {"y": row["value"]}

def edits(row):
    if row["value"] == 3 and not os.path.exists("edited"):
        pathlib.Path("edited").touch()
        with open(__file__, "a") as file:
            file.write("# another one" + chr(10))
        os.kill(os.getpid(), 9)
    return {"y": row["value"]}

def dies(row):
    if row["value"] == 3:
        os.kill(os.getpid(), 9)
    return {"y": row["value"]}

def all_die(rows):
    if (rows["value"] == 3).any():
        os.kill(os.getpid(), 9)
    return {"y": rows["value"]}

def hangs(row):
    if row["value"] == 3:
        time.sleep(1000)
    return {"y": row["value"]}

def swells(row):
    if row["value"] == 3:
        kept = np.ones(300 << 20, np.uint8)
        time.sleep(20)
    return {"y": row["value"]}

leaked = []
def leaks(row):
    leaked.append(np.ones(30 << 20, np.uint8))
    time.sleep(0.06)
    return {"y": os.getpid()}

class Counts:
    def __init__(self): self.count = 0
    def __call__(self, row):
        self.count += row["value"] > 6
        return {"y": self.count}
class Own:
    """Items, and what a row becomes, by instances that are counted."""
    made = 0
    def __init__(self, name, count=0):
        Own.made += 1
        self.name, self.count = name, count
    def __len__(self): return self.count
    def __getitem__(self, index): return {self.name: os.getpid()}
    def __call__(self, row): return {self.name: os.getpid(), "made": Own.made}
def by_process(row): return {"text": str(os.getpid())}

def slow(row):
    time.sleep(0.002)
    return {"y": row["value"]}

def talks(row):
    print("row", row["value"], flush=True)
    return {"y": row["value"]}

def columns(row):
    return {"kinds": [type(row[name]).__name__ for name in ("number", "text", "vector", "words")]}

def summed(row):
    return {"sum": row["value"].sum(), "rows": np.int64(len(row["value"]))}

def writes(row):
    row["vector"][0] = 9
    return {"vector": row["vector"]}

def learned(row):
    n = int(row["value"])
    return {"x": np.zeros((2, n % 3), np.float32), "text": f"row {n}", "number": n, "part": {"y": 1.5}}
def grows(row): return {"x": np.zeros(2 if row["value"] < 9 else 3, np.uint8)}
def says(row) -> {"y": {"dtype": "int16", "shape": [None]}}:
    if "never" not in row: raise ValueError("called")
class Said(typing.TypedDict):
    y: np.int16
    text: str
def says_class(row) -> Said:
    if row["value"] < 0: raise ValueError("called")
    return {"y": np.int16(row["value"]), "text": "a"}
def behind(row): return {"z": row["number"] + 1}
def has_none(row): return {"y": None}
class Pairs:
    def __init__(self, count): self.count = count
    def __len__(self): return self.count
    def __getitem__(self, index): return {"image": np.zeros((4, index % 2 + 1), np.uint8), "label": index}, f"{index}"
def float_for_int(row): return {"y": np.float64(1.5)}
def too_long(row): return {"y": np.zeros(3, np.int64)}
def too_large(row): return {"y": 2 ** 40 * int(row["value"])}
def nothing(row): return None
def other(row): return {"z": 1}
def leaves(row): raise SystemExit(3)
def ids(row): return {"ids": row["text"]}
def ragged(batch): return {"y": len(batch["ids"].values) if type(batch["ids"]).__name__ == "Ragged" else -1}
class Squares:
    def __init__(self, count): self.count = count
    def __len__(self): return self.count
    def __getitem__(self, index): return index * index, f"item {index}", random.random()

class Torn(Squares):
    def __init__(self): self.count = 5
    def __getitem__(self, index):
        if index == 3:
            raise OSError("torn")
        return index

MAPPINGS = [{"y": 10 * n, "more": n} for n in range(3)]
NUMBERS = [5, 6, 7]
def make_numbers(): return NUMBERS
def is_none(row, rng): return {"y": np.int64(rng is None)}
'''
ONE = "{y: {dtype: int64, shape: []}}"
MADE = (
    "{x: {dtype: float32, shape: [2, 3]}, list: {dtype: int64, shape: [null]},"
    " text: {dtype: string, shape: []}, careless: {dtype: float64, shape: []}}"
)


def stage(call, output=ONE, **parameters):
    words = "".join(f", {name}: {value}" for name, value in parameters.items())
    return f'python: {{call: "functions:{call}", output: {output}{words}}}'


def processes():
    """(number, parent, words) of each."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            found.append((int(folder.name), int(parent), words))
    return found


def interpreters(server):
    """The process numbers of a server's interpreters, which are the children of its guards."""
    guards = {pid for pid, parent, _ in processes() if parent == server}
    return [pid for pid, parent, words in processes() if parent in guards and "tundish import worker" in words]


def children(process):
    return {pid for pid, parent, _ in processes() if parent == process}


def is_there(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@unittest.skipUnless(numpy, "needs numpy")
class Peeked(unittest.TestCase):
    """Batches without a server."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "functions.py").write_text(FUNCTIONS)
        environment = {"TUNDISH_PYTHON": sys.executable, "PYTHONPATH": rig.PACKAGE}
        patched = mock.patch.dict(os.environ, environment | {"TUNDISH_BUILD": str(rig.BUILD)})
        patched.start()
        self.addCleanup(patched.stop)

    def peek(self, *stages, steps=100, **parameters):
        (self.folder / "pipeline.yaml").write_text(rig.pipeline(*stages, **parameters))
        return tundish.peek(self.folder / "pipeline.yaml", steps)

    def test_without_a_name_the_interpreter_is_the_callers(self):
        del os.environ["TUNDISH_PYTHON"]
        stages = ("range: {stop: 1}", stage("where", "{path: {dtype: string, shape: []}}"))
        (batch,) = self.peek(*stages)
        self.assertEqual(batch["path"].numpy(), os.fsencode(sys.executable))
        plan = tundish.plan(self.folder / "pipeline.yaml")
        self.assertEqual([each["name"] for each in plan["root"]["columns"]], ["value", "path"])

    def refused(self, error, *stages, **parameters):
        with self.assertRaises(error) as caught:
            self.peek(*stages, **parameters)
        return str(caught.exception)

    def columns(self, *stages, **parameters):
        """All batches' values, column by column, as lists."""
        found = {}
        for batch in self.peek(*stages, **parameters):
            for name, column in batch.items():
                values = column.tolist() if hasattr(column, "tolist") else list(column)
                found.setdefault(name, []).extend(values)
        return found

    def test_a_row_gives_columns_of_each_form(self):
        rows = ("range: {stop: 6}", stage("draw", MADE, seed=3), "padded_batch: 6")
        (batch,) = self.peek(*rows)
        self.assertEqual(batch["value"].tolist(), list(range(6)))
        self.assertEqual(batch["x"].shape, (6, 2, 3))
        self.assertEqual(batch["list"].tolist()[3], [0, 1, 2])
        self.assertEqual([bytes(text) for text in batch["text"]], [b"row %d" % n for n in range(6)])
        drawn = batch["x"][:, 0, 0] - batch["value"]
        self.assertTrue(((drawn > 0) & (drawn < 1)).all())
        self.assertEqual(len(set(drawn.tolist())), 6)

    def test_bits_depend_on_the_seed_and_the_row_alone(self):
        def made(seed, workers, *before):
            rows = ("range: {stop: 60}", *before, stage("draw", MADE, seed=seed, workers=workers))
            found = self.columns(*rows, "padded_batch: 7")
            return [found[name] for name in ("x", "text", "careless")]

        one = made(3, 1)
        for workers in (2, 7):
            self.assertEqual(made(3, workers), one)
        self.assertNotEqual(made(4, 1), one)
        # Draws go by the number of the row that the stage is given, as those of random layers do.
        drawn = [x[0][0] - n for n, x in enumerate(one[0])]
        skipped = [x[0][0] - n - 10 for n, x in enumerate(made(3, 1, "skip: 10")[0])]
        for a, b in zip(drawn, skipped):
            self.assertAlmostEqual(a, b, places=4)

    def test_seeds_of_a_program_s_own_give_their_numbers_and_leave_the_next_row_its_own(self):
        output = "{numbers: {dtype: float64, shape: [3]}, own: {dtype: float64}, goes_on: {dtype: bool}}"

        def made(workers, *before):
            return self.columns("range: {stop: 9}", *before, stage("seeds", output, seed=3, workers=workers), "batch: 4")

        found = made(1)
        first = numpy.random.RandomState(5).rand()
        for n, numbers in enumerate(found["numbers"]):
            plain = numpy.random.RandomState(n)
            self.assertEqual(list(numbers), [first, plain.rand(), plain.randn()])
        self.assertEqual(len(set(found["own"])), 9)
        self.assertTrue(all(found["goes_on"]))
        self.assertEqual(made(4)["own"], found["own"])

    def test_many_rows_at_once(self):
        output = "{value: {dtype: int64}, text: {dtype: string}}"
        found = self.columns("range: {stop: 10}", stage("double", output, rows="many"), "batch: 4")
        self.assertEqual(found["value"], [2 * n for n in range(10)])
        self.assertEqual([bytes(text) for text in found["text"]], [b"%d" % n for n in range(10)])

    def test_a_bad_row_among_many_is_one(self):
        output = "{value: {dtype: int64}, text: {dtype: string}}"
        rows = ("range: {stop: 10}", stage("picky", output, rows="many"), "batch: 4")
        self.assertIn("three is bad", self.refused(tundish.DataError, *rows))
        found = self.columns(*rows, deliver="{epochs: 1, on_error: skip}")
        self.assertEqual(found["value"], [0, 1, 2, 4, 5, 6, 7, 8, 9])

    def test_an_exception_names_itself_and_its_line(self):
        rows = ("range: {stop: 10}", stage("three_is_bad"), "batch: 5")
        said = self.refused(tundish.DataError, *rows)
        self.assertIn("functions:three_is_bad: ValueError: three | is bad (functions.py:", said)
        self.assertIn("in three_is_bad)", said)
        found = self.columns(*rows, deliver="{epochs: 1, on_error: skip}")
        self.assertEqual(found["y"], [0, 1, 2, 4, 5, 6, 7, 8, 9])

    def test_an_exception_names_those_that_led_to_it(self):
        said = self.refused(tundish.DataError, "range: {stop: 2}", stage("led_to"), "batch: 2")
        self.assertRegex(said, r"ValueError: no label \(functions.py:\d+ in led_to\), after KeyError: 'label' \(func")

    def test_a_class_is_made_once_with_its_arguments(self):
        added = stage("Added", arguments="{number: 5, words: [a, b]}")
        self.assertEqual(self.columns("range: {stop: 3}", added, "batch: 3")["y"], [7, 8, 9])

    def test_an_interpreter_that_dies_has_its_rows_tried_again(self):
        found = self.columns("range: {stop: 6}", stage("dies_once"), "batch: 6")
        self.assertEqual(found["y"], list(range(6)))

    def test_a_row_at_which_two_have_died_is_bad(self):
        for call, rows in (("dies", "one"), ("all_die", "many")):
            stages = ("range: {stop: 6}", stage(call, rows=rows), "batch: 6")
            self.assertIn("was ended by signal", self.refused(tundish.DataError, *stages))
            found = self.columns(*stages, deliver="{epochs: 1, on_error: skip}")
            self.assertEqual(found["y"], [0, 1, 2, 4, 5])

    def test_a_call_that_hangs_is_ended_and_says_where(self):
        stages = ("range: {stop: 6}", stage("hangs", timeout="300ms"), "batch: 6")
        said = self.refused(tundish.DataError, *stages)
        self.assertRegex(said, r'took longer than 0.3 s: File ".*functions.py", line \d+ in hangs')
        found = self.columns(*stages, deliver="{epochs: 1, on_error: skip}")
        self.assertEqual(found["y"], [0, 1, 2, 4, 5])

    def test_an_interpreter_that_takes_too_much_memory_is_ended(self):
        stages = ("range: {stop: 6}", stage("swells", memory="200MiB"), "batch: 6")
        said = self.refused(tundish.DataError, *stages)
        self.assertRegex(said, r"functions:swells: an interpreter has \d+ MiB, and memory allows 200 MiB")
        found = self.columns(*stages, deliver="{epochs: 1, on_error: skip}")
        self.assertEqual(found["y"], [0, 1, 2, 4, 5])

    def test_one_that_leaks_is_replaced_and_no_row_is_lost(self):
        found = self.columns("range: {stop: 12}", stage("leaks", memory="200MiB", workers=1), "batch: 1")
        self.assertEqual(len(found["y"]), 12)
        self.assertGreater(len(set(found["y"])), 1)

    def test_all_that_runs_of_a_module_shares_its_interpreters(self):
        def called(name, as_column):
            output = f"{{{name}: {{dtype: int64, shape: []}}, made: {{dtype: int64, shape: []}}}}"
            stages = stage("Own", output, arguments=f"{{name: {name}}}", workers=1)
            return stages, f"map: {{made_{as_column}: made}}"

        data = 'python_dataset: {make: "functions:Own", arguments: {name: item, count: 6}, workers: 1}'
        stages = (data, *called("a", 1), *called("b", 2), stage("by_process", "{text: {dtype: string, shape: []}}", workers=1))
        found = self.columns(*stages, *called("a", 3), "batch: 2")
        process = found["item"][0]
        self.assertEqual(found["item"] + found["a"] + found["b"], [process] * 18)
        self.assertEqual(found["text"], [str(process).encode()] * 6)
        self.assertEqual(found["made"], [3] * 6)  # a data set, and objects with two arguments

    def test_made_twice_by_two_interpreters_it_is_the_same(self):
        stages = ("range: {stop: 12}", stage("draw", MADE, seed=3, workers=1), "padded_batch: 4")
        once = self.peek(*stages)
        twice = tundish.peek(self.folder / "pipeline.yaml", 100, twice=True)
        self.assertEqual([b["x"].tolist() for b in twice], [b["x"].tolist() for b in once])
        skipping = "{epochs: 1, on_error: \"skip:1\"}"
        self.peek("range: {stop: 10}", stage("three_is_bad"), "batch: 5", deliver=skipping)
        self.assertEqual(len(tundish.peek(self.folder / "pipeline.yaml", 100, twice=True)), 2)

    def test_what_differs_when_made_twice_is_named(self):
        for call, output, words in (
            ("Counts", ONE, "step 1 of epoch 0: column 'y' differs between two interpreters that made it, in row 0: "),
            ("by_process", "{text: {dtype: string}}", "step 0 of epoch 0: column 'text' differs between two"),
        ):
            self.peek("range: {stop: 12}", stage(call, output), "batch: 4")
            with self.assertRaises(tundish.DataError) as caught:
                tundish.peek(self.folder / "pipeline.yaml", 100, twice=True)
            self.assertIn(words, str(caught.exception))

    def test_columns_come_as_they_are(self):
        tensors = "{number: [1, 2], text: [a, b], vector: [[1, 2], [3, 4]], words: [[c, d], [e, f]]}"
        output = "{kinds: {dtype: string, shape: [4]}}"
        found = self.columns(f"from_tensor_slices: {tensors}", stage("columns", output), "batch: 2")
        kinds = [bytes(kind) for kind in found["kinds"][0]]
        self.assertEqual(kinds, [b"int64" if b"int64" in kinds else b"int32", b"bytes", b"ndarray", b"Strings"])

    def test_a_row_may_be_written_to(self):
        stages = ("from_tensor_slices: {vector: [[1, 2], [3, 4]]}",
                  stage("writes", "{vector: {dtype: int32, shape: [2]}}"), "batch: 2")  # fmt: skip
        self.assertEqual(self.columns(*stages)["vector"], [[9, 2], [9, 4]])

    def test_after_batch_it_takes_the_batch(self):
        output = "{sum: {dtype: int64}, rows: {dtype: int64}}"
        found = self.peek("range: {stop: 5}", "batch: 3", stage("summed", output, rows="batch"))
        self.assertEqual([(int(b["sum"]), int(b["rows"])) for b in found], [(3, 3), (7, 2)])

    def test_stages_before_and_behind_it(self):
        stages = ("range: {stop: 20}", stage("Added", arguments="{number: 1}"), 'filter: "y % 2 == 0"')
        self.assertEqual(self.columns(*stages, "batch: 4")["y"], list(range(2, 21, 2)))
        inner = f"[{{range: {{stop: 3}}}}, {{{stage('Added', arguments='{number: 1}')}}}]"
        stages = ("range: {stop: 2}", f"flat_map: {{dataset: {inner}}}", "batch: 6")
        self.assertEqual(self.columns(*stages)["y"], [1, 2, 3, 1, 2, 3])

    def test_results_that_do_not_fit_name_the_column(self):
        for call, words in {
            "float_for_int": "column 'y' wants int64[], and the function gave float64[]",
            "too_long": "column 'y' wants int64[], and the function gave int64[3]",
            "nothing": "it returned NoneType, and a mapping of its columns is wanted",
            "other": "it returned no 'y'",
            "leaves": "SystemExit: 3",
        }.items():
            said = self.refused(tundish.DataError, "range: {stop: 1}", stage(call), "batch: 1")
            self.assertIn(f"functions:{call}: {words}", said)
        small = stage("too_large", "{y: {dtype: int32}}")
        self.assertEqual(self.columns("range: {stop: 1}", small, "batch: 1")["y"], [0])
        said = self.refused(tundish.DataError, "range: {stop: 2}", small, "batch: 2")
        self.assertIn("column 'y' is int32, and the function gave 1099511627776 there", said)

    def test_what_cannot_be_called_is_found_before_anything_runs(self):
        (self.folder / "broken.py").write_text("import nothing_like_it\n")
        for call, words in {
            "functions:absent": "AttributeError: module 'functions' has no attribute 'absent'",
            "functions:ONE": "has no attribute 'ONE'",
            "broken:f": "ModuleNotFoundError: No module named 'nothing_like_it' (broken.py:1 in <module>)",
            "no_such_module:f": "ModuleNotFoundError: No module named 'no_such_module'",
            "functions": "call is a module and a name in it",
        }.items():
            python = f'python: {{call: "{call}", output: {ONE}}}'
            self.assertIn(words, self.refused(tundish.PipelineError, "range: {stop: 1}", python, "batch: 1"))
        many = stage("is_none", rows="many")
        said = self.refused(tundish.PipelineError, "range: {stop: 1}", many, "batch: 1")
        self.assertIn("write rows: one", said)
        for rows, before, words in (("one", ["batch: 1"], "stands after a batch"),
                                    ("batch", [], "before the first one")):  # fmt: skip
            python = stage("nothing", rows=rows)
            said = self.refused(tundish.PipelineError, "range: {stop: 1}", *before, python)
            self.assertIn(words, said)


    def test_at_inference_nothing_is_drawn(self):
        rows = ("from_tensor_slices: {value: [1, 2]}", stage("is_none"), "batch: 2")
        self.assertEqual(self.columns(*rows)["y"], [0, 0])
        transform = tundish.Transform(self.folder / "pipeline.yaml")
        self.assertEqual(transform({"value": [5, 6]})["y"].tolist(), [1, 1])

    def test_ragged_and_sparse_columns_come_as_such(self):
        words = 'text_vectorization: {columns: text, vocabulary: [a, b, c], ragged: true, output_mode: int}'
        rows = ('from_tensor_slices: {text: ["a b", "c"]}', words, stage("ids", "{ids: {dtype: int64, shape: [null]}}"),
                "ragged_batch: 2", stage("ragged", rows="batch"))  # fmt: skip
        (batch,) = self.peek(*rows)
        self.assertEqual(int(batch["y"]), 3)

    def test_items_of_a_data_set(self):
        spec = "{square: {dtype: int64}, name: {dtype: string}, drawn: {dtype: float64}}"
        data = f'python_dataset: {{make: "functions:Squares", arguments: {{count: 12}}, seed: 2, spec: {spec}}}'
        first = self.columns(data, "repeat: 2", "batch: 5")
        self.assertEqual(first["square"], [n * n for n in range(12)] * 2)
        self.assertEqual([bytes(name) for name in first["name"][:2]], [b"item 0", b"item 1"])
        self.assertEqual(len(set(first["drawn"])), 24)  # each epoch draws anew
        drawn = dict(zip(first["square"], first["drawn"][:12]))
        for order in ("shuffle: {buffer_size: -2, seed: 1}", "permute: {seed: 1}"):
            found = self.columns(data, order, "batch: 5")
            self.assertEqual(sorted(found["square"]), [n * n for n in range(12)])
            self.assertNotEqual(found["square"], [n * n for n in range(12)])
            self.assertEqual(dict(zip(found["square"], found["drawn"])), drawn)
        self.assertEqual(self.columns(data, "skip: 10", "batch: 5")["square"], [100, 121])

    def test_items_of_each_form(self):
        for make, spec, values in (
            ("MAPPINGS", ONE, [0, 10, 20]),
            ("NUMBERS", ONE, [5, 6, 7]),
            ("make_numbers", ONE, [5, 6, 7]),
        ):
            data = f'python_dataset: {{make: "functions:{make}", spec: {spec}}}'
            self.assertEqual(self.columns(data, "batch: 2")["y"], values)

    def spec(self, *stages):
        """The columns of a batch, by the plan."""
        batch = self.peek(*stages, steps=1)[0]
        return {name: (str(getattr(column, "dtype", "string")), tuple(column.shape)) for name, column in batch.items()}

    def test_what_a_function_returns_is_learned_from_rows(self):
        learned = 'python: {call: "functions:learned"}'
        found = self.columns("range: {stop: 40}", learned, "padded_batch: 4")
        self.assertEqual([bytes(text) for text in found["text"][:2]], [b"row 0", b"row 1"])
        self.assertEqual(found["number"], list(range(40)))
        self.assertEqual(set(found["part.y"]), {1.5})
        self.assertEqual(self.spec("range: {start: 1, stop: 2}", learned, "batch: 1")["x"], ("float32", (1, 2, 1)))
        batched = 'python: {call: "functions:summed", rows: batch}'
        found = self.peek("range: {stop: 5}", "batch: 3", batched)
        self.assertEqual([int(batch["sum"]) for batch in found], [3, 7])
        many = 'python: {call: "functions:double", rows: many}'
        self.assertEqual(self.columns("range: {stop: 6}", many, "batch: 4")["value"], [0, 2, 4, 6, 8, 10])
        # One that is given what another one was learned to give.
        behind = 'python: {call: "functions:behind"}'
        self.assertEqual(self.columns("range: {stop: 6}", learned, behind, "padded_batch: 6")["z"], list(range(1, 7)))

    def test_the_plan_prints_what_was_learned(self):
        self.peek("range: {stop: 6}", 'python: {call: "functions:learned"}', "padded_batch: 6", steps=1)
        plan = [rig.BUILD / "server" / "tundish", "plan", self.folder / "pipeline.yaml"]
        printed = subprocess.run(plan, capture_output=True, text=True, check=True).stdout
        output = re.search("learned: output: (.*)", printed)[1]
        self.assertIn('"x": {"dtype": "float32", "shape": [2, null]}', output)
        # As it is printed it can be written, and then nothing is learned.
        found = self.columns("range: {stop: 6}", f'python: {{call: "functions:learned", output: {output}}}', "padded_batch: 6")
        self.assertEqual(found["number"], list(range(6)))

    def test_at_inference_there_is_no_row_to_learn_from(self):
        self.peek("from_tensor_slices: {value: [1, 2]}", 'python: {call: "functions:learned"}', "padded_batch: 2")
        with self.assertRaises(tundish.PipelineError) as caught:
            tundish.Transform(self.folder / "pipeline.yaml")
        self.assertIn("no row of its input can be had here; write output", str(caught.exception))

    def test_what_a_function_returns_is_read_from_its_annotation(self):
        self.assertEqual(
            self.columns("range: {stop: 3}", 'python: {call: "functions:says_class"}', "batch: 3")["y"], [0, 1, 2]
        )
        said = self.refused(tundish.DataError, "range: {stop: 3}", 'python: {call: "functions:says"}', "batch: 3")
        self.assertIn("ValueError: called", said)  # by the first batch, and not by the plan

    def test_what_cannot_be_learned_is_to_be_written(self):
        for call, before, words in {
            ("has_none", "range: {stop: 3}", "column 'y' is None"),
            ("nothing", "range: {stop: 3}", "it returned NoneType, and a mapping of its columns is wanted"),
            ("three_is_bad", "range: {start: 3, stop: 4}", "ValueError: three | is bad (functions.py:"),
            ("nothing", "range: {stop: 0}", "its input has no element"),
            ("nothing", "tfrecord: [http://127.0.0.1:1/a]", "its input is behind URLs"),
        }:
            python = f'python: {{call: "functions:{call}"}}'
            said = self.refused(tundish.PipelineError, before, python, "batch: 1")
            self.assertIn(f"what functions:{call} returns cannot be learned: {words}", said)
            self.assertIn("write output: {column: {dtype: ...", said)
        inner = "[{range: {stop: 3}}, {python: {call: \"functions:Added\", arguments: {number: 1}}}]"
        said = self.refused(tundish.PipelineError, "range: {stop: 2}", f"flat_map: {{dataset: {inner}}}", "batch: 6")
        self.assertIn("it stands in a dataset within the stream's", said)

    def test_a_row_of_another_size_than_was_learned_says_how_to_go_on(self):
        grows = 'python: {call: "functions:grows"}'
        said = self.refused(tundish.DataError, "range: {stop: 20}", grows, "batch: 5")
        self.assertIn("column 'x' wants uint8[2], and the function gave uint8[3]", said)
        self.assertIn("write output, with null", said)
        self.assertNotIn("write output", self.refused(tundish.DataError, "range: {stop: 1}", stage("too_long"), "batch: 1"))

    def test_items_columns_are_learned(self):
        data = 'python_dataset: {make: "functions:Pairs", arguments: {count: 100}}'
        (batch,) = self.peek(data, "take: 4", "padded_batch: 4")
        self.assertEqual(batch["0.image"].shape, (4, 4, 2))
        self.assertEqual(batch["0.label"].tolist(), [0, 1, 2, 3])
        self.assertEqual([bytes(text) for text in batch["1"]], [b"0", b"1", b"2", b"3"])
        # Of items that are alike a batch is dense.
        even = self.columns('python_dataset: {make: "functions:NUMBERS"}', "batch: 3")
        self.assertEqual(even["value"], [5, 6, 7])
        said = self.refused(tundish.PipelineError, data.replace("100", "0"), "batch: 4")
        self.assertIn("what the items of functions:Pairs are cannot be learned: it has no item; write spec", said)

    def test_an_item_that_cannot_be_made_is_named(self):
        data = f'python_dataset: {{make: "functions:Torn", spec: {ONE}}}'
        said = self.refused(tundish.DataError, data, "batch: 5")
        self.assertIn("functions:Torn: item 3: OSError: torn (functions.py:", said)
        self.assertEqual(self.columns(data, "batch: 5", deliver="{epochs: 1, on_error: skip}")["y"], [0, 1, 2, 4])
        # The columns are learned of the others.
        learned = 'python_dataset: {make: "functions:Torn"}'
        found = self.columns(learned, "batch: 5", deliver="{epochs: 1, on_error: skip}")
        self.assertEqual(found["value"], [0, 1, 2, 4])
        said = self.refused(tundish.PipelineError, 'python_dataset: {make: "functions:dies", spec: %s}' % ONE, "batch: 5")
        self.assertIn("missing 1 required positional argument", said)


@unittest.skipUnless(numpy, "needs numpy")
class Served(unittest.TestCase):
    def setUp(self):
        environment = {"TUNDISH_PYTHON": sys.executable, "TUNDISH_BUILD": str(rig.BUILD), "PYTHONPATH": rig.PACKAGE}
        patched = mock.patch.dict(os.environ, environment)
        patched.start()
        self.addCleanup(patched.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        Path(folder.name, "functions.py").write_text(FUNCTIONS)

    def serve(self, *stages, **parameters):
        files = {"functions.py": FUNCTIONS.encode()}
        return rig.serve(rig.pipeline(*stages, **parameters), files=files)

    def test_a_place_goes_on_with_the_same_bits(self):
        stages = ("range: {stop: 60}", "shuffle: {buffer_size: 20, seed: 2}", stage("draw", MADE, seed=3),
                  "padded_batch: 4")  # fmt: skip

        def values(batch):
            return batch["value"].tolist(), batch["x"].tolist(), batch["careless"].tolist()

        with self.serve(*stages) as server, server.open("train") as reader:
            whole = [values(batch) for batch in reader]
        with self.serve(*stages) as server:
            with server.open("train") as reader:
                for _ in range(6):
                    values(reader.next())
                state = reader.state_dict()
            with server.open("train", group="another") as reader:
                reader.load_state_dict(state)
                self.assertEqual([values(batch) for batch in reader], whole[6:])

    def test_a_place_is_of_a_data_set_of_this_length(self):
        data = 'python_dataset: {make: "functions:Squares", arguments: {count: %d}, spec: %s}'
        spec = "{square: {dtype: int64}, name: {dtype: string}, drawn: {dtype: float64}}"
        order = ("shuffle: {buffer_size: -2, seed: 1}", "batch: 4")
        with self.serve(data % (40, spec), *order) as server:
            with server.open("train") as reader:
                whole = [batch["square"].tolist() for batch in reader]
        with self.serve(data % (40, spec), *order) as server, server.open("train") as reader:
            for _ in range(3):
                reader.next()
            state = reader.state_dict()
        with self.serve(data % (40, spec), *order) as server, server.open("train") as reader:
            reader.load_state_dict(state)
            self.assertEqual([batch["square"].tolist() for batch in reader], whole[3:])
        with self.serve(data % (41, spec), *order) as server, server.open("train") as reader:
            with self.assertRaises(tundish.PlaceError):
                reader.load_state_dict(state)
                reader.next()

    def test_a_data_set_that_has_grown_is_named(self):
        rows = rig.pipeline(f'python_dataset: {{make: "own:DATA", spec: {ONE}}}', "permute: {seed: 1}", "batch: 4")
        with rig.serve(rows, files={"own.py": b"DATA = list(range(40))"}) as server, server.open("train") as reader:
            reader.next()
            state = reader.state_dict()
        with rig.serve(rows, files={"own.py": b"DATA = list(range(41))"}) as server, server.open("train") as reader:
            with self.assertRaises(tundish.PlaceError) as caught:
                reader.load_state_dict(state)
                reader.next()
        self.assertIn("own:DATA changed since the place was saved", str(caught.exception))

    def test_a_place_goes_on_with_changed_code_where_order_does_not_hang_on_it(self):
        # The number of interpreters and their limits change no row.
        before = "python: {call: 'own:f', workers: 1, output: {y: {dtype: int64}}}"
        after = "python: {call: 'own:f', workers: 2, timeout: 50s, memory: 4GiB, output: {y: {dtype: int64}}}"
        code = "def f(row): return {'y': %s + row['value']}\n"

        def states(python, number, *behind, state=None, count=3, size=1):
            rows = rig.pipeline("range: {stop: 40}", "shuffle: {buffer_size: 9, seed: 1}", python, *behind, "batch: 4")
            files = {"own.py": (code % number).encode(), "size": b"%d" % size}
            with rig.serve(rows, files=files) as server:
                with server.open("train") as reader:
                    if state is not None:
                        reader.load_state_dict(state)
                    found = [reader.next()["y"].tolist() for _ in range(count)]
                    state = reader.state_dict()
                return found, state, server.whole_log()

        whole, _, _ = states(before, 0, count=6)
        _, state, log = states(before, 0)
        self.assertNotIn("code_changed", log)
        same, _, log = states(after, 0, state=state)
        self.assertEqual(same, whole[3:])
        self.assertNotIn("code of", log)
        changed, _, log = states(after, 1000, state=state)
        self.assertEqual(changed, [[1000 + y for y in batch] for batch in whole[3:]])
        self.assertEqual(log.count("the code of python (line "), 1)
        # What was learned of it is no part of the code: with another seed other rows are tried.
        learned, sized = "python: {call: 'own:f'}", "__import__('numpy').zeros(int(open('size').read()))"
        _, state, _ = states(learned, sized, count=1, size=2)
        found, _, log = states(learned, sized, state=state, count=1, size=3)
        self.assertEqual(len(found[0][0]), 3)
        self.assertNotIn("code of", log)
        # A filter behind it lets other rows pass, so that no place of then is one of now.
        _, state, _ = states(before, 0, "filter: y % 2 == 0")
        states(before, 0, "filter: y % 2 == 0", state=state, count=1)
        with self.assertRaises(tundish.PlaceError) as caught:
            states(before, 1, "filter: y % 2 == 0", state=state)
        self.assertRegex(str(caught.exception), r"the code of python \(line \d+\), which decides the order, changed since")

    def test_what_it_made_is_cached_in_a_file_until_its_code_changes(self):
        stages = ["range: {stop: 9}", "python: {call: 'own:f', seed: 3, output: {y: {dtype: float64}}}",
                  "cache: {filename: made}", "batch: 9"]  # fmt: skip
        code = "def f(row, rng): return {'y': %s + rng.random()}\n"
        with tempfile.TemporaryDirectory() as folder:

            def made(number):
                (Path(folder) / "own.py").write_text(code % number)
                (Path(folder) / "rows.yaml").write_text(rig.pipeline(*stages))
                with tundish.serve(f"{folder}/rows.yaml") as server, server.open("train") as reader:
                    return [batch["y"].tolist() for batch in reader]

            first = made(0)
            self.assertEqual(made(0), first)
            with self.assertRaisesRegex(tundish.DataError, "another pipeline.* code.*; remove the file"):
                made(1)
            os.remove(f"{folder}/made")
            self.assertNotEqual(made(1), first)

    def test_code_is_of_the_file_as_it_is_though_bytecode_bears_its_second(self):
        patched = mock.patch.dict(os.environ, {"PYTHONDONTWRITEBYTECODE": ""})
        with tempfile.TemporaryDirectory() as folder, patched:

            def made(number):
                for name, text in (
                    ("own", "import helper\ndef f(row): return {'y': %d + helper.N}\n"),
                    ("helper", "N = 1%d\n"),
                ):
                    (Path(folder) / f"{name}.py").write_text(text % number)
                    bytecode = Path(importlib.util.cache_from_source(f"{folder}/{name}.py"))
                    seconds = int(time.time() if number == 1 else bytecode.stat().st_mtime)
                    os.utime(f"{folder}/{name}.py", (seconds, seconds))
                (Path(folder) / "rows.yaml").write_text(
                    rig.pipeline("range: {stop: 2}", "python: {call: 'own:f'}", "batch: 2")
                )
                with tundish.serve(f"{folder}/rows.yaml") as server, server.open("train") as reader:
                    return reader.next()["y"].tolist()

            self.assertEqual([made(n) for n in (1, 2, 3)], [[12, 12], [14, 14], [16, 16]])

    def test_replicas_and_streams_share_the_interpreters(self):
        rows = ("range: {stop: 400}", stage("slow", workers=2), "batch: 10")
        with self.serve(*rows, replicas=2) as server:
            found = [None, None]

            def read(replica):
                with server.open("train", replica=replica) as reader:
                    found[replica] = [n for batch in reader for n in batch["y"].tolist()]

            threads = [threading.Thread(target=read, args=(replica,)) for replica in range(2)]
            for thread in threads:
                thread.start()
            most = 0
            while any(thread.is_alive() for thread in threads):
                most = max(most, len(interpreters(server.process.pid)))
                time.sleep(0.02)
            self.assertEqual(sorted(found[0] + found[1]), list(range(400)))
            self.assertIn(most, (1, 2))

    def test_no_row_is_lost_when_interpreters_are_killed(self):
        rows = ("range: {stop: 1500}", stage("slow", workers=2), "batch: 10")
        with self.serve(*rows) as server:
            done = threading.Event()
            killed = []

            def kill():
                while not done.wait(0.15):
                    for pid in interpreters(server.process.pid)[:1]:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                            killed.append(pid)

            killer = threading.Thread(target=kill)
            with server.open("train") as reader:
                killer.start()
                try:
                    found = []
                    for batch in reader:
                        found += batch["y"].tolist()
                except tundish.DataError as error:
                    # The same row was hit twice, which makes it bad.
                    self.assertIn("was ended by signal 9", str(error))
                finally:
                    done.set()
                    killer.join()
            self.assertEqual(found, list(range(len(found))))
            self.assertTrue(killed)

    def test_a_module_that_is_edited_while_it_runs_is_noted(self):
        with self.serve("range: {stop: 8}", stage("edits", workers=1), "batch: 4") as server:
            with server.open("train") as reader:
                self.assertEqual([n for batch in reader for n in batch["y"].tolist()], list(range(8)))
            self.assertEqual(server.whole_log().count("functions:edits: its module has changed since"), 1)

    def test_what_a_function_prints_is_logged_so_far(self):
        with self.serve("range: {stop: 1000}", stage("talks", workers=1), "batch: 100") as server:
            with server.open("train") as reader:
                self.assertEqual(sum(len(batch["y"]) for batch in reader), 1000)
            lines = [line for line in server.whole_log().splitlines() if "functions:talks: row " in line]
            left_out = "(more lines of functions:talks are left out: 100 were shown within a minute)"
            self.assertEqual(server.whole_log().count(left_out), 1)
        self.assertRegex(lines[0], r"functions:talks: row \d+$")
        self.assertEqual(len(lines), 100)  # of a minute

    def test_no_interpreter_outlives_a_server_that_is_killed(self):
        with self.serve("range: {stop: 100000}", stage("slow", workers=2), "batch: 10") as server:
            with server.open("train") as reader:
                reader.next()
            ours = children(server.process.pid) | set(interpreters(server.process.pid))
            self.assertTrue(ours)
            server.kill()
            until = time.monotonic() + rig.DEADLINE_S
            while any(map(is_there, ours)):
                self.assertLess(time.monotonic(), until, "an interpreter is left")
                time.sleep(0.01)

    def test_a_server_that_users_share_runs_python_when_asked_to(self):
        group = grp.getgrgid(os.getgid()).gr_name
        inner = f"[{{range: {{stop: 3}}}}, {{{stage('slow')}}}]"
        for rows in (("range: {stop: 6}", stage("slow")), ("range: {stop: 2}", f"flat_map: {{dataset: {inner}}}")):
            text = rig.pipeline(*rows, "batch: 3")
            with self.assertRaises(tundish.PipelineError) as caught:
                tundish.serve(text=text, group=group, root=self.folder)
            self.assertIn(f"group {group} get what it makes: give --allow-python", str(caught.exception))
            self.assertEqual(str(caught.exception).count("--allow-python"), 1)
            with tundish.serve(text=text, group=group, allow_python=True, root=self.folder) as server:
                with server.open("train") as reader:
                    self.assertEqual(sum(len(batch["y"]) for batch in reader), 6)

    def test_a_stop_does_not_wait_for_a_call(self):
        with self.serve("range: {stop: 100}", stage("hangs", timeout="500s"), "batch: 3") as server:
            with server.open("train") as reader:
                reader.next()
                time.sleep(0.2)  # the next batch is being made
                server.process.terminate()
                with self.assertRaises((tundish.Stopped, tundish.ServerGone)):
                    reader.next()
            self.assertEqual(server.process.wait(rig.DEADLINE_S), 0)
            self.assertNotIn("stopped while", server.log())

    def test_an_interpreter_that_is_slow_to_start_holds_up_no_row(self):
        """All but the first import without an end."""
        own = (
            "import os, time\n"
            "first = os.path.join(os.path.dirname(__file__), 'first')\n"
            "try: os.close(os.open(first, os.O_CREAT | os.O_EXCL))\n"
            "except FileExistsError: time.sleep(1000)\n"
            "def f(row): return {'y': row['value']}\n"
        )
        python = "python: {call: 'own:f', workers: 4, output: {y: {dtype: int64}}}"
        text = rig.pipeline("range: {stop: 400}", python, "batch: 4")
        with rig.serve(text, "--threads", "4", files={"own.py": own.encode()}) as server:
            with server.open("train") as reader:
                self.assertEqual([y for batch in reader for y in batch["y"].tolist()], [*range(400)])
            server.process.terminate()
            self.assertEqual(server.process.wait(rig.DEADLINE_S), 0)


if __name__ == "__main__":
    unittest.main()
