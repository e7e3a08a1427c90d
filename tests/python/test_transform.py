"""tundish.Transform: what the server serves, for the same rows, from many threads and after bad input."""

import gc
import io
import os
import random
import sys
import tempfile
import threading
import unittest
from importlib.util import find_spec
from pathlib import Path

import rig

import numpy as np
import tundish
from tundish import Ragged, Sparse, Strings

BRAIN = "brain: 'cast(x, bfloat16)', " if find_spec("ml_dtypes") else ""  # NumPy has no bfloat16
STAGES = (
    "csv: {filenames: rows.csv, record_defaults: [0, {values: 0.0, dtype: float64}, ''], "
    "column_names: [id, x, words]}",
    f"map: {{id: id, x: x, half: 'cast(x, float16)', odd: 'id % 2 == 1', {BRAIN}words: words}}",
    "string_split: {columns: words, output: parts}",
    "string_length: {columns: parts, output: lengths}",
    "ragged_batch: 16",
    "to_sparse: {columns: parts, output: apart}",
    "to_sparse: {columns: lengths, output: far}",
)


def lines_of(count):
    chance = random.Random(5)
    words = ["a", "bc", "\u00fcber", "dd"]
    return [
        f"{chance.randrange(-9, 99)},{chance.gauss(0, 1):.9g},{' '.join(chance.choices(words, k=i % 5))}"
        for i in range(count)
    ]


def facts(column):
    """All of a column: its type, its dtypes and shapes, its bytes."""
    if isinstance(column, Strings):
        return "Strings", column.shape, column.to_list()
    if isinstance(column, Ragged):
        return "Ragged", [facts(splits) for splits in column.row_splits], facts(column.values)
    if isinstance(column, Sparse):
        return "Sparse", column.shape, facts(column.indices), facts(column.values)
    return str(column.dtype), column.shape, column.tobytes()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tundish-transform-")
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def open(self, *stages, deliver="{epochs: 1}", **options):
        file = self.path / "pipeline.yaml"
        file.write_text(rig.pipeline(*stages, deliver=deliver))
        return tundish.Transform(file, cache=self.path / "cache", **options)


