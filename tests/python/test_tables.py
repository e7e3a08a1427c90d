"""Tables of other libraries as rows of a `program` stage: what goes in comes out, to the bit."""

import datetime
import decimal
import io
import os
import random
import unittest

import rig  # noqa: F401 - makes the package importable

from tundish.rows import RowWriter

try:
    import pyarrow as pa
except ImportError:
    pa = None

try:
    import polars
except ImportError:
    polars = None

try:
    import duckdb
except ImportError:
    duckdb = None

ROWS = 5000  # more than are written at once


def columns(draw):
    """Column to (dtype, shape, Arrow's type, its values, what to write for them, what for null)."""
    day = datetime.date(1970, 1, 1)
    made = {"b": ("bool", pa.bool_(), [draw.random() < 0.5 for _ in range(ROWS)])}
    for bits in (8, 16, 32, 64):
        for sign in ("", "u"):
            low = 0 if sign else -(1 << bits - 1)
            numbers = [draw.randrange(low, low + (1 << bits)) for _ in range(ROWS)]
            made[f"{sign}{bits}"] = (f"{sign}int{bits}", getattr(pa, f"{sign}int{bits}")(), numbers)
    for name, dtype in (("f", pa.float32()), ("d", pa.float64())):
        floats = pa.array([draw.gauss(0, 1e9) for _ in range(ROWS)]).cast(dtype).to_pylist()
        made[name] = (f"float{dtype.bit_width}", dtype, floats)
    texts = ["" if draw.random() < 0.2 else "ü" * draw.randrange(30) for _ in range(ROWS)]
    for name in ("string", "large_string", "string_view"):
        made[name] = ("string", getattr(pa, name)(), texts)
    for name in ("binary", "large_binary", "binary_view"):
        made[name] = ("string", getattr(pa, name)(), [text.encode() for text in texts])
    made["fixed"] = ("string", pa.binary(3), [draw.randbytes(3) for _ in range(ROWS)])
    few = [draw.choice(("a", "bb", "")) for _ in range(ROWS)]
    for index in (pa.int8(), pa.uint16(), pa.int32(), pa.uint64()):
        made[f"words {index}"] = ("string", pa.dictionary(index, pa.string()), few)
    made["numbers"] = ("int32", pa.dictionary(pa.int16(), pa.int32()), [len(text) - 1 for text in few])
    result = {name: (dtype, [], arrow, values, values) for name, (dtype, arrow, values) in made.items()}
    days = [draw.randrange(-(10**5), 10**5) for _ in range(ROWS)]
    result["date"] = ("int32", [], pa.date32(), [day + datetime.timedelta(n) for n in days], days)
    result["time"] = ("int64", [], pa.timestamp("us", "UTC"), days, days)
    result["span"] = ("int64", [], pa.duration("ms"), days, days)
    cents = [decimal.Decimal(n).scaleb(-2) for n in days]
    result["cents"] = ("int64", [], pa.decimal128(18, 2), cents, days)
    lists = [[draw.randrange(99) for _ in range(draw.randrange(4))] for _ in range(ROWS)]
    result["list"] = ("int16", [None], pa.list_(pa.int16()), lists, lists)
    words = [[str(n) for n in part] for part in lists]
    result["large list"] = ("string", [None], pa.large_list(pa.string()), words, words)
    pairs = [[n, -n] for n in days]
    result["pairs"] = ("float32", [2], pa.list_(pa.float32(), 2), pairs, pairs)
    return result


def written(spec, table, default_values=None):
    output = io.BytesIO()
    with RowWriter(spec, output) as rows:
        rows.write_table(table, default_values)
    return output.getvalue()


def written_one_by_one(spec, rows):
    output = io.BytesIO()
    with RowWriter(spec, output) as writer:
        for row in rows:
            writer.write(**row)
    return output.getvalue()


