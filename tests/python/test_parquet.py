"""Parquet files of every type, encoding, codec and version of pages, against what pyarrow reads of them.

SEED=N draws other values.
"""

import base64
import itertools
import json
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

import rig

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
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

ROWS = 137
CODECS = ("NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI")
VERSIONS = ("1.0", "2.0")
NUMBERS = ("DICTIONARY", "PLAIN", "BYTE_STREAM_SPLIT")
INTEGERS = (*NUMBERS, "DELTA_BINARY_PACKED")
TEXTS = ("DICTIONARY", "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
FIXED = ("DICTIONARY", "PLAIN", "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY")


def kinds():
    """Each type with the encodings that go with it, and the value that stands for null."""
    integers = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
    integers += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    times = [pa.date32(), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
    times += [pa.timestamp(unit) for unit in ("ms", "us", "ns")]
    return [
        (pa.bool_(), ("PLAIN", "RLE"), "true"),
        *((dtype, INTEGERS, "7") for dtype in integers),
        *((dtype, INTEGERS, "7") for dtype in times),
        *((dtype, NUMBERS, "0.5") for dtype in (pa.float32(), pa.float64())),
        (pa.float16(), FIXED, "0.5"),
        (pa.string(), TEXTS, '"none"'),
        (pa.binary(), TEXTS, '"none"'),
        (pa.binary(5), FIXED, '"-----"'),
        (pa.decimal128(9, 2), FIXED, "7"),
        (pa.decimal128(18, 0), FIXED, "7"),
    ]


def values(draw, dtype, count):
    """Some values of a type: a few that come again and again, and extreme ones."""
    if pa.types.is_boolean(dtype):
        return pa.array([draw.random() < 0.3 for _ in range(count)], dtype)
    if pa.types.is_floating(dtype):
        bits = np.frombuffer(draw.randbytes(count * dtype.bit_width // 8), dtype.to_pandas_dtype())
        few = np.array([0.0, -0.0, np.inf, np.nan, 1.5], dtype.to_pandas_dtype())
        is_few = [draw.random() < 0.5 for _ in range(count)]
        return pa.array(np.where(is_few, few[draw.randrange(5)], bits), dtype)
    if pa.types.is_decimal(dtype):
        limit = 10**dtype.precision - 1
        whole = [draw.choice((0, -1, limit, -limit, draw.randint(-limit, limit))) for _ in range(count)]
        return decimals(whole, dtype)
    if pa.types.is_fixed_size_binary(dtype):
        return pa.array([draw.choice((b"fixed", draw.randbytes(5))) for _ in range(count)], dtype)
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        words = ["", "a", "Grüße", "prefix-" * 9] + [f"prefix-{draw.randrange(1000)}" for _ in range(9)]
        texts = [draw.choice(words) for _ in range(count)]
        return pa.array([t if pa.types.is_string(dtype) else t.encode() for t in texts], dtype)
    if pa.types.is_time(dtype):
        top = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}[dtype.unit]
        numbers = [draw.choice((0, top - 1, draw.randrange(top))) for _ in range(count)]
        return pa.array(numbers, pa.int32() if dtype.bit_width == 32 else pa.int64()).cast(dtype)
    if pa.types.is_temporal(dtype):
        numbers = [draw.choice((0, -1, draw.randrange(-(10**9), 10**9))) for _ in range(count)]
        return pa.array(numbers, pa.int32() if dtype.bit_width == 32 else pa.int64()).cast(dtype)
    low = 0 if pa.types.is_unsigned_integer(dtype) else -(2 ** (dtype.bit_width - 1))
    high = low + 2**dtype.bit_width - 1
    step = draw.choice((1, 3, 1 << 7))
    numbers = [draw.choice((low, high, i * step % 100, draw.randint(low, high))) for i in range(count)]
    return pa.array(numbers, dtype)


def decimals(whole, dtype):
    data = b"".join(number.to_bytes(16, "little", signed=True) for number in whole)
    return pa.Array.from_buffers(dtype, len(whole), [None, pa.py_buffer(data)])


def with_nulls(draw, array):
    places = [i if draw.random() < 0.7 else None for i in range(len(array))]
    return array.take(pa.array(places, pa.int32()))


def as_lists(draw, array):
    """Lists of 0 to 4 of the values, some of them null."""
    ends = [0]
    while ends[-1] < len(array):
        ends.append(min(len(array), ends[-1] + draw.choice((0, 0, 1, 2, 4))))
    nulls = pa.array([draw.random() < 0.1 and a == b for a, b in itertools.pairwise(ends)])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), array, mask=nulls)


def table_of(draw, dtype):
    """One type as a column that has no nulls, one that may and has none, one with, and lists."""
    lists = as_lists(draw, with_nulls(draw, values(draw, dtype, 2 * ROWS)))
    count = len(lists)
    fields = {
        "plain": values(draw, dtype, count),
        "full": values(draw, dtype, count),
        "nulls": with_nulls(draw, values(draw, dtype, count)),
        "lists": lists,
    }
    schema = pa.schema([pa.field(name, a.type, nullable=name != "plain") for name, a in fields.items()])
    return pa.table(list(fields.values()), schema)


def stored(array, fallback):
    """An array as Tundish stores its values: bytes, or of texts the list of them."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    dtype = array.type
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype) or pa.types.is_fixed_size_binary(dtype):
        texts = (json.loads(fallback) if value is None else value for value in array.to_pylist())
        return [t.encode() if isinstance(t, str) else t for t in texts]
    if pa.types.is_decimal(dtype):
        places = dtype.scale
        whole = [int(fallback) if v is None else int(v.scaleb(places)) for v in array.to_pylist()]
        return np.array(whole, np.int64).tobytes()
    if pa.types.is_boolean(dtype):
        return np.array([True if v is None else v for v in array.to_pylist()], bool).tobytes()
    if pa.types.is_temporal(dtype):
        array = array.view(pa.int32() if dtype.bit_width == 32 else pa.int64())
    there = array.is_valid().to_numpy(zero_copy_only=False)
    width = array.type.bit_width // 8
    raw = np.frombuffer(array.buffers()[1] or b"", np.dtype(f"V{width}"))[array.offset :][: len(array)].copy()
    raw[~there] = np.array([json.loads(fallback)], array.type.to_pandas_dtype()).view(f"V{width}")[0]
    return raw.tobytes()


def expected(table, fallback):
    lists = table["lists"].combine_chunks()
    lengths = lists.value_lengths().fill_null(0).to_pylist()
    starts = list(itertools.accumulate(lengths, initial=0))
    result = {name: stored(table[name], fallback) for name in ("plain", "full", "nulls")}
    result["lists"] = (stored(lists.flatten(), fallback), starts)
    return result


def peek(folder, stages, *options, deliver="{}"):
    """The batches of a stream, as {column: parts}, and the line that it ends with."""
    (folder / "case.yaml").write_text(rig.pipeline(*stages, deliver=deliver))
    command = [rig.TUNDISH, "peek", "--raw", *options, str(folder / "case.yaml")]
    out = subprocess.run(command, capture_output=True, check=False, timeout=rig.DEADLINE_S).stdout
    batches, at, line = [], 0, {}
    while at < len(out):
        end = out.index(b"\n", at)
        line, at = json.loads(out[at:end]), end + 1
        batch = {}
        for name, column in line.get("columns", {}).items():
            batch[name] = []
            for size in column["parts"]:
                batch[name].append(out[at : at + size])
                at += size
        if batch:
            batches.append(batch)
    return batches, line


def texts(parts):
    offsets = np.frombuffer(parts[1], np.int64)
    return [parts[0][a:b] for a, b in itertools.pairwise(offsets)]


def delivered(batch, is_text):
    result = {}
    for name, parts in batch.items():
        data = texts(parts) if is_text else parts[0]
        result[name] = (data, np.frombuffer(parts[-1], np.int64).tolist()) if name == "lists" else data
    return result


def cut(delivered, wanted):
    """What is delivered, as far as its first rows that are wanted, and the rest."""
    first, rest = {}, {}
    for name, column in delivered.items():
        if name == "lists":
            (data, starts), rows = column, len(wanted[name][1]) - 1
            values = len(wanted[name][0])
            first[name] = data[:values], starts[: rows + 1]
            rest[name] = data[values:], [start - starts[rows] for start in starts[rows:]]
        else:
            first[name], rest[name] = column[: len(wanted[name])], column[len(wanted[name]) :]
    return first, rest


def write(path, table, encoding, codec, version, draw, **options):
    has_dictionary = encoding == "DICTIONARY"
    leaves = [name if name != "lists" else "lists.list.element" for name in table.column_names]
    pq.write_table(
        table,
        path,
        compression=codec,
        data_page_version=version,
        use_dictionary=has_dictionary,
        column_encoding=None if has_dictionary else {leaf: encoding for leaf in leaves},
        row_group_size=draw.choice((50, 1000)),
        data_page_size=draw.choice((64, 500, 1 << 20)),
        write_batch_size=16,
        write_page_checksum=draw.random() < 0.5,
        **options,
    )


@unittest.skipIf(pa is None, "pyarrow is not installed")
class ParquetFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tundish-parquet-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        os.environ["TUNDISH_CACHE"] = str(self.folder)
        self.addCleanup(os.environ.pop, "TUNDISH_CACHE")

    def assert_same(self, dtype, fallback, files=("a.parquet",)):
        """One batch of all rows of the files has for each what pyarrow reads of it."""
        columns = ", ".join(f"{name}: {{default_value: {fallback}}}" for name in ("plain", "full", "nulls", "lists"))
        stages = (f"parquet: {{filenames: [{', '.join(files)}], columns: {{{columns}}}}}", "batch: 1000000")
        batches, end = peek(self.folder, stages)
        self.assertEqual(len(batches), 1, (dtype, end))
        is_text = not pa.types.is_decimal(dtype) and not pa.types.is_primitive(dtype)
        rest = delivered(batches[0], is_text)
        for file in files:
            wanted = expected(pq.read_table(self.folder / file), fallback)
            got, rest = cut(rest, wanted)
            for name, column in wanted.items():
                self.assertEqual(got[name], column, (dtype, file, name))
        self.assertFalse(any((rest["plain"], rest["full"], rest["nulls"], rest["lists"][0])), dtype)

    def test_all_types_encodings_codecs_and_pages_give_the_values_of_pyarrow(self):
        seed = int(os.environ.get("SEED", "1"))
        count = 0
        for dtype, encodings, fallback in kinds():
            files = []
            for encoding, codec, version in itertools.product(encodings, CODECS, VERSIONS):
                draw = random.Random(f"SEED={seed} {dtype} {encoding} {codec} pages {version}")
                files.append(f"SEED={seed}-{encoding}-{codec}-{version}.parquet")
                write(self.folder / files[-1], table_of(draw, dtype), encoding, codec, version, draw)
            self.assert_same(dtype, fallback, files)
            count += len(files)
        self.assertGreaterEqual(count, 500)

    def test_int96_is_nanoseconds(self):
        draw = random.Random(96)
        table = table_of(draw, pa.timestamp("ns"))
        pq.write_table(table, self.folder / "a.parquet", use_deprecated_int96_timestamps=True)
        self.assert_same(pa.timestamp("ns"), "7")

    def test_decimals_may_be_stored_as_integers(self):
        for dtype in (pa.decimal128(9, 2), pa.decimal128(18, 0)):
            draw = random.Random(18)
            write(
                self.folder / "a.parquet", table_of(draw, dtype), "PLAIN", "NONE", "1.0", draw,
                store_decimal_as_integer=True,
            )
            self.assert_same(dtype, "7")

    def words_table(self):
        """Texts that come again and again, in a column that is a dictionary for its first rows only too."""
        draw = random.Random(7)
        words = [f"word {n}" for n in range(300)] + ["", "mask"]
        few = [draw.choice(words) for _ in range(3000)]
        nulls = [word if draw.random() < 0.8 else None for word in few]
        many = [word if i < 1000 else f"text {i}" for i, word in enumerate(few)]
        return pa.table({"few": few, "nulls": nulls, "many": many, "n": list(range(3000))})

    def integers_of_words(self, *stages, last=(), **options):
        """What lookups and hashes give for the texts of a file that is written with these options."""
        pq.write_table(self.words_table(), self.folder / "a.parquet", row_group_size=500, **options)
        columns = 'few: {default_value: "-"}, nulls: {default_value: "none"}, many: {default_value: "-"}, n: {}'
        vocabulary = ", ".join(f'"word {n}"' for n in range(0, 300, 2))
        lookup = f"string_lookup: {{columns: [few, nulls, many], vocabulary: [{vocabulary}, none]"
        texts = ("few", "nulls", "many")
        batches, end = peek(
            self.folder,
            (
                f"parquet: {{filenames: a.parquet, columns: {{{columns}}}}}",
                *stages,
                f"{lookup}, output: '{{column}}_one'}}",
                f"{lookup}, num_oov_indices: 5, mask_token: mask, output: '{{column}}_five'}}",
                "hashing: {columns: [few, nulls, many], num_bins: 97, mask_value: mask, output: '{column}_bin'}",
                "string_to_hash_bucket_fast: {columns: [few, nulls, many], num_buckets: 89, output: '{column}_fast'}",
                *last,
                "batch: 64",
            ),
        )
        self.assertEqual(len(batches), 47, end)
        return [{name: parts for name, parts in batch.items() if name not in texts} for batch in batches]

    def test_lookups_and_hashes_of_a_dictionary_are_those_of_its_texts(self):
        shuffles = ((), ("shuffle: {buffer_size: 900, seed: 3}",), ("shuffle: {buffer_size: 3000, seed: 3}",))
        for stages in shuffles:
            plain = self.integers_of_words(*stages, use_dictionary=False)
            self.assertEqual(self.integers_of_words(*stages, use_dictionary=True), plain, stages)
            mixed = {"use_dictionary": True, "dictionary_pagesize_limit": 3000, "data_page_size": 64}
            self.assertEqual(self.integers_of_words(*stages, **mixed), plain, stages)
            drop = ("drop: [few, nulls, many]",)
            self.assertEqual(self.integers_of_words(*stages, last=drop, use_dictionary=True), plain, stages)
            self.assertEqual(self.integers_of_words(*stages, last=drop, **mixed), plain, stages)

    def test_a_word_that_a_lookup_refuses_is_a_bad_row_wherever_it_comes(self):
        words = ["a", "b", "a", "refused", "b", "a", "refused", "a"]
        pq.write_table(pa.table({"x": words}), self.folder / "a.parquet")
        lookup = "string_lookup: {columns: x, vocabulary: [a, b], num_oov_indices: 0}"
        batches, end = peek(self.folder, ("parquet: a.parquet", lookup, "batch: 3"))
        self.assertEqual(np.frombuffer(batches[0]["x"][0], np.int64).tolist(), [0, 1, 0])
        self.assertIn("but found 'refused'", json.dumps(end))

    def test_a_shuffle_leaves_out_rows_whose_word_is_refused_and_no_others(self):
        """Of a column by itself, and beside one of which all words are known; of few words and of many."""
        for count, rows in ((40, 2000), (9000, 20000)):
            draw = random.Random(9)
            index = {f"word {n}": n for n in range(count)}
            words = [f"word {draw.randrange(count + 4)}" for _ in range(rows)]
            others = [f"word {draw.randrange(count)}" for _ in range(rows)]
            table = pa.table({"x": words, "y": others, "n": list(range(rows))})
            pq.write_table(table, self.folder / "a.parquet", row_group_size=rows // 2)
            (self.folder / "known.txt").write_text("".join(f"{word}\n" for word in index))
            lookup = "string_lookup: {columns: [x, y], vocabulary: known.txt, num_oov_indices: 0}"
            stages = ("parquet: a.parquet", f"shuffle: {{buffer_size: {rows}, seed: 3}}", lookup, "batch: 50")
            batches, end = peek(self.folder, stages, deliver="{on_error: skip}")
            columns = [[i for b in batches for i in np.frombuffer(b[name][0], np.int64).tolist()] for name in "nxy"]
            wanted = zip(range(rows), words, others, strict=True)
            wanted = [(n, index[x], index[y]) for n, x, y in wanted if x in index]
            self.assertEqual(sorted(zip(*columns, strict=True)), wanted, end)

    def test_rows_that_are_left_out_take_none_of_the_others_words_along(self):
        """Texts of which only integers are made are not made, but where rows are left out before that."""
        draw = random.Random(5)
        words = [None if draw.random() < 0.1 else f"word {draw.randrange(50)}" for _ in range(2000)]
        others = [f"other {draw.randrange(50)}" for _ in words]
        pq.write_table(pa.table({"x": words, "y": others}), self.folder / "a.parquet", row_group_size=700)
        vocabularies = {"x": [f"word {n}" for n in range(40)], "y": [f"other {n}" for n in range(40)]}
        stages = [
            f"string_lookup: {{columns: {name}, vocabulary: [{', '.join(known)}]}}"
            for name, known in vocabularies.items()
        ]
        batches, end = peek(self.folder, ("parquet: a.parquet", *stages, "batch: 50"), deliver="{on_error: skip}")
        rows = [(x, y) for x, y in zip(words, others, strict=True) if x is not None]
        for at, name in enumerate("xy"):
            got = [i for batch in batches for i in np.frombuffer(batch[name][0], np.int64).tolist()]
            known = vocabularies[name]
            self.assertEqual(got, [known.index(r[at]) + 1 if r[at] in known else 0 for r in rows], end)

    def refusal(self, columns):
        _, end = peek(self.folder, (f"parquet: {{filenames: a.parquet, columns: {columns}}}", "batch: 10"))
        return json.dumps(end)

    def test_other_types_are_refused_by_name_when_they_are_asked_for(self):
        struct = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32()))])
        table = pa.table(
            {
                "a": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
                "b": pa.array([[[1]]], pa.list_(pa.list_(pa.int32()))),
                "c": pa.array([[{"x": 1, "y": [2]}]], pa.list_(struct)),
                "d": decimals([1], pa.decimal128(19, 0)),
                "s": pa.array([{"x": 5, "y": [6, 7]}], struct),
            }
        )
        pq.write_table(table, self.folder / "a.parquet")
        self.assertIn("column 'a' cannot be read: it is a map", self.refusal("[a]"))
        self.assertIn("column 'b' cannot be read: it is a list of lists", self.refusal("[b]"))
        self.assertIn("column 'c' cannot be read: it is a list of structs", self.refusal("[c]"))
        self.assertIn("column 'd' cannot be read: it is a decimal of 19 digits", self.refusal("[d]"))
        self.assertIn("name the columns that you want", self.refusal("null"))
        self.assertIn("s.x", self.refusal("[s.xx]"))
        batches, _ = peek(self.folder, ("parquet: {filenames: a.parquet, columns: [s.x, s.y]}", "batch: 1"))
        self.assertEqual(np.frombuffer(batches[0]["s.x"][0], np.int32).tolist(), [5])
        self.assertEqual(np.frombuffer(batches[0]["s.y"][0], np.int32).tolist(), [6, 7])

    def test_a_null_without_a_default_is_a_bad_row_that_is_named(self):
        table = pa.table({"x": pa.array([1, 2, None, 4], pa.int64())})
        pq.write_table(table, self.folder / "a.parquet", row_group_size=2)
        batches, end = peek(self.folder, ("parquet: a.parquet", "batch: 2"))
        self.assertEqual(len(batches), 1)
        self.assertIn("a.parquet, row group 1, row 0 of it: column 'x' is null", json.dumps(end))

    def test_memory_limit_bounds_decoded_row_groups(self):
        pq.write_table(pa.table({"x": np.arange(200_000)}), self.folder / "a.parquet")
        stages = ("parquet: a.parquet", "batch: 4", "take: 1")
        batches, _ = peek(self.folder, stages, deliver="{memory_limit: 16000000}")
        self.assertEqual(len(batches), 1)
        batches, end = peek(self.folder, stages, deliver="{memory_limit: 1000000}")
        self.assertEqual(batches, [])
        self.assertIn("row group 0, column 'x'", json.dumps(end))
        self.assertIn("memory_limit", json.dumps(end))

    def test_rows_of_a_shuffle_over_files_and_row_groups_come_once_each_on_every_worker(self):
        for part in range(3):
            numbers = np.arange(part * 1000, part * 1000 + 1000)
            table = pa.table({"x": numbers, "s": [f"text {n}" for n in numbers]})
            pq.write_table(table, self.folder / f"part-{part}.parquet", row_group_size=77)
        stages = (
            'list_files: "part-*.parquet"',
            "interleave: {dataset: [parquet], cycle_length: 2}",
            "shuffle: {buffer_size: 500, seed: 3}",
            "batch: 64",
        )
        for workers, options in ((1, ()), (2, ("--num-workers", "2"))):
            batches, _ = peek(self.folder, stages, *options)
            seen = []
            for batch in batches:
                rows = np.frombuffer(batch["x"][0], np.int64).tolist()
                self.assertEqual(texts(batch["s"]), [f"text {n}".encode() for n in rows])
                seen += rows
            self.assertEqual(sorted(seen), list(range(3000)), workers)

    def test_threads_share_row_groups_and_every_row_is_itself(self):
        numbers = np.arange(20000)
        table = pa.table({"x": numbers, "s": [f"text {n}" for n in numbers], "y": numbers * 0.5})
        pq.write_table(table, self.folder / "a.parquet", row_group_size=999, compression="ZSTD")
        text = rig.pipeline("parquet: a.parquet", "shuffle: {buffer_size: 9000, seed: 2}", "batch: 256")
        files = {"a.parquet": (self.folder / "a.parquet").read_bytes()}
        seen = []
        with rig.serve(text, "--threads", "4", files=files) as server, server.open("train") as reader:
            for batch in reader:
                rows = batch["x"].tolist()
                self.assertEqual(batch["y"].tolist(), [n * 0.5 for n in rows])
                self.assertEqual(list(batch["s"]), [f"text {n}".encode() for n in rows])
                seen += rows
        self.assertEqual(sorted(seen), numbers.tolist())

    def test_plan_and_explain_name_row_groups(self):
        table = pa.table({"x": pa.array(range(100), pa.int64()), "y": ["text"] * 100})
        pq.write_table(table, self.folder / "a.parquet", row_group_size=30, compression="BROTLI")
        peek(self.folder, ("parquet: {filenames: a.parquet, columns: x}", "skip: 65", "batch: 2"))
        said = {}
        for command in ("plan", "explain"):
            line = [rig.TUNDISH, command, str(self.folder / "case.yaml")]
            said[command] = subprocess.run(line, capture_output=True, check=True, text=True).stdout
        self.assertIn("a.parquet: 100 rows in 4 row groups of at most 30 rows, each 0.0 MiB", said["plan"])
        self.assertIn("1 of 2 columns are read", said["plan"])
        self.assertIn("codecs: brotli", said["plan"])
        self.assertIn("a.parquet, record 65, row_group 2", said["explain"])

    def test_a_damaged_file_is_an_error_that_names_it(self):
        table = pa.table({"x": pa.array(range(1000), pa.int64())})
        path = self.folder / "a.parquet"
        pq.write_table(table, path, write_page_checksum=True, compression="NONE", use_dictionary=False)
        good = path.read_bytes()
        for cut in (0, 4, 11, len(good) // 2, len(good) - 1):
            path.write_bytes(good[:cut])
            _, end = peek(self.folder, ("parquet: a.parquet", "batch: 10"))
            self.assertIn("a.parquet", json.dumps(end), cut)
        path.write_bytes(good[:1000] + bytes([good[1000] ^ 1]) + good[1001:])
        batches, end = peek(self.folder, ("parquet: a.parquet", "batch: 10"))
        self.assertEqual(batches, [])
        self.assertIn("a.parquet, row group 0, column 'x': a page's checksum is wrong", json.dumps(end))


def others_table(draw):
    """What pyarrow, polars and DuckDB all have, with nulls and lists: each column, and its rows."""
    integers = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    types = [pa.bool_(), *integers, pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()]
    types += [pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.time64("ns"), pa.decimal128(18, 3)]
    count = 5000
    columns = {str(dtype): with_nulls(draw, values(draw, dtype, count)) for dtype in types}
    lists = as_lists(draw, with_nulls(draw, values(draw, pa.int32(), 3 * count)))
    return pa.table(columns | {"lists": lists[:count]})


def fallback_of(dtype):
    texts_of = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    if any(is_one(dtype) for is_one in texts_of):
        return '"none"'
    return "true" if pa.types.is_boolean(dtype) else "0.5" if pa.types.is_floating(dtype) else "7"


@unittest.skipIf(pa is None, "pyarrow is not installed")
class OtherWriters(unittest.TestCase):
    setUp = ParquetFiles.setUp

    def assert_holds(self, table, about):
        """Every column of the file, with the type that another reader gives it."""
        columns = []
        for field in table.schema:
            columns.append(f'"{field.name}": {{default_value: {fallback_of(field.type)}}}')
        stages = (f"parquet: {{filenames: a.parquet, columns: {{{', '.join(columns)}}}}}", "batch: 100000")
        batches, end = peek(self.folder, stages)
        self.assertEqual(len(batches), 1, (about, end))
        for field in table.schema:
            array, parts = table[field.name].combine_chunks(), batches[0][field.name]
            if pa.types.is_large_string(field.type) or pa.types.is_large_binary(field.type):
                array = array.cast(pa.binary())
            elif pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
                lengths = array.value_lengths().fill_null(0).to_pylist()
                self.assertEqual(np.frombuffer(parts[-1], np.int64).tolist(), [0, *itertools.accumulate(lengths)])
                array = array.flatten()
            is_text = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
            expected = stored(array, fallback_of(array.type))
            self.assertEqual(texts(parts) if is_text else parts[0], expected, (about, field))

    @unittest.skipIf(polars is None, "polars is not installed")
    def test_files_of_polars(self):
        for codec in ("uncompressed", "snappy", "gzip", "zstd", "lz4", "brotli"):
            table = others_table(random.Random(codec))
            polars.from_arrow(table).write_parquet(self.folder / "a.parquet", compression=codec, row_group_size=2000)
            self.assert_holds(pq.read_table(self.folder / "a.parquet"), f"polars {codec}")

    @unittest.skipIf(duckdb is None, "DuckDB is not installed")
    def test_files_of_duckdb(self):
        for codec, version in itertools.product(("uncompressed", "snappy", "gzip", "zstd", "brotli"), ("V1", "V2")):
            # DuckDB reads its milliseconds as microseconds; here they are what the file has.
            source = others_table(random.Random(codec)).drop_columns("timestamp[ms]")  # noqa: F841
            options = f"FORMAT parquet, COMPRESSION {codec}, PARQUET_VERSION {version}, ROW_GROUP_SIZE 2048"
            duckdb.sql(f"COPY (SELECT * FROM source) TO '{self.folder}/a.parquet' ({options})")
            # pyarrow does not read all files of version 2: it refuses delta pages without values.
            read = duckdb.read_parquet(f"{self.folder}/a.parquet").to_arrow_table()
            self.assert_holds(read, f"DuckDB {codec} {version}")


def varint(number):
    """Thrift's, of a number that is zigzag already."""
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


@unittest.skipIf(pa is None, "pyarrow is not installed")
class BadFiles(unittest.TestCase):
    setUp = ParquetFiles.setUp

    def sentence(self, *stages):
        """What a stream of a.parquet ends with."""
        (self.folder / "case.yaml").write_text(rig.pipeline(*(stages or ("parquet: a.parquet",)), "batch: 100"))
        command = [rig.TUNDISH, "peek", "--raw", str(self.folder / "case.yaml")]
        done = subprocess.run(command, capture_output=True, check=False, timeout=rig.DEADLINE_S)
        self.assertIn(done.returncode, (0, 1))
        said = (done.stderr + done.stdout[-2000:]).decode(errors="replace")
        self.assertIn("a.parquet", said)
        return said

    def test_an_encrypted_file_is_refused_by_name(self):
        data = b"PAR1" + bytes(100) + (50).to_bytes(4, "little") + b"PARE"
        (self.folder / "a.parquet").write_bytes(data)
        self.assertIn("it is an encrypted Parquet file, which cannot be read", self.sentence())

    def test_a_file_that_is_cut_off_is_damaged(self):
        pq.write_table(pa.table({"x": list(range(1000))}), self.folder / "a.parquet")
        data = (self.folder / "a.parquet").read_bytes()
        for size in (0, 3, 4, 11, 12, len(data) // 2, len(data) - 9, len(data) - 1):
            (self.folder / "a.parquet").write_bytes(data[:size])
            self.assertIn("Parquet", self.sentence())

    def test_bytes_that_are_changed_never_do_more_than_spoil_rows(self):
        draw = random.Random(5)
        table = pa.table({"x": list(range(1000)), "s": [f"text {n % 7}" for n in range(1000)]})
        for codec, encoded in itertools.product(("NONE", "SNAPPY", "ZSTD"), (True, False)):
            pq.write_table(table, self.folder / "a.parquet", compression=codec, use_dictionary=encoded)
            data = (self.folder / "a.parquet").read_bytes()
            for _ in range(8):
                spoilt = bytearray(data)
                for _ in range(draw.choice((1, 1, 8))):
                    spoilt[draw.randrange(4, len(data))] = draw.randrange(256)
                (self.folder / "a.parquet").write_bytes(spoilt)
                (self.folder / "case.yaml").write_text(rig.pipeline("parquet: a.parquet", "batch: 100"))
                command = [rig.TUNDISH, "peek", "--raw", str(self.folder / "case.yaml")]
                done = subprocess.run(command, capture_output=True, check=False, timeout=rig.DEADLINE_S)
                self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_a_page_that_says_it_is_a_gigabyte_takes_no_gigabyte(self):
        schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
        table = pa.table({"x": [0] * 1000}, schema)
        pq.write_table(table, self.folder / "a.parquet", compression="GZIP", use_dictionary=False)
        data = bytearray((self.folder / "a.parquet").read_bytes())
        # The first page's header: type (field 1), then the unpacked size (field 2), 8,000 as a zigzag varint.
        begin = data.index(b"\x15\x80\x7d", 4, 40)
        data[begin + 1 : begin + 3] = b"\x80\x80\x80\x80\x08"
        (self.folder / "a.parquet").write_bytes(data)
        self.assertIn("row group 0, column 'x'", self.sentence())
        data[begin + 1 : begin + 6] = b"\xfe\xff\xff\xff\x0f"
        (self.folder / "a.parquet").write_bytes(data)
        self.assertIn("its page is longer than 1 GiB", self.sentence())

    def test_an_encrypted_column_is_refused_by_name_and_the_others_are_read(self):
        try:
            import pyarrow.parquet.encryption as encryption
        except ImportError:
            self.skipTest("pyarrow is built without encryption")

        class Kms(encryption.KmsClient):
            def wrap_key(self, key, _):
                return base64.b64encode(key).decode()

            def unwrap_key(self, key, _):
                return base64.b64decode(key)

        table = pa.table({"x": list(range(100)), "y": list(range(100))})
        factory = encryption.CryptoFactory(lambda _: Kms())
        keys = encryption.EncryptionConfiguration(
            footer_key="footer", column_keys={"column": ["x"]}, plaintext_footer=True
        )
        properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), keys)
        with pq.ParquetWriter(self.folder / "a.parquet", table.schema, encryption_properties=properties) as file:
            file.write_table(table)
        self.assertIn("encrypted", self.sentence("parquet: {filenames: a.parquet, columns: x}"))
        batches, end = peek(self.folder, ("parquet: {filenames: a.parquet, columns: y}", "batch: 100"))
        self.assertEqual(np.frombuffer(batches[0]["y"][0], np.int64).tolist(), list(range(100)), end)

    def test_a_footer_that_lies_about_rows_or_sizes_is_found_out(self):
        """Each number of the footer that is 1,000 (rows, values) or a chunk's bytes is made another."""
        schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
        table = pa.table({"x": list(range(1000))}, schema)
        pq.write_table(table, self.folder / "a.parquet", compression="NONE", use_dictionary=False)
        data = (self.folder / "a.parquet").read_bytes()
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        group = pq.ParquetFile(self.folder / "a.parquet").metadata.row_group(0)
        lies = 0
        for number in (1000, group.column(0).total_compressed_size):
            told = varint(2 * number)
            at = data.find(told, footer)
            while at >= 0:
                for lie in (number - 3, number + 100, 8000):
                    changed = varint(2 * lie)
                    self.assertEqual(len(changed), len(told))
                    spoilt = data[:at] + changed + data[at + len(told) :]
                    (self.folder / "a.parquet").write_bytes(spoilt)
                    batches, end = peek(self.folder, ("parquet: a.parquet", "batch: 10"))
                    rows = b"".join(batch["x"][0] for batch in batches)
                    self.assertEqual(rows, np.arange(len(rows) // 8).tobytes(), (at, lie))
                    if len(rows) != 8000:
                        self.assertIn("a.parquet", json.dumps(end))
                        lies += 1
                at = data.find(told, at + 1)
        self.assertGreater(lies, 5)

    def test_ten_thousand_columns_are_read(self):
        names = [f"c{n}" for n in range(10_000)]
        pq.write_table(pa.table({name: [n, n + 1] for n, name in enumerate(names)}), self.folder / "a.parquet")
        batches, end = peek(self.folder, ("parquet: {filenames: a.parquet, columns: [c0, c9999]}", "batch: 2"))
        self.assertEqual(np.frombuffer(batches[0]["c9999"][0], np.int64).tolist(), [9999, 10000], end)


if __name__ == "__main__":
    unittest.main()