class Served(Case):
    def test_columns_of_every_kind_are_what_the_server_serves(self):
        lines = lines_of(60)
        content = "".join(f"{line}\n" for line in lines).encode()
        with rig.serve(rig.pipeline(*STAGES), files={"rows.csv": content}) as server:
            transform = tundish.Transform(server.path / "pipeline.yaml", stream="train")
            with server.open("train") as reader:
                for batch in reader:
                    columns = transform(lines[16 * batch.step : 16 * batch.step + 16])
                    self.assertEqual(list(columns), list(batch))
                    for name in batch:
                        self.assertEqual(facts(columns[name]), facts(batch[name]), name)
                self.assertEqual(batch.step, 3)
                kinds = {name: (spec.dtype, spec.kind) for name, spec in reader.spec.items()}
                self.assertEqual({n: (s.dtype, s.kind) for n, s in transform.spec.items()}, kinds)

    def test_four_threads_at_once_get_what_one_gets(self):
        lines = lines_of(400)
        transform = self.open(*STAGES)
        chunks = [lines[i : i + 40] for i in range(0, 400, 40)]
        expected = [{n: facts(c) for n, c in transform(chunk).items()} for chunk in chunks]
        wrong = []

        def work(seed):
            chance = random.Random(seed)
            kept = []
            for _ in range(60):
                i = chance.randrange(len(chunks))
                kept.append((i, transform(chunks[i])))
                del kept[: chance.randrange(3)]
            wrong.extend(i for i, columns in kept
                         if {n: facts(c) for n, c in columns.items()} != expected[i])
            wrong.append("ended")

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, ["ended"] * 4)

    def test_other_threads_run_meanwhile(self):
        transform = self.open(*STAGES)
        lines = lines_of(200)
        go, ran = threading.Event(), []
        thread = threading.Thread(target=lambda: (go.wait(), ran.append(True)))
        thread.start()
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e6)  # from now on a thread runs only if another one lets it
        go.set()
        for _ in range(1000):
            transform(lines)
            if ran:
                break
        has_run = bool(ran)
        sys.setswitchinterval(interval)
        thread.join()
        self.assertTrue(has_run)


    def test_a_forked_child_goes_on_by_itself(self):
        transform = self.open(*STAGES)
        lines = lines_of(20)
        expected = {name: facts(column) for name, column in transform(lines).items()}
        child = os.fork()
        if child == 0:
            os._exit({name: facts(column) for name, column in transform(lines).items()} != expected)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class Results(Case):
    def test_outlive_the_transform_and_cannot_be_written_to(self):
        transform = self.open(*STAGES)
        lines = lines_of(10)
        expected = {name: facts(column) for name, column in transform(lines).items()}
        columns = transform(lines)
        for _ in range(3):
            transform(lines_of(20))
        del transform
        gc.collect()
        self.assertEqual({name: facts(column) for name, column in columns.items()}, expected)
        with self.assertRaises(ValueError):
            columns["id"][0] = 1
        self.assertEqual(columns["x"].__array_interface__["data"][0] % 64, 0)
        lone = columns["parts"].values.bytes
        text = lone.tobytes()
        del columns
        gc.collect()
        self.assertEqual(lone.tobytes(), text)

    def test_that_are_kept_stay_as_they_are(self):
        transform = self.open(*STAGES)
        chunks = [lines_of(3 + i) for i in range(40)]
        kept = [transform(chunk) for chunk in chunks]
        for chunk, columns in zip(chunks, kept):
            self.assertEqual([f"{i}" for i in columns["id"]], [line.split(",")[0] for line in chunk])
            self.assertEqual(columns["words"].to_list(), [line.split(",")[2].encode() for line in chunk])
            self.assertEqual(columns["parts"].to_list(),
                             [line.split(",")[2].encode().split() for line in chunk])

    def test_do_not_change_with_the_arrays_that_went_in(self):
        transform = self.open("from_tensor_slices: {a: [1, 2], b: [3, 4]}", "map: {a: a, c: 'a + b'}")
        a, b = np.array([5, 6], np.int32), np.array([1, 1], np.int32)
        columns = transform({"a": a, "b": b})
        a[:] = 0
        del a, b
        gc.collect()
        self.assertEqual([columns["a"].tolist(), columns["c"].tolist()], [[5, 6], [6, 7]])


