"""A program means in a pipeline file what it means in TensorFlow: axes, texts, names, parts used twice."""

import os
import random
import re
import tempfile
import unittest
from pathlib import Path

import rig
import tundish
from tundish import layers, tf
from tundish.data import Dataset, TextLineDataset, UnsupportedError

GRID = [[[1, -2, 3], [4, 5, -6]], [[0, 0, 9], [-7, 8, -7]]]
# What TensorFlow 2.21 gave for batches of two.
REDUCED = {
    "tf.reduce_max(x, axis=0)": [[4, 5, 3], [0, 8, 9]],
    "tf.reduce_max(x, 0)": [[4, 5, 3], [0, 8, 9]],
    "tf.reduce_max(x, axis=-1)": [[3, 5], [9, 8]],
    "tf.reduce_max(x, axis=1, keepdims=True)": [[[3], [5]], [[9], [8]]],
    "tf.reduce_max(x, axis=[0, 1])": [5, 9],
    "tf.reduce_max(x, (-1,))": [[3, 5], [9, 8]],
    "tf.reduce_max(x, axis=[0, 1], keepdims=True)": [[[5]], [[9]]],
    "tf.reduce_min(x, axis=0)": [[1, -2, -6], [-7, 0, -7]],
    "tf.reduce_min(x, 1)": [[-2, -6], [0, -7]],
    "tf.reduce_min(x, axis=-1, keepdims=True)": [[[-2], [-6]], [[0], [-7]]],
    "tf.math.reduce_min(x, axis=[0])": [[1, -2, -6], [-7, 0, -7]],
    "batches: tf.reduce_max(x, axis=1)": [[4, 5, 3], [0, 8, 9]],
    "batches: tf.reduce_min(x, axis=-2)": [[1, -2, -6], [-7, 0, -7]],
}


class Axes(unittest.TestCase):
    def test_the_axis_of_a_reduction_is_that_of_tensorflow(self):
        rig.needs(self, "numpy")
        rows = Dataset.from_tensor_slices(GRID)
        for form, expected in REDUCED.items():
            with self.subTest(form):
                text = form.removeprefix("batches: ")
                function = eval(f"lambda x: {text}", {"tf": tf})
                dataset = rows.map(function).batch(2) if text == form else rows.batch(2).map(function)
                (batch,) = dataset.peek(2)
                self.assertEqual(batch["value"].tolist(), expected)
                self.assertIn("axis=", dataset.yaml())

    def test_numbers_are_no_axes(self):
        rig.needs(self, "numpy")
        rows = Dataset.from_tensor_slices(GRID).map(lambda x: tf.maximum(x, [0, 1, 1])).batch(2)
        self.assertEqual(rows.peek(1)[0]["value"].tolist()[1], [[0, 1, 9], [0, 8, 1]])


# Of these texts are put together: what a pipeline file has a meaning for, and what YAML has one for.
PIECES = """
${HOME} ${ $${ $value $ {column} {{column} { } {} ' " ` \\ \\n \\x41 \\u0041 # : - ? * & ! % @ | > < ~ << , [ ] = /
null true 1 0x1f .inf !!binary column value s a b .. I1..I3 é ü 😀
""".split() + [" ", "  ", "\n", "\r", "\t", "\b", "\x01", "\x1b", "\x7f", "\x80", "\x85", "\xa0", "\u2028", "\u2029",
               "\ufeff", "\ufffe", "\uffff", "\ue000", "\ue001", "\0", ": ", " #", "- ", "---\n", "...\n"]  # fmt: skip


def texts(count, without=""):
    """Texts as programs have them: all pieces, then random ones of them."""
    draw = random.Random(20261126)
    pieces = [piece for piece in PIECES if not set(piece) & set(without)]
    yield from pieces
    for _ in range(count):
        yield "".join(draw.choices(pieces, k=draw.randint(2, 6)))


def some_bytes(count):
    """Bytes of any kind."""
    draw = random.Random(1)
    yield from (b"\x89PNG\r\n\x1a\n", b"\xff\x00", b"\xed\xa0\x80", b"\xc3", b"${HOME}\xff{column}\0$value")
    for _ in range(count):
        yield draw.randbytes(draw.randint(1, 40))


def encoded(text):
    return text if isinstance(text, bytes) else text.encode()