@unittest.skipIf(pa is None, "pyarrow is not installed")
class Tables(unittest.TestCase):
    def setUp(self):
        self.seed = int(os.environ.get("SEED", "1"))
        self.draw = random.Random(self.seed)

    def table(self, nulls=0.0):
        """A table of every type, its spec, and its rows as they are to be written, None for null."""
        fields, spec, rows = {}, {}, [{} for _ in range(ROWS)]
        for name, (dtype, shape, arrow, values, numbers) in columns(self.draw).items():
            there = [self.draw.random() >= nulls for _ in range(ROWS)]
            fields[name] = pa.array([v if is_there else None for v, is_there in zip(values, there)], arrow)
            spec[name] = (dtype, shape)
            for row, number, is_there in zip(rows, numbers, there):
                row[name] = number if is_there else None
        return pa.table(fields), spec, rows

    def test_values_of_every_type_are_those_of_the_table(self):
        table, spec, rows = self.table()
        expected = written_one_by_one(spec, rows)
        self.assertEqual(written(spec, table), expected, f"SEED={self.seed}")
        pieces = [table.slice(a, b - a) for a, b in ((0, 1), (1, 1), (1, 2003), (2003, ROWS))]
        self.assertEqual(written(spec, pa.concat_tables(pieces)), expected, f"SEED={self.seed}")
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=77))
        self.assertEqual(written(spec, reader), expected, f"SEED={self.seed}")

    def test_nulls_are_their_default_values_and_empty_lists(self):
        table, spec, rows = self.table(nulls=0.3)
        fallbacks = {name: "?" if dtype == "string" else 1 for name, (dtype, _) in spec.items()}
        for row in rows:
            for name, value in row.items():
                if value is None:
                    shape = spec[name][1]
                    row[name] = [] if shape == [None] else [fallbacks[name]] * 2 if shape else fallbacks[name]
        expected = written_one_by_one(spec, rows)
        self.assertEqual(written(spec, table.slice(3), fallbacks), written_one_by_one(spec, rows[3:]))
        self.assertEqual(written(spec, table, fallbacks), expected, f"SEED={self.seed}")

    def test_a_null_without_a_default_value_is_told_with_its_row(self):
        numbers = [1] * 4500 + [None, None]
        with self.assertRaisesRegex(ValueError, "column x: row 4500 of the table is null"):
            written({"x": "int64"}, pa.table({"x": pa.array(numbers, pa.int64())}))
        with self.assertRaisesRegex(ValueError, "column x: row 1 of the table is null"):
            written({"x": ("int64", [None])}, pa.table({"x": [[1], [2, None], [None]]}))

    def test_columns_that_do_not_fit_the_spec_are_told(self):
        pairs = pa.array([[1, 2]], pa.list_(pa.int64(), 2))
        table = pa.table({"x": [1], "l": [[1]], "p": pairs, "s": [{"a": 1}]})
        for spec, words in (
            ({"y": "int64"}, "column y: the table has no such column"),
            ({"x": "int32"}, "column x: the table's is int64, not int32"),
            ({"x": ("int64", [None])}, r"column x: the table's is single values: its shape is \[\]"),
            ({"l": ("int64", [2])}, r"column l: the table's is lists: its shape is \[null\]"),
            ({"p": ("int64", [3])}, r"column p: the table's is lists of 2: its shape is \[2\]"),
            ({"s": "int64"}, "column s: the table's cannot be written: it is a struct"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                written(spec, table)
        with self.assertRaisesRegex(ValueError, "column y of default_values"):
            written({"x": "int64"}, table, {"y": 1})

    def test_a_stream_that_fails_says_why(self):
        def batches():
            yield pa.record_batch({"x": [1]})
            raise OSError("the disk is on fire")

        schema = pa.schema([("x", pa.int64())])
        with self.assertRaisesRegex(ValueError, "the disk is on fire"):
            written({"x": "int64"}, pa.RecordBatchReader.from_batches(schema, batches()))

    @unittest.skipIf(polars is None, "polars is not installed")
    def test_frames_of_polars_give_the_same_rows(self):
        table, spec, rows = self.table()
        names = [name for name in spec if not name.startswith("words") and name != "numbers"]
        spec = {name: spec[name] for name in names}
        expected = written_one_by_one(spec, [{name: row[name] for name in names} for row in rows])
        self.assertEqual(written(spec, polars.from_arrow(table.select(names))), expected)

    @unittest.skipIf(duckdb is None, "DuckDB is not installed")
    def test_relations_of_duckdb_give_the_same_rows(self):
        frame, spec, rows = self.table()  # noqa: F841 - the query names it
        names = [name for name in spec if name not in ("span", "numbers") and "view" not in name]
        spec = {name: spec[name] for name in names}
        expected = written_one_by_one(spec, [{name: row[name] for name in names} for row in rows])
        quoted = ", ".join(f'"{name}"' for name in names)
        self.assertEqual(written(spec, duckdb.sql(f"SELECT {quoted} FROM frame")), expected)


if __name__ == "__main__":
    unittest.main()