class Rows(Case):
    COLUMNS = (
        "from_tensor_slices: {i: {values: [1, 2], dtype: int8}, m: [[1.0, 2.0], [3.0, 4.0]], "
        "t: [[a, b], [c, d]], yes: [true, false]}",
        "batch: 2",
    )

    def test_are_arrays_lists_or_strings(self):
        transform = self.open(*self.COLUMNS)
        self.assertEqual({n: (s.dtype, s.shape) for n, s in transform.inputs.items()},
                         {"i": ("int8", ()), "m": ("float32", (2,)), "t": ("string", (2,)),
                          "yes": ("bool", ())})
        texts = [[b"x\0", b""], ["\u00fc", "z"]]
        want = [[b"x\0", b""], [b"\xc3\xbc", b"z"]]
        strings = Strings(np.frombuffer(b"_x\0\xc3\xbcz", np.uint8), np.array([1, 3, 3, 5, 6]), (2, 2))
        rows = {"i": [-128, 127], "m": [[1, 2], [3, 4.5]], "t": texts, "yes": [True, False]}
        for t in (texts, strings, np.array(texts, object)):
            columns = transform({**rows, "t": t})
            self.assertEqual(columns["t"].to_list(), want)
            self.assertEqual(columns["m"].tolist(), [[1, 2], [3, 4.5]])
            self.assertEqual(columns["i"].tolist(), [-128, 127])
            self.assertEqual(columns["yes"].tolist(), [True, False])
        backwards = np.array([[4, 3], [2, 1]], np.float32)[::-1, ::-1]
        columns = transform({**rows, "m": backwards, "i": np.array([1, 0], bool)})
        self.assertEqual(columns["m"].tolist(), [[1, 2], [3, 4]])
        self.assertEqual(columns["i"].tolist(), [1, 0])

    def test_may_have_a_dimension_that_varies(self):
        transform = self.open("text_line: rows", "string_split: {columns: value}")
        self.assertEqual(transform(["a b", "", "c"])["value"].to_list(), [[b"a", b"b"], [], [b"c"]])

    def test_can_be_none(self):
        transform = self.open(*STAGES)
        columns = transform([])
        self.assertEqual(columns["id"].shape, (0,))
        self.assertEqual(columns["parts"].to_list(), [])

    def test_may_be_any_buffer_of_bytes(self):
        transform = self.open("text_line: rows")
        rows = [b"a", bytearray(b"bc"), memoryview(b"d"), "\u00fc", np.bytes_(b"e")]
        want = [b"a", b"bc", b"d", "\u00fc".encode(), b"e"]
        self.assertEqual(transform(rows)["value"].to_list(), want)
        self.assertEqual(transform(iter(rows))["value"].to_list(), want)

    def test_that_do_not_fit_are_refused_with_a_remedy(self):
        transform = self.open(*self.COLUMNS)
        rows = {"i": [1], "m": [[1, 2]], "t": [["a", "b"]], "yes": [True]}
        for change, words in {
            ("i", (200,)): "not all of .200,. fit into int8",
            ("i", (1.5,)): "not all of .1.5,. fit into int8",
            ("i", ("x",)): "not numbers",
            ("m", ((1, 2), (3,))): "inhomogeneous",
            ("i", 3): "a single value is not a column of rows",
            ("m", ((1, 2, 3),)): r"\[3\] instead of \[2\]",
            ("t", (("a", 3),)): "3 is neither bytes nor str",
            ("yes", (True, False)): "different numbers of rows",
        }.items():
            name, value = change
            with self.assertRaisesRegex(tundish.ArgumentError, words, msg=str(change)):
                transform({**rows, name: value})
        with self.assertRaisesRegex(tundish.ArgumentError, r"astype\('float32'\)"):
            transform({**rows, "m": np.zeros((1, 2))})
        with self.assertRaisesRegex(tundish.ColumnError, "'mm': did you mean 'm'"):
            transform({**rows, "mm": [[1, 2]]})
        del rows["yes"]
        with self.assertRaisesRegex(tundish.ColumnError, "no column 'yes'"):
            transform(rows)
        with self.assertRaisesRegex(tundish.ArgumentError, "a list of records"):
            transform(b"one")
        with self.assertRaisesRegex(tundish.ArgumentError, "named columns, not records"):
            transform([b"one"])

    def test_that_are_bad_are_named(self):
        transform = self.open(*STAGES)
        for bad, words in {"x,1,a": "row 30: ", "1,2": "row 30: .*[Ee]xpect 3 fields"}.items():
            with self.assertRaisesRegex(tundish.DataError, words) as caught:
                transform([*lines_of(30), bad, bad])
            self.assertEqual(caught.exception.status, "E_DATA")
        with self.assertRaisesRegex(TypeError, "row 1 is .*int"):
            transform([b"1,2,a", 7])
        self.assertEqual(transform(["1,2,a"])["id"].tolist(), [1])

    def test_that_unpack_to_too_much_are_bad(self):
        import zlib

        transform = self.open("tfrecord: rows",
                              "decode_compressed: {columns: value, compression_type: ZLIB}",
                              deliver="{memory_limit: 16MiB}")
        with self.assertRaisesRegex(tundish.DataError, "row 1: .*memory_limit"):
            transform([zlib.compress(b"good"), zlib.compress(bytes(32 << 20))])
        self.assertEqual(transform([zlib.compress(b"good")])["value"].to_list(), [b"good"])