def values(column):
    """The bytes of a column of texts, row by row."""
    found = column.to_list() if hasattr(column, "to_list") else column.numpy().tolist()
    return found


def feature(key, value):
    """A tf.Example with one feature of one text."""

    def message(*parts):
        whole = b"".join(parts)
        return bytes([0x0A]) + size(len(whole)) + whole

    def size(number):
        return bytes([number & 0x7F | 0x80, number >> 7]) if number > 0x7F else bytes([number])

    inner = message(message(value))
    return message(message(message(key), bytes([0x12]) + size(len(inner)) + inner))


class Texts(unittest.TestCase):
    """Each parameter that takes a text takes the program's own."""

    def setUp(self):
        rig.needs(self, "numpy")

    def test_in_expressions_and_sources(self):
        for text in [*texts(40), *some_bytes(20)]:
            with self.subTest(text=text):
                rows = Dataset.from_tensor_slices({"s": [text, b"-"], "other": [["x", text], [text, "y"]]})
                rows = rows.map(lambda row: {
                    **row,
                    "added": row["s"] + text,
                    "same": row["s"] == text,
                    "joined": tf.strings.join([row["s"], "x", row["s"]], separator=text),
                    "chosen": tf.where(row["s"] == b"-", text, "no"),
                })  # fmt: skip
                (batch,) = rows.batch(2).peek(2)
                own = encoded(text)
                self.assertEqual(values(batch["s"]), [own, b"-"])
                self.assertEqual(values(batch["other"]), [[b"x", own], [own, b"y"]])
                self.assertEqual(values(batch["added"]), [own + own, b"-" + own])
                self.assertEqual(batch["same"].tolist(), [True, own == b"-"])
                self.assertEqual(values(batch["joined"]), [own + own + b"x" + own + own, b"-" + own + b"x" + own + b"-"])
                self.assertEqual(values(batch["chosen"]), [own if own == b"-" else b"no", own])

    def test_in_a_filter_and_inside_of_others(self):
        for text in [*texts(30), *some_bytes(10)]:
            with self.subTest(text=text):
                inner = Dataset.range(1, 3).flat_map(lambda value: Dataset.from_tensor_slices([text, "other"]))
                (batch,) = inner.filter(lambda s: s == text).batch(4).peek(2)
                count = 4 if encoded(text) == b"other" else 2
                self.assertEqual(values(batch["value"]), [encoded(text)] * count)

    def test_in_stages(self):
        for text in [*texts(40), *some_bytes(20)]:
            own = encoded(text)
            with self.subTest(text=text):
                special = layers.StringLookup(vocabulary=["one", "two"], oov_token=text, invert=True)
                rows = Dataset.from_tensor_slices({"s": ["a|b", "c"]}).map(lambda row: {
                    "pairs": tf.strings.ngrams(tf.strings.split(row["s"], "|"), 2, separator=text, pad_values=(text, "r")),
                    "parts": tf.strings.split(row["s"] + text + row["s"], sep=text),
                    "dense": tf.RaggedTensor.to_tensor(tf.strings.split(tf.stack([row["s"], "d|e|f"]), "|"), text),
                    "back": special(0),
                })  # fmt: skip
                padded = Dataset.from_tensor_slices(["a", "b c"]).map(lambda s: tf.strings.split(s))
                (batch,) = padded.padded_batch(2, padding_values=text).peek(1)
                self.assertEqual(values(batch["value"]), [[b"a", own], [b"b", b"c"]])
                first, second = rows.peek(2)
                self.assertEqual(values(first["pairs"]), [own * 2 + b"a", b"a" + own + b"b", b"b" + own + b"r"])
                self.assertEqual(values(second["pairs"]), [own * 2 + b"c", b"c" + own + b"r"])
                self.assertEqual(values(second["parts"]), (b"c" + own + b"c").split(own))
                self.assertEqual(values(second["dense"]), [[b"c", own, own], [b"d", b"e", b"f"]])
                self.assertEqual(values(first["back"]), own)

    def test_in_vocabularies_and_tables(self):
        for text in [*texts(40), *some_bytes(20)]:
            own = encoded(text)
            if own in (b"", b"a", b"[UNK]"):
                continue
            with self.subTest(text=text):
                table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", text], [5, 7]), -1)
                few = layers.StringLookup(vocabulary=["a", text])
                many = layers.StringLookup(vocabulary=[f"w{i}" for i in range(40)] + [text])
                mask = layers.StringLookup(vocabulary=["a"], mask_token=text)
                rows = Dataset.from_tensor_slices([text, "a"]).map(lambda s: {
                    "few": few(s), "many": many(s), "table": table.lookup(s), "mask": mask(s),
                    "hash": layers.Hashing(3, mask_value=text)(s),
                })  # fmt: skip
                (batch,) = rows.batch(2).peek(1)
                self.assertEqual(batch["few"].tolist(), [2, 1])
                self.assertEqual(batch["many"].tolist(), [41, 0])
                self.assertEqual(batch["table"].tolist(), [7, 5])
                self.assertEqual(batch["mask"].tolist(), [0, 2])
                self.assertEqual(batch["hash"].tolist()[0], 0)

    def test_in_patterns_and_rewrites(self):
        for text in texts(40):
            with self.subTest(text=text):
                pattern = re.sub(r"([^\w\0])", r"\\\1", text, flags=re.ASCII).replace("\0", "\\x00")
                pattern = re.sub(r"\\([^\x00-\x7f])", r"\1", pattern)
                rows = Dataset.from_tensor_slices([f"({text})"])
                rows = rows.map(lambda s: {
                    "cut": tf.strings.regex_replace(s, pattern, ""),
                    "put": tf.strings.regex_replace(s, "[()]", text.replace("\\", r"\\")),
                    "whole": tf.strings.regex_full_match(s, r"\(" + pattern + r"\)"),
                })  # fmt: skip
                (row,) = rows.peek(1)
                self.assertEqual(values(row["cut"]), f"({text})".replace(text, "").encode())
                self.assertEqual(values(row["put"]), re.sub("[()]", lambda _: text, f"({text})").encode())
                self.assertTrue(row["whole"])

    def test_in_records(self):
        for text in [*texts(40), *some_bytes(20)]:
            own = encoded(text)
            with self.subTest(text=text):

                def parse(record):
                    features = {"x": tf.io.FixedLenFeature([], tf.string, text)}
                    features["y"] = tf.io.FixedLenFeature([2], tf.string, [text, "z"])
                    features["z"] = tf.io.FixedLenSequenceFeature([], tf.string, True, text)
                    return tf.io.parse_single_example(record, features)

                (row,) = Dataset.from_tensor_slices([b""]).map(parse).peek(1)
                self.assertEqual([values(row["x"]), values(row["y"])], [own, [own, b"z"]])
                lines = Dataset.from_tensor_slices([","])
                (row,) = lines.map(lambda line: tf.io.decode_csv(line, [[text], [1]])).peek(1)
                self.assertEqual(values(row["column_0"]), own)

    def test_as_keys_of_records(self):
        for text in texts(40, without="\0"):
            with self.subTest(text=text):
                records = Dataset.from_tensor_slices([feature(text.encode(), b"found")])
                wanted = {text: tf.io.FixedLenFeature([], tf.string)}
                rows = records.map(lambda record: tf.io.parse_single_example(record, wanted)[text])
                rows = rows.map(lambda value: {"found": value})
                (row,) = rows.peek(1)
                self.assertEqual(values(row["found"]), b"found")

    def test_as_missing_fields(self):
        for text in texts(30, without='",\r\n\0'):
            with self.subTest(text=text):
                lines = Dataset.from_tensor_slices([text + ",1"])
                lines = lines.map(lambda line: tf.io.decode_csv(line, [["none"], [1]], na_value=text))
                self.assertEqual(values(lines.peek(1)[0]["column_0"]), b"none")

    def test_in_paths(self):
        names = [name for name in texts(40, without="/\0") if name not in (".", "..")]
        for name in [*names, os.fsdecode(b"caf\xe9\xff")]:
            with self.subTest(name=name), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "x" + name + "x")
                Path(path).write_bytes(b"first\nsecond\n")
                read = TextLineDataset(path).batch(2)
                self.assertEqual(values(read.peek(1)[0]["value"]), [b"first", b"second"])
                self.assertEqual(values(TextLineDataset([path, path]).batch(9).peek(1)[0]["value"]), [b"first", b"second"] * 2)
                looked_up = Dataset.from_tensor_slices(["second"]).map(layers.StringLookup(vocabulary=path))
                self.assertEqual(looked_up.peek(1)[0]["value"].tolist(), 2)
                listed = Dataset.list_files(re.sub(r"[*?\[\\]", "?", path), shuffle=False)
                self.assertEqual(values(listed.peek(1)[0]["value"]), os.fsencode(path))

    def test_a_text_of_a_megabyte(self):
        text = "${HOME}" * 150_000
        (row,) = Dataset.from_tensor_slices([text]).peek(1)
        self.assertEqual(values(row["value"]), text.encode())


