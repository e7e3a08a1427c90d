"""tundish.data: the text that it writes, what it refuses, and what comes out of it."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import rig
import tundish
from tundish import layers, tf
from tundish.data import (
    AUTOTUNE,
    Dataset,
    TextLineDataset,
    TFRecordDataset,
    TraceError,
    UnsupportedError,
)

HERE = Path(__file__).name


def stages(dataset):
    """The lines of the stages, without their comments."""
    text = dataset.yaml().split("    dataset:\n")[1]
    return [re.sub(r"  # .*", "", line.removeprefix("      ")) for line in text.splitlines()]


def criteo(record):
    features = {"label": tf.io.FixedLenFeature([], tf.int64)}
    features |= {f"I{i}": tf.io.FixedLenFeature([], tf.float32, 0.0) for i in range(1, 14)}
    features |= {f"C{i}": tf.io.FixedLenFeature([], tf.string, "") for i in range(1, 27)}
    row = tf.io.parse_single_example(record, features)
    for i in range(1, 14):
        row[f"I{i}"] = tf.math.log1p(tf.maximum(row[f"I{i}"], 0))
    for i in range(1, 27):
        row[f"C{i}"] = layers.StringLookup(vocabulary=f"vocab/C{i}.txt")(row[f"C{i}"])
    return row, row.pop("label")


class Written(unittest.TestCase):
    def test_a_pipeline_is_what_a_person_would_write(self):
        dataset = Dataset.list_files("data/train-*.tfrecord", seed=1)
        dataset = dataset.interleave(TFRecordDataset, cycle_length=4, num_parallel_calls=AUTOTUNE)
        dataset = dataset.shuffle(100000, seed=7).map(criteo).batch(4096).prefetch(AUTOTUNE)
        self.assertEqual(
            stages(dataset),
            [
                "- list_files: {file_pattern: data/train-*.tfrecord, seed: 1}",
                "- interleave: {dataset: [tfrecord], cycle_length: 4}",
                "- shuffle: {buffer_size: 100000, seed: 7}",
                "- parse_example:",
                "    features:",
                "      label: {type: FixedLen, dtype: int64, shape: []}",
                "      I*: {type: FixedLen, dtype: float32, shape: [], default_value: 0.0}",
                '      C*: {type: FixedLen, dtype: string, shape: [], default_value: ""}',
                "    columns: [label, I1..I13, C1..C26]",
                '- map: {I*: "log1p(max({column}, 0))"}',
                '- string_lookup: {columns: C1..C26, vocabulary: "vocab/{column}.txt"}',
                "- batch: 4096",
            ],
        )

    def test_each_stage_names_its_line(self):
        text = Dataset.range(3).map(lambda x: x + 1).batch(2).yaml()
        line = sys._getframe().f_lineno - 1
        self.assertEqual(text.count(f"# {HERE}:{line}"), 3)

    def test_the_variables_of_a_function_name_its_results(self):
        def split(line):
            left, right = tf.io.decode_csv(line, [[0], ["none"]])
            return left, tf.strings.upper(right)

        dataset = TextLineDataset("a.csv").map(split)
        self.assertEqual([leaf.name.text for leaf in dataset.node.structure], ["left", "right"])

    def test_the_parameters_of_a_function_name_the_components_that_it_takes(self):
        pair = Dataset.zip((Dataset.range(3), TextLineDataset("a.txt")))
        self.assertEqual(
            stages(pair.filter(lambda number, line: number > 1)),
            ["- zip: [[{range: {stop: 3, name: number}}], [{text_line: {filenames: a.txt, name: line}}]]",
             '- filter: "number > 1"'],
        )  # fmt: skip

    def test_only_the_stages_that_change_something_are_written(self):
        dataset = Dataset.range(9).map(lambda x: tf.identity(x)).prefetch(2).shuffle(9, seed=1, name="s")
        self.assertEqual(stages(dataset), ["- range: 9", "- shuffle: {buffer_size: 9, seed: 1}"])

    def test_numbers_texts_and_parentheses(self):
        dataset = Dataset.from_tensor_slices({"a b": [1.5], "s": ["x: y"]})
        dataset = dataset.map(
            lambda row: {"c": -(row["a b"] + 1) * (2 - row["a b"]) ** 2, "t": row["s"] == "it's"}
        )
        self.assertEqual(
            stages(dataset),
            ['- from_tensor_slices: {a b: [1.5], s: ["x: y"]}',
             "- map: {c: \"-(`a b` + 1) * (2 - `a b`) ** 2\", t: \"s == 'it\\\\'s'\"}",
             "- drop: [a b, s]"],
        )  # fmt: skip
        self.assertEqual(dataset.peek(1)[0]["c"], -0.625)

    def test_lists_of_different_lengths_are_refused_where_they_are_written(self):
        for ragged in ([[1], [2, 3]], [[[1]], [[2], [3]]], [[], [1]], [1, [2]], [[1], 2]):
            for tensors in (ragged, {"n": [1, 2], "l": ragged}):
                with self.subTest(tensors), self.assertRaisesRegex(ValueError, "different lengths are no tensor: pad them"):
                    Dataset.from_tensor_slices(tensors)
        self.assertEqual(Dataset.from_tensor_slices([[[1], [2]], [[3], [4]]]).element_spec.shape, (2, 1))

    def test_numbers_of_numpy_are_numbers(self):
        np = rig.needs(self, "numpy")
        tenths = [np.float64(0.1), np.float64(0.9)]
        both = Dataset.sample_from_datasets([Dataset.range(np.int64(7)), Dataset.range(7)], tenths, seed=np.int32(3))
        text = both.batch(np.int64(2), drop_remainder=np.bool_(True)).yaml()
        self.assertIn("{range: 7}", text)
        self.assertIn("weights: [0.1, 0.9]", text)
        self.assertIn("seed: 3", text)
        self.assertIn("batch: {batch_size: 2, drop_remainder: true}", text)

    def test_columns_of_the_outer_dataset_are_variables(self):
        inner = Dataset.range(1, 3).flat_map(lambda n: Dataset.range(n).map(lambda x: x * 10 + n))
        self.assertEqual(
            stages(inner),
            ["- range: [1, 3]", '- flat_map: [{range: $value}, {map: {value: "value * 10 + $value"}}]'],
        )

    def test_a_long_stage_is_written_on_several_lines(self):
        text = Dataset.from_tensor_slices({f"column{c}": list(range(20)) for c in "abc"}).yaml()
        self.assertLessEqual(max(len(line) for line in text.splitlines()), 110)
        self.assertEqual(len(tundish.peek(text=text, steps=100)), 20)

    def test_the_fused_stages_are_others_one_after_the_other(self):
        fused = tundish.data.experimental
        dataset = Dataset.range(9).apply(fused.shuffle_and_repeat(4, 2, seed=3))
        dataset = dataset.apply(fused.map_and_batch(lambda x: x * 2, 4, drop_remainder=True))
        wanted = ["- range: 9", "- shuffle: {buffer_size: 4, seed: 3}", "- repeat: 2", "- map: {value: value * 2}"]
        self.assertEqual(stages(dataset), [*wanted, "- batch: {batch_size: 4, drop_remainder: true}"])
        files = Dataset.list_files("*.txt", seed=1).apply(fused.parallel_interleave(TextLineDataset, 2))
        self.assertEqual(stages(files)[1], "- interleave: {dataset: [text_line], cycle_length: 2}")
        with self.assertRaisesRegex(UnsupportedError, "test_data.py:[0-9]+  parallel_interleave: its blocks"):
            fused.parallel_interleave(TextLineDataset, 2, block_length=2)

    def test_numbers_take_the_dtype_of_the_columns_beside_them(self):
        dataset = Dataset.range(2).map(lambda i: {"pair": tf.stack([i, 7]), "row": tf.concat([[i], [1, 2]], 0)})
        self.assertEqual(dataset.element_spec["row"].shape, (3,))
        (batch,) = dataset.batch(2).peek(1)
        self.assertEqual([batch["pair"].tolist(), batch["pair"].dtype], [[[0, 7], [1, 7]], "int64"])
        self.assertEqual([batch["row"].tolist(), batch["row"].dtype], [[[0, 1, 2], [1, 1, 2]], "int64"])

    def test_each_draw_takes_both_numbers_of_its_seed(self):
        def draw(number):
            seed = tf.stack([number, number + 7])
            return tuple(tf.random.stateless_uniform([], seed) * each for each in (2, 3, 4, 5, 6))

        lines = [line for line in stages(Dataset.range(4).map(draw)) if "stateless_uniform" in line]
        self.assertEqual(len(lines), 5)
        for line in lines:
            self.assertRegex(line, r"stateless_uniform\((\w+)\[0\], \1\[1\]\) \* \d")

    def test_a_column_may_stand_twice(self):
        rows = Dataset.from_tensor_slices([[1, 2]]).map(lambda v: (tf.concat([v, v], 0), tf.stack([v, v, v])))
        self.assertEqual([each.tolist() for each in rows.batch(1).peek(1)[0].values()],
                         [[[1, 2, 1, 2]], [[[1, 2], [1, 2], [1, 2]]]])  # fmt: skip

    def test_conditions_may_be_nested(self):
        def grade(x):
            return tf.cond(x > 2, lambda: x * 10, lambda: tf.cond(x > 1, lambda: tf.square(x), lambda: x // 2))

        self.assertEqual(Dataset.range(5).map(grade).batch(5).peek(1)[0]["value"].tolist(), [0, 0, 4, 30, 40])
        with self.assertRaisesRegex(UnsupportedError, "tf.cond: both branches would compute tf.math.floordiv"):
            Dataset.range(5).map(lambda x: tf.cond(x > 2, lambda: 10 // x, lambda: x)).yaml()
        with self.assertRaisesRegex(UnsupportedError, "tf.cond: its branches give several values"):
            Dataset.range(5).map(lambda x: tf.cond(x > 2, lambda: (x, x), lambda: (x, 0))).yaml()

    def test_dtypes_of_results_may_be_asked_for(self):
        rows = Dataset.from_tensor_slices([[1.0, 5.0, 2.0]])
        rows = rows.map(lambda v: (tf.argmax(v, output_type=tf.int32), tf.shape(v, out_type=tf.int64)[0]))
        self.assertEqual([str(each.dtype) for each in rows.batch(1).peek(1)[0].values()], ["int32", "int64"])

    def test_several_streams_share_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "both.yaml")
            tundish.data.save(path, train=Dataset.range(4).batch(2), valid=Dataset.range(3))
            self.assertEqual(
                [list(each["value"]) for each in tundish.peek(path, stream="train")], [[0, 1], [2, 3]]
            )
            self.assertEqual(len(tundish.peek(path, stream="valid", steps=9)), 3)

    def test_how_it_is_distributed(self):
        options = tundish.data.Options()
        options.experimental_distribute.auto_shard_policy = tundish.data.AutoShardPolicy.DATA
        dataset = Dataset.range(8).batch(4).with_options(options)
        text = tundish.distribute(dataset, replicas=2, rebatch="carry", deliver={"slots": 4}).yaml()
        self.assertIn(
            "    distribute: {auto_shard: DATA, replicas: 2, rebatch: carry}\n    deliver: {slots: 4}\n",
            text,
        )

    def test_a_function_of_the_input_context(self):
        def build(context):
            dataset = Dataset.range(20).shard(context.num_input_pipelines, context.input_pipeline_id)
            return dataset.batch(context.get_per_replica_batch_size(8))

        dataset = tundish.distribute(build, replicas=2)
        self.assertEqual(
            stages(dataset),
            ["- range: 20",
             "- shard: {num_shards: $num_input_pipelines, index: $input_pipeline_id}",
             "- batch: $per_replica_batch_size(8)",
             "    distribute: {replicas: 2, from_function: true}"],
        )  # fmt: skip
        self.assertEqual(list(dataset.peek(1, num_workers=2)[0]["value"]), [0, 2])

    def test_the_seed_of_the_program(self):
        self.addCleanup(tf.random.set_seed, None)
        tf.random.set_seed(3)
        dataset = Dataset.range(9).shuffle(9)
        self.assertTrue(dataset.yaml().startswith("seed: 3\n"))
        self.assertEqual(dataset.peek(9), dataset.peek(9))

    def test_what_is_computed_of_the_outer_element(self):
        inner = Dataset.range(1, 3).flat_map(lambda n: Dataset.range(n * 2, n * 3))
        self.assertEqual(
            stages(inner),
            ["- range: [1, 3]",
             "- map: {value_: value * 2, value__: value * 3}",
             "- flat_map: [{range: [$value_, $value__]}]"],
        )  # fmt: skip
        self.assertEqual([batch["value"].tolist() for batch in inner.peek(9)], [2, 4, 5])

    def test_long_lists_become_files_beside_it(self):
        numpy = rig.needs(self, "numpy")
        table = numpy.arange(300, dtype=numpy.int16).reshape(100, 3)
        words = [f"word{i}" for i in range(100)]
        dataset = Dataset.from_tensor_slices({"x": table, "word": words})
        lookup = layers.StringLookup(vocabulary=words)
        dataset = dataset.map(lambda row: {**row, "word": lookup(row["word"])}).batch(100)
        text, files, unsupported = tundish.data.plan_of(dataset)
        self.assertEqual((sorted(files), unsupported), (["word.vocabulary.txt", "x.npy"], []))
        self.assertIn("vocabulary: word.vocabulary.txt", text)
        for count in (50, 51):  # more than 50 terms are not read as a part of the program
            short = Dataset.from_tensor_slices(words).map(layers.StringLookup(vocabulary=words[:count]))
            self.assertEqual(len(tundish.data.plan_of(short)[1]), count - 50)
        (batch,) = dataset.peek()
        self.assertEqual(batch["x"].tolist(), table.tolist())
        self.assertEqual(batch["word"].tolist(), list(range(1, 101)))
        with tempfile.TemporaryDirectory() as folder:
            dataset.save(Path(folder, "a.yaml"))
            self.assertEqual(len(tundish.peek(Path(folder, "a.yaml"))[0]["word"]), 100)

    def test_a_vocabulary_that_a_file_would_not_say_stays(self):
        words = ["[UNK]", *(f"word{i}" for i in range(100))]
        lookup = layers.StringLookup(vocabulary=words)
        dataset = Dataset.from_tensor_slices({"word": ["word3", "x"]}).map(
            lambda row: lookup(row["word"])
        )
        self.assertEqual(tundish.data.plan_of(dataset)[1], {})
        self.assertEqual([int(batch["word"]) for batch in dataset.peek()], [4, 0])

    def test_a_map_that_does_nothing_counts_in_tensorflow_s_rule_of_rebatching(self):
        dataset = Dataset.range(4).batch(2).map(lambda x: x)
        self.assertEqual(stages(dataset), ["- range: 4", "- batch: 2"])
        self.assertIn("- map: {value: value}", tundish.distribute(dataset, rebatch="tensorflow").yaml())


    def test_a_list_is_a_tuple_and_inside_others_a_tensor(self):
        structure = Dataset.range(3).map(lambda x: [x, x + 1]).element_spec
        self.assertEqual([each.shape for each in structure], [(), ()])
        inner = Dataset.range(3).map(lambda x: {"pair": [x, 1]})
        self.assertIn('- map: {pair: "cast(1, int64)"}', stages(inner))

    def test_a_negated_comparison_is_the_opposite_one_as_tensorflow_s_optimizer_has_it(self):
        rows = Dataset.from_tensor_slices([1.0, float("nan")])
        self.assertIn('- filter: "value <= 0"', stages(rows.filter(lambda x: ~(x > 0))))

        def both(x):
            return {"more": x > 0, "no_more": ~(x > 0), "less": x < 0}

        self.assertIn("no_more: \"not value > 0\"", "".join(stages(rows.map(both))))

    def test_draws_that_change_with_each_epoch_are_refused(self):
        with self.assertRaisesRegex(ValueError, "rerandomize_each_iteration"):
            Dataset.sample_from_datasets([Dataset.range(1)] * 2, rerandomize_each_iteration=True)


    def test_sources_that_tf_data_has_none_of(self):
        parquet = tundish.data.ParquetDataset("x.parquet", {"a": None, "b": 0})
        self.assertEqual(
            stages(parquet.map(lambda row: {"sum": row["a"] + row["b"]})),
            [
                "- parquet: {filenames: x.parquet, columns: {a: {}, b: {default_value: 0}}}",
                "- map: {sum: a + b}",
                "- select: sum",
            ],
        )
        files = Dataset.list_files("*.parquet", shuffle=False)
        inner = files.interleave(lambda f: tundish.data.ParquetDataset(f, ["a", "b"]), cycle_length=2)
        self.assertIn("- interleave: {dataset: [{parquet: {columns: [a, b]}}], cycle_length: 2}", stages(inner))
        web = tundish.data.WebDataset(["x.tar"], {"text": "txt", "label": ["cls", "id"]}, missing="skip")
        self.assertEqual(
            stages(web),
            ["- webdataset: {filenames: [x.tar], columns: {text: txt, label: [cls, id]}, missing: skip}"],
        )
        folder = tundish.data.DirectoryDataset("k", ["b", "a"], shuffle=True, seed=3)
        self.assertEqual(
            stages(folder.map(lambda row: (row["value"], row["label"])))[0],
            "- directory: {directory: k, class_names: [b, a], shuffle: true, seed: 3}",
        )

    def test_folders_and_tar_files_are_read(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for kind in "ab":
                Path(kind).mkdir()
                Path(kind, "0.txt").write_text(kind * 2)
            with tarfile.open("x.tar", "w") as archive:
                archive.add("a/0.txt", "1.txt")
            rows = tundish.data.DirectoryDataset(".", extensions=[".txt"]).batch(4).peek(1)[0]
            self.assertEqual((list(rows["value"]), rows["label"].tolist()), ([b"aa", b"bb"], [0, 1]))
            rows = tundish.data.WebDataset("x.tar", ["txt"]).batch(4).peek(1)[0]
            self.assertEqual((list(rows["__key__"]), list(rows["txt"])), ([b"1"], [b"aa"]))


class RoundTrip(unittest.TestCase):
    """The file gives the graph that the program built: the same stages, columns, dtypes and shapes."""

    def check(self, dataset):
        plan = tundish.plan(text=dataset.yaml())
        found = [(each["name"], each["dtype"], each["shape"]) for each in plan["element_spec"]]
        fields = tundish.data.nest.flatten(dataset.node.structure)
        known = [(field.name.text, field.spec.dtype, list(field.spec.shape)) for field in fields]
        self.assertEqual(sorted(found), sorted(known))
        built, node = [], dataset.node
        while node is not None:
            built.append(node.stage)
            node = node.inputs[0] if node.inputs else None
        planned, node = [], plan["root"]
        while node is not None:
            if not node["put_in"]:
                planned.append(node["stage"])
            node = node["inputs"][0] if node["inputs"] else None
        self.assertEqual(
            [each for each in planned if each in built], [each for each in built if each in planned]
        )
        self.assertEqual(set(built) - set(planned) - {"map"}, set())

    def test_order(self):
        dataset = Dataset.range(3, 30, 2).shuffle(5, seed=1).skip(1).take(9).repeat(2).enumerate(7)
        self.check(
            dataset.filter(lambda i, x: i > 8).batch(3).unbatch().batch(2, drop_remainder=True).cache()
        )

    def test_dtypes_and_shapes(self):
        source = Dataset.from_tensor_slices(
            {"x": [[1.0, 2.0], [3.0, 4.0]], "n": [1, 2], "s": ["a b", "c"]}
        )
        dataset = source.map(
            lambda row: {
                "sum": tf.reduce_sum(row["x"]),
                "half": tf.cast(row["x"] / 2, tf.float16),
                "ratio": row["n"] / 3,
                "flag": row["n"] > 1,
                "hot": tf.one_hot(row["n"], 4),
                "first": row["x"][0],
                "grid": tf.reshape(row["x"], [2, 1]),
                "wide": tf.expand_dims(row["x"], 0),
                "hash": tf.strings.to_hash_bucket_fast(row["s"], 10),
                "lower": tf.strings.lower(row["s"]),
                "both": tf.concat([row["x"], row["x"] * 2], axis=0),
                "pair": tf.stack([row["x"], row["x"] + 1]),
                "scaled": layers.Rescaling(2.0)(row["n"]),
                "index": layers.StringLookup(vocabulary=["c"])(row["s"]),
            }
        )
        self.check(dataset.batch(2, drop_remainder=True))


class Refused(unittest.TestCase):
    def traced(self, function, *words):
        line = function.__code__.co_firstlineno
        with self.assertRaises(TraceError) as raised:
            Dataset.from_tensor_slices({"x": [[1, 2]]}).map(function)
        for word in (f"{HERE}:{line}", *words):
            self.assertIn(word, str(raised.exception))

    def test_python_that_needs_values(self):
        self.traced(lambda row: 1 if row["x"] else 0, "if", "tf.where")
        self.traced(lambda row: row["x"] > 1 and row["x"] < 3, "and", "&")
        self.traced(lambda row: len(row["x"]), "len()", "tf.shape(x)[0]")
        self.traced(lambda row: [x for x in row["x"]], "for", "x[0]")
        self.traced(lambda row: int(row["x"]), "int()", "tf.cast")
        self.traced(lambda row: float(row["x"]), "float()", "tf.cast")
        self.traced(lambda row: "abc"[row["x"]], "number")
        self.traced(lambda row: row["x"].numpy(), "numpy")

    def test_numpy(self):
        numpy = rig.needs(self, "numpy")
        self.traced(lambda row: numpy.log(row["x"]), "numpy", "tundish.tf")
        self.traced(lambda row: numpy.asarray(row["x"]), "numpy", "tundish.tf")

    def test_everything_is_listed_not_only_the_first(self):
        def augment(row):
            noise = tf.random.uniform([])
            flipped = tf.image.random_flip_left_right(row["x"])
            return {"a": row["x"] + noise, "b": flipped, "c": tf.signal.stft(row["x"], 2, 1)}

        with self.assertRaises(UnsupportedError) as raised:
            Dataset.from_tensor_slices({"x": [[1.0, 2.0]]}).map(augment).yaml()
        first = augment.__code__.co_firstlineno
        told = [(each.origin.line - first, each.name) for each in raised.exception.unsupported]
        self.assertEqual(
            told,
            [(1, "tf.random.uniform"), (2, "tf.image.random_flip_left_right"), (3, "tf.signal.stft")],
        )
        for each in raised.exception.unsupported:
            self.assertIn("use ", each.remedy)

    def test_a_name_that_there_is_not(self):
        with self.assertRaisesRegex(AttributeError, "tundish has no tf.linalg"):
            tf.linalg.svd
        with self.assertRaisesRegex(TypeError, r"tf.one_hot: .*it is tf.one_hot\(indices, depth"):
            Dataset.range(3).map(lambda x: tf.one_hot(x, dept=3))

    def test_methods_that_there_are_not(self):
        with self.assertRaisesRegex(TypeError, "from_generator takes output_signature"):
            Dataset.from_generator(lambda: iter([1]), int)
        with self.assertRaisesRegex(UnsupportedError, "Dataset.scan: .*`program:`"):
            Dataset.range(3).scan
        self.assertFalse(hasattr(Dataset, "scan"))
        self.assertFalse(hasattr(Dataset.range(3), "scan"))
        with self.assertRaisesRegex(AttributeError, "no 'shufle'"):
            Dataset.range(3).shufle
        with self.assertRaisesRegex(
            UnsupportedError, "interleave: its cycle_length depends on the machine"
        ):
            Dataset.range(3).interleave(lambda x: Dataset.range(x)).yaml()

    def test_a_layer_that_draws_and_is_called_twice(self):
        flip = layers.RandomFlip(seed=1)
        dataset = Dataset.from_tensors({"x": [[[1.0]]]}).map(
            lambda row: {"a": flip(row["x"]), "b": flip(row["x"])}
        )
        with self.assertRaisesRegex(UnsupportedError, "called twice.*make a layer for each call"):
            dataset.yaml()

    def test_a_layer_that_draws_in_two_datasets_counts_in_both(self):
        flip, other = layers.RandomFlip(seed=1), layers.RandomFlip(seed=1)
        rows = Dataset.from_tensors({"x": [[[1.0]]]})
        part = rows.repeat(2).map(lambda row: {"x": flip(row["x"])})
        again = rows.flat_map(lambda _: rows.map(lambda row: {"x": flip(row["x"])}))
        text = part.concatenate(again).map(lambda row: {"x": other(row["x"])}).yaml()
        self.assertEqual(text.count("draws: layer_1, redraw: true"), 2, text)
        self.assertEqual(text.count("random_flip"), 3, text)

    def test_a_window_that_stays_a_dataset(self):
        with self.assertRaisesRegex(
            UnsupportedError, r"flat_map\(lambda window: window.batch\(size\)\)"
        ):
            Dataset.range(9).window(3).yaml()
        with self.assertRaisesRegex(UnsupportedError, "a window does not become one batch"):
            Dataset.range(9).window(3).flat_map(lambda window: window.batch(2)).yaml()

    def test_seeds_that_would_be_others(self):
        self.addCleanup(tf.random.set_seed, None)
        tf.random.set_seed(3)
        late, early = Dataset.range(9).shuffle(3), Dataset.range(9).shuffle(3)
        with self.assertRaisesRegex(
            UnsupportedError, "built before one that is written before it; give it a seed"
        ):
            early.concatenate(late).yaml()
        with self.assertRaisesRegex(UnsupportedError, "used twice"), tempfile.TemporaryDirectory() as folder:
            tundish.data.save(Path(folder, "pipeline.yaml"), train=early, valid=early)
        self.assertEqual(early.concatenate(early).yaml().count("shuffle"), 1)

    def test_a_column_of_an_outer_function_whose_name_is_hidden(self):
        hidden = Dataset.range(3).flat_map(
            lambda a: Dataset.range(3).flat_map(lambda b: Dataset.range(2).map(lambda x: x + a + b))
        )
        with self.assertRaisesRegex(UnsupportedError, "has the name of a nearer one"):
            hidden.yaml()


class Windows(unittest.TestCase):
    def values(self, dataset):
        return [batch["value"].tolist() for batch in dataset.peek(99)]

    def test_windows(self):
        batched = Dataset.range(7).window(3, shift=2).flat_map(lambda window: window.batch(3))
        self.assertEqual(stages(batched), ["- range: 7", "- window: {size: 3, shift: 2}"])
        self.assertEqual(self.values(batched), [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6]])
        whole = Dataset.range(7).window(3).flat_map(lambda window: window.batch(3, drop_remainder=True))
        self.assertEqual(self.values(whole), [[0, 1, 2], [3, 4, 5]])

    def test_windows_of_several_components(self):
        pairs = Dataset.from_tensor_slices({"a": [1, 2, 3], "b": [4, 5, 6]}).window(
            2, drop_remainder=True
        )
        batched = pairs.flat_map(lambda w: Dataset.zip({"a": w["a"].batch(2), "b": w["b"].batch(2)}))
        self.assertEqual([batch["b"].tolist() for batch in batched.peek()], [[4, 5]])


class Server(unittest.TestCase):
    def test_a_shape_that_is_not_proven_is_checked_row_by_row(self):
        read = Dataset.from_tensor_slices(["ab", "abc", "ef"]).map(
            lambda text: tf.ensure_shape(tf.io.decode_raw(text, "uint8"), [2])
        )
        with tundish.open(read.batch(1)) as reader:
            batches = iter(reader)
            self.assertEqual(next(batches)["value"].tolist(), [[97, 98]])
            with self.assertRaisesRegex(tundish.Error, r"'value' has the shape \[3\], not \[2\]"):
                next(batches)

    def test_a_shape_that_is_proven_needs_no_stage(self):
        read = Dataset.from_tensor_slices([[1, 2], [3, 4]]).map(lambda x: tf.ensure_shape(x, [None]))
        self.assertNotIn("ensure_shape", read.yaml())

    def test_a_dataset_is_opened(self):
        with tundish.open(Dataset.range(6).map(lambda x: x * 2).batch(3)) as reader:
            self.assertEqual([batch["value"].tolist() for batch in reader], [[0, 2, 4], [6, 8, 10]])
            self.assertEqual(len(list(reader)), 2)

    def test_ranks_are_told_that_each_reads_all_rows_unless_they_shard(self):
        rows = Dataset.range(6)
        with mock.patch.dict(os.environ, {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}):
            with self.assertWarnsRegex(RuntimeWarning, "each of the 2 ranks reads all rows"):
                with tundish.open(rows.batch(3)) as reader:
                    self.assertEqual(reader.next()["value"].tolist(), [0, 1, 2])
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with tundish.open(rows.shard(2, 1).batch(3)) as reader:
                    self.assertEqual(reader.next()["value"].tolist(), [1, 3, 5])

    def test_the_package_needs_neither_tensorflow_nor_numpy_to_build(self):
        program = (
            "import sys, tundish; from tundish import tf, layers; from tundish.data import Dataset\n"
        )
        program += "text = Dataset.range(3).map(lambda x: tf.cast(x, tf.float32)).yaml()\n"
        program += "print([each for each in ('numpy', 'tensorflow', 'keras') if each in sys.modules], 'map' in text)"
        environment = dict(os.environ, PYTHONPATH=rig.PACKAGE)
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        self.assertEqual(done.stdout, "[] True\n", done.stderr)


class Table(unittest.TestCase):
    def test_the_page_is_what_the_rules_make(self):
        from tundish.data.table import table

        page = rig.REPOSITORY / "sdk" / "python" / "TF_DATA.md"
        self.assertEqual(
            page.read_text(), table(), "python -m tundish.data.table > sdk/python/TF_DATA.md"
        )

    def test_each_stage_that_a_rule_names_is_there(self):
        from tundish.data.lowering import RULES

        listed = subprocess.run([rig.TUNDISH, "help", "stages"], capture_output=True, text=True).stdout
        named = {stage for rule in RULES.values() if (stage := getattr(rule, "stage", None))}
        self.assertEqual({stage for stage in named if not re.search(rf"\b{stage}\b", listed)}, set())
        self.assertGreater(len(json.dumps(sorted(named))), 100)

    def test_defaults_are_the_stages(self):
        """An argument that is the default is not written, so the stage has to take it by itself."""
        from tundish.data.lowering import RULES
        from tundish.data.lowering.rule import StageRule

        said = subprocess.run([rig.TUNDISH, "help", "--json"], capture_output=True, text=True, check=True).stdout
        stages = {stage["name"]: {p["name"]: p for p in stage["parameters"]} for stage in json.loads(said)["stages"]}
        compared = 0
        for rule in (rule for rule in RULES.values() if isinstance(rule, StageRule)):
            self.assertLessEqual(set(rule.fixed), set(stages[rule.stage]), rule.of)
            for name, parameter in rule.signature.parameters.items():
                if name in (*rule.columns, *rule.beside, *rule.ignored):
                    continue
                own = stages[rule.stage].get(rule.renamed.get(name, name))
                if rule.check is None:  # which may have refused it, or made others of it
                    self.assertIsNotNone(own, f"{rule.of}: {rule.stage} has no {name}")
                if own is None or own["needed"] or parameter.default in (None, parameter.empty):
                    continue
                written = (json.dumps(parameter.default), json.dumps(float(parameter.default))
                           if type(parameter.default) is int else parameter.default)  # fmt: skip
                self.assertIn(own["default"], written, f"{rule.of}: {name}, and {rule.stage}")
                compared += 1
        self.assertGreater(compared, 100)


if __name__ == "__main__":
    unittest.main()