class Extension(Case):
    """tundish._transform itself, which Python's part shields from most of this."""

    def raw(self, *stages):
        return self.open(*stages)._transform

    def test_refuses_buffers_that_are_not_what_they_must_be(self):
        numbers = self.raw("from_tensor_slices: {x: {values: [[1, 2], [3, 4]], dtype: int64}}")
        texts = self.raw("from_tensor_slices: {t: [a, b]}")
        eight = np.arange(8, dtype=np.int64)
        offset = np.array([0, 1, 2], np.int64)
        for raw, columns, rows in (
            (numbers, [], 1),
            (numbers, [(eight, None, None)], -1),
            (numbers, [(eight, None, None)], 3),
            (numbers, [(eight, None, None)], 1 << 62),
            (numbers, [(None, None, None)], 4),
            (numbers, [(eight, None)], 4),
            (numbers, [3], 4),
            (numbers, [(memoryview(bytes(65))[1:], None, None)], 4),
            (numbers, [(np.arange(16)[::2], None, None)], 4),
            (texts, [(b"ab", None, None)], 2),
            (texts, [(b"ab", np.array([0, 1, 3]), None)], 2),
            (texts, [(b"ab", np.array([0, -1, 2]), None)], 2),
            (texts, [(b"ab", np.array([2, 1, 2]), None)], 2),
            (texts, [(b"ab", np.array([1 << 62, 1 << 62, 1 << 62]), None)], 2),
            (texts, [(b"ab", offset[:2], None)], 2),
            (texts, [(b"ab", offset.tobytes()[:23], None)], 2),
        ):
            with self.assertRaises((TypeError, ValueError, BufferError), msg=(columns, rows)):
                raw.rows(columns, rows)
        dtype, kind, shape, parts = numbers.rows([(eight, None, None)], 4).column(0)
        self.assertEqual((dtype, kind, shape), ("int64", "dense", [4, 2]))
        self.assertEqual(bytes(parts[0]), eight.tobytes())
        self.assertEqual(bytes(texts.rows([(b"ab", offset, None)], 2).column(0)[3][0]), b"ab")

    def test_refuses_what_is_no_column(self):
        result = self.raw("text_line: rows").records([b"a"])
        for index in (1, -1, 1 << 70, "value"):
            with self.assertRaises((IndexError, OverflowError, TypeError)):
                result.column(index)
        with self.assertRaises(TypeError):
            type(result)()
        [part, *_] = result.column(0)[3]
        self.assertTrue(memoryview(part).readonly)
        with self.assertRaises(TypeError):
            io.BytesIO(b"z").readinto(part)

    def test_keeps_nothing_of_what_is_dropped(self):
        if "libasan" in os.environ.get("LD_PRELOAD", ""):
            self.skipTest("AddressSanitizer keeps for a while what is freed")
        transform = self.open(*STAGES)
        lines = lines_of(50)

        def work(times):
            kept = []
            for i in range(times):
                kept.append(transform(lines))
                with self.assertRaises(tundish.DataError):
                    transform(["x"])
                del kept[: i % 12]

        def resident_bytes():
            gc.collect()
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

        work(300)
        before = resident_bytes()
        references = sys.getrefcount(lines[0])
        work(3000)
        self.assertEqual(sys.getrefcount(lines[0]), references)
        self.assertLess(resident_bytes() - before, 4 << 20)


class Files(Case):
    def test_that_are_wrong_are_told(self):
        with self.assertRaisesRegex(tundish.PipelineError, "pipeline.yaml:5:9: .*did you mean range"):
            self.open("rnage: 3")
        with self.assertRaisesRegex(tundish.PipelineError, "no stream 'eval'"):
            self.open("range: 3", stream="eval")
        with self.assertRaisesRegex(tundish.SystemFault, "none.yaml: No such file"):
            tundish.Transform(self.path / "none.yaml")
        with self.assertRaisesRegex(tundish.PipelineError, "analyze"):
            self.open("from_tensor_slices: {x: [1.0, 2.0]}", "scale_to_z_score: {columns: x}")

    def test_are_applied_until_a_stage(self):
        transform = self.open("from_tensor_slices: {x: [1.0]}", "rescaling: {scale: 2}", "map: {x: 'x + 1'}",
                              until="rescaling")
        self.assertEqual(transform({"x": [1.0, 2.0]})["x"].tolist(), [2.0, 4.0])


if __name__ == "__main__":
    unittest.main()