# A server takes a new column of such a name for several, or no expression can name it.
UNSAID = re.compile(r"[*?[`\0]|\{column\}|[0-9]\.\.")


def some_names(draw):
    """Names of columns, many of them numbered, and others that begin like these."""
    prefixes = draw.sample(["I", "C", "x_", "a b", "n.", "é", "{x", "column", "null", "$v", "s'", "q*", "[z]", "r.."], 3)
    names = set()
    for prefix in prefixes:
        first, width = draw.randint(0, 11), draw.choice([1, 1, 2])
        names |= {f"{prefix}{number:0{width}}" for number in range(first, first + draw.randint(3, 6))}
        names |= {prefix + tail for tail in draw.sample(["", "1_missing", "12a", "_sum", "99", "01", "*", "..I3"], 3)}
    return sorted(names)


class Names(unittest.TestCase):
    """A list of columns that is abbreviated means just these."""

    def test_maps_of_many_columns(self):
        draw, refused = random.Random(5), 0
        for _ in range(150):
            names = draw.sample(some_names(draw), 12)
            there, new = names[:8], names[8:]
            changed = [name for name in there if draw.random() < 0.6]
            shared = draw.choice(there)

            def function(row, there=there, new=new, changed=changed, shared=shared):
                same = {name: row[name] * 2 + 1 if name in changed else row[name] for name in there}
                return same | {name: row[shared] + 5 for name in new}

            expected = {name: 2 * i + 1 if name in changed else i for i, name in enumerate(there)}
            expected |= {name: there.index(shared) + 5 for name in new}
            dataset = Dataset.from_tensor_slices({name: [i] for i, name in enumerate(there)}).map(function)
            with self.subTest(there=there, new=new, changed=changed):
                try:
                    (row,) = dataset.peek(2)
                except UnsupportedError as error:
                    self.assertTrue(any(UNSAID.search(name) for name in names), str(error))
                    refused += 1
                    continue
                self.assertEqual(row, expected)
        self.assertLess(refused, 100)

    def test_maps_after_maps(self):
        def function(row):
            made = {f"I{i}": tf.maximum(row[f"I{i}"], 0) for i in range(1, 5)}
            return {**row, **made, "I1_missing": row["I1"] < 0}

        rows = Dataset.from_tensor_slices({f"I{i}": [-i] for i in range(1, 5)}).map(function)
        rows = rows.map(lambda row: {**row, **{f"I{i}": row[f"I{i}"] + i * 0 + 1 for i in range(1, 5)}})
        (row,) = rows.peek(1)
        self.assertEqual(row, {"I1": 1, "I2": 1, "I3": 1, "I4": 1, "I1_missing": True})

    def test_a_range_where_a_pattern_would_mean_more(self):
        rows = Dataset.from_tensor_slices({f"I{i}": [i] for i in range(1, 5)} | {"I_other": [0]})
        rows = rows.map(lambda row: {**row, **{f"I{i}": row[f"I{i}"] + 1 for i in range(1, 5)}})
        self.assertIn('map: {I1..I4: "{column} + 1"}', rows.yaml())

    def test_a_pattern_that_is_written_by_hand(self):
        rows = Dataset.from_tensor_slices({"I1": [1], "I2": [2]}).stage("map", **{"I*": "{column} + 1"})
        self.assertEqual(rows.peek(1), [{"I1": 2, "I2": 3}])

    def test_parameters_that_name_no_column(self):
        rows = Dataset.from_tensor_slices({name: [f"{name} b"] for name in "abc"})
        rows = rows.map(lambda row: {name: tf.strings.regex_replace(row[name], name, "x") for name in "abc"})
        self.assertEqual([values(each) for each in rows.peek(1)[0].values()], [b"x b", b"x x", b"x b"])

    def test_vocabularies_of_columns(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: os.path.join(folder, f"{name} of {{column}}.txt") for name in ("C1", "C2", "C3")}
            for name, path in paths.items():
                Path(path).write_text(f"other\n{name}\n")
            rows = Dataset.from_tensor_slices({name: [name] for name in paths})
            rows = rows.map(lambda row: {
                name: layers.StringLookup(vocabulary=path)(row[name]) for name, path in paths.items()
            })  # fmt: skip
            self.assertEqual(rows.yaml().count("string_lookup"), 1)
            self.assertEqual(rows.peek(1), [{"C1": 2, "C2": 2, "C3": 2}])


class Orders(unittest.TestCase):
    def setUp(self):
        tf.random.set_seed(None)

    def test_two_uses_of_a_shuffled_dataset_draw_two_orders(self):
        rig.needs(self, "numpy")
        rows = Dataset.range(10).shuffle(10, seed=5)
        both = Dataset.zip((rows, rows))
        self.assertIn("datasets:\n  rows:\n    - range: 10", both.yaml())
        # What TensorFlow 2.21 gave, of two epochs.
        expected = [[5, 3, 0, 2, 7, 6, 4, 1, 9, 8, 1, 8, 9, 7, 6, 3, 0, 2, 5, 4], [4, 0, 5, 9, 2, 8, 6, 3, 1, 7, 4, 6, 0, 5, 3, 2, 7, 9, 8, 1]]
        (batch,) = both.repeat(2).batch(20).peek(2)
        self.assertEqual([batch["value"].tolist(), batch["value_1"].tolist()], expected)

    def test_what_draws_nothing_is_written_where_it_is_used(self):
        rows = Dataset.range(10).cache()
        self.assertNotIn("datasets:\n  rows", Dataset.zip((rows, rows)).yaml())

    def test_each_stream_has_its_own(self):
        rows = Dataset.range(4).shuffle(4, seed=5)
        both = Dataset.zip((rows, rows))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "pipeline.yaml")
            tundish.data.save(path, train=both, valid=both.take(2), test=rows)
            self.assertEqual(re.findall("^  (rows.*):", path.read_text(), re.MULTILINE), ["rows", "rows_2"])
            for stream, count in {"train": 4, "valid": 2, "test": 4}.items():
                self.assertEqual(len(tundish.peek(path, stream=stream, steps=9)), count)

    def test_a_layer_of_what_is_used_twice_counts_in_both(self):
        layer = layers.RandomFlip(seed=1)
        rows = Dataset.from_tensor_slices([[[[1.0]]]]).shuffle(2, seed=1).map(lambda x: layer(x, training=True))
        text = Dataset.zip((rows, rows)).yaml()
        self.assertEqual(text.count("draws: layer_1, redraw: true"), 1)

    def test_stages_by_hand_mention_it_too(self):
        rows = Dataset.range(10).shuffle(4, seed=5)
        both = Dataset.zip((rows, rows)).stage("take", count=3)
        self.assertEqual(both.yaml().count("shuffle"), 1)
        self.assertEqual(len(both.peek(9)), 3)
        joined = Dataset.stage("concatenate", datasets=[rows, rows])
        self.assertIn("concatenate: [rows, rows]", joined.yaml())
        self.assertEqual(len(joined.peek(99)), 20)

    def test_a_shuffled_dataset_of_outside_is_refused_in_a_function(self):
        rows = Dataset.range(10).shuffle(4, seed=5)
        with self.assertRaisesRegex(UnsupportedError, "make it in the function, or use repeat"):
            Dataset.range(3).flat_map(lambda x: rows).yaml()
        inside = Dataset.range(3).flat_map(lambda x: Dataset.range(x).shuffle(4, seed=5))
        self.assertIn("flat_map", inside.yaml())

    def test_a_cache_of_one_order_is_refused_where_there_are_two(self):
        rows = Dataset.range(10).shuffle(4, seed=5)
        for both in ((rows.cache(), rows), (rows.cache(),) * 2):
            with self.assertRaisesRegex(UnsupportedError, "cache before the shuffle"):
                Dataset.zip(both).yaml()


if __name__ == "__main__":
    unittest.main()
