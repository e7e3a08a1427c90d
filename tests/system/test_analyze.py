"""What is learned, from what, and that rows come out of the library as out of a server."""

import gzip
import json
import os
import random
import struct
import subprocess
import unittest
from pathlib import Path

from rig import TUNDISH, Rig

PICTURES = Path(__file__).parents[1] / "conformance" / "cases" / "data"
CLICKLOG = os.environ.get("TUNDISH_CLICKLOG", "")
OP_CLAMP = os.environ.get("TUNDISH_OP_CLAMP", "")
OP_LISTS = os.environ.get("TUNDISH_OP_LISTS", "")
EQUALS = os.environ.get("TUNDISH_TRANSFORM_EQUALS", "")
LEARNING = [
    "csv: {filenames: rows.csv, record_defaults: [0, 0.0, ''], column_names: [id, x, word]}",
    "compute_and_apply_vocabulary: {columns: word, output: number, vocab_filename: words}",
    "string_lookup: {columns: word, output_mode: tf_idf}",
    "discretization: {columns: x, num_bins: 8, output: bin}",
    "scale_to_z_score: {columns: x}",
    "scale_to_0_1: {columns: number, output: part}",
    "batch: 64",
]


class Learning(Rig):
    def tundish(self, *arguments, stdin=None, fails=False):
        done = subprocess.run(
            [TUNDISH, *map(str, arguments)], env=self.environment, input=stdin, capture_output=True
        )
        self.assertEqual(done.returncode != 0, fails, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def write_rows(self, count, words=500):
        chance = random.Random(1)
        with open(self.path / "rows.csv", "w") as file:
            for i in range(count):
                word = f"w{int(chance.paretovariate(0.5)) % words}"
                file.write(f"{i},{chance.gauss(5, 3):.6f},{word}\n")

    def results(self, folder):
        return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "origin"}


class Analysis(Learning):
    def test_does_not_depend_on_threads_or_memory(self):
        self.write_rows(20000, words=10**9)
        file = self.pipeline(LEARNING)
        for name, options in {
            "one": ["--threads", "1"],
            "many": ["--threads", "7"],
            "small": ["--threads", "3", "--memory", "1"],
        }.items():
            self.tundish("analyze", file, "--quiet", "--analysis", self.path / name, *options)
        expected = self.results(self.path / "one")
        self.assertIn("words", expected)
        self.assertIn("part.min", expected)
        self.assertEqual(self.results(self.path / "many"), expected)
        self.assertEqual(self.results(self.path / "small"), expected)

    def test_a_mean_of_missing_values_is_told_and_may_be_learned_from_others(self):
        stages = "dataset: [{from_tensor_slices: {x: {values: [1.0, .nan, 5.0, 9.0]}}}, %s{normalization: {axis: null}}]"
        file = self.path / "missing.yaml"
        file.write_text(f"streams:\n  train:\n    {stages % ''}\n")
        _, said = self.tundish("analyze", file, "--analysis", self.path / "all")
        self.assertIn("note: normalization (line 3): the mean of 'x' is not finite", said)
        known = stages % "{filter: not isnan(x)}, "
        file.write_text(f"learn_from: known\n{file.read_text()}  known:\n    {known}\n")
        _, said = self.tundish("analyze", file, "--analysis", self.path / "known")
        self.assertNotIn("note:", said)
        self.assertEqual(json.loads(self.results(self.path / "known")["x.mean"])["values"], [5.0])

    def test_keeps_within_its_memory(self):
        chance = random.Random(4)
        with open(self.path / "terms.txt", "w") as file:
            for _ in range(150000):
                file.write(f"{chance.getrandbits(1000):0250x}\n")
        file = self.pipeline(["text_line: terms.txt", "string_lookup"])
        command = [TUNDISH, "analyze", file, "--quiet", "--threads", "2", "--memory", "4"]
        child = os.posix_spawn(TUNDISH, command, self.environment)
        _, status, usage = os.wait4(child, 0)
        self.assertEqual(status, 0)
        self.assertLess(usage.ru_maxrss >> 10, 80)  # MiB: terms and counts together are 110
        words = (self.path / "analysis/pipeline.yaml/value.vocabulary.txt").read_text().split()
        self.assertEqual(len(set(words)), 150000)

    def test_learns_by_falling_count(self):
        self.write_rows(3000)
        file = self.pipeline(LEARNING)
        _, said = self.tundish("analyze", file)
        self.assertIn("pass 2", said)
        counts = {}
        for line in (self.path / "rows.csv").read_text().splitlines():
            word = line.split(",")[2]
            counts[word] = counts.get(word, 0) + 1
        expected = sorted(counts, key=lambda word: (counts[word], word), reverse=True)
        self.assertEqual((self.path / "analysis/pipeline.yaml/words").read_text().split(), expected)
        most = json.loads((self.path / "analysis/pipeline.yaml/part.max").read_text())
        self.assertEqual(most["values"], [len(expected) - 1])

    def test_refuses_what_is_out_of_date(self):
        self.write_rows(100)
        file = self.pipeline(LEARNING)
        _, said = self.tundish("peek", file, fails=True)
        self.assertIn("tundish analyze", said)
        self.tundish("analyze", file)
        self.tundish("peek", file)
        os.utime(self.path / "rows.csv", (1, 1))
        self.tundish("peek", file)
        rows = (self.path / "rows.csv").read_text()
        (self.path / "rows.csv").write_text(rows.replace("0,", "1,", 1))
        _, said = self.tundish("peek", file, fails=True)
        self.assertIn("rows.csv has changed", said)
        self.tundish("peek", file, "--analyze")
        self.tundish("peek", file)
        self.pipeline([stage.replace("num_bins: 8", "num_bins: 9") for stage in LEARNING])
        _, said = self.tundish("peek", file, fails=True)
        self.assertIn("other stages", said)

    def test_refuses_damaged_statistics(self):
        self.write_rows(100)
        file = self.pipeline(LEARNING)
        self.tundish("analyze", file)
        for text in ("", "{", '{"dtype": "float32", "shape": [9], "values": [1]}'):
            (self.path / "analysis/pipeline.yaml/x.mean").write_text(text)
            _, said = self.tundish("peek", file, fails=True)
            self.assertIn("x.mean", said)


def records(data):
    """The records of a TFRecord file's bytes."""
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        yield data[12 : 12 + size]
        data = data[16 + size :]


class Inside(Learning):
    """Stages that learn in a dataset inside another stage."""

    INNER = [
        "decode_csv: {record_defaults: [0, 0.0, ''], column_names: [id, x, word]}",
        "string_lookup: {columns: word}",
        "scale_to_0_1: {columns: word, output: part}",
        "normalization: {columns: x, axis: null}",
    ]
    FILES = "list_files: {file_pattern: 'part-*.csv', seed: 1}"

    def write_parts(self):
        chance = random.Random(3)
        for part in range(3):
            with open(self.path / f"part-{part}.csv", "w") as file:
                for i in range(100):
                    file.write(f"{i},{chance.gauss(part, 3):.3f},w{chance.randrange(40)}\n")

    def learned(self, stages, name):
        """The results, and the batches with them."""
        file = self.pipeline([*stages, "batch: 16"])
        folder = self.path / name
        self.tundish("analyze", file, "--quiet", "--analysis", folder)
        said, _ = self.tundish("peek", file, "--json", "--analysis", folder)
        return self.results(folder), [line for line in said.splitlines() if '"columns"' in line]

    def test_interleave_learns_as_behind_it(self):
        self.write_parts()
        around = "interleave: {cycle_length: 2, dataset: [text_line%s]}"
        behind = self.learned([self.FILES, around % "", *self.INNER], "behind")
        stages = "".join(f", {{{stage}}}" for stage in self.INNER)
        inside = self.learned([self.FILES, around % stages], "inside")
        self.assertIn("part.max", inside[0])
        self.assertEqual(inside, behind)
        deep = f"flat_map: {{dataset: [{{from_tensors: {{file: $value}}}}, {{flat_map: {{dataset: [{{text_line: $file}}{stages}]}}}}]}}"
        flat = self.learned([self.FILES, deep], "deep")
        self.assertEqual(flat[0], behind[0])

    def test_united_datasets_learn_from_themselves(self):
        self.write_parts()
        alone = self.learned(["text_line: part-1.csv", *self.INNER], "alone")
        named = "text_line: part-1.csv", *self.INNER
        other = "from_tensor_slices: {y: [1.0, 2.0, 3.0]}", "scale_to_0_1: {columns: y}"
        branches = ", ".join(
            "[" + ", ".join(f"{{{stage}}}" for stage in stages) + "]" for stages in (named, other)
        )
        results, batches = self.learned([f"zip: {{datasets: [{branches}]}}"], "zipped")
        self.assertEqual({k: v for k, v in results.items() if not k.startswith("y.")}, alone[0])
        self.assertEqual(json.loads(results["y.max"])["values"], [3.0])
        self.assertEqual(json.loads(batches[0])["columns"]["y"]["values"], [0.0, 0.5, 1.0])

    def test_a_named_dataset_is_learned_once(self):
        self.write_parts()
        alone = self.learned(["text_line: part-1.csv", *self.INNER], "alone")
        stages = "".join(f"    - {stage}\n" for stage in ("text_line: part-1.csv", *self.INNER))
        file = Path(self.pipeline(["concatenate: {datasets: [part, part]}", "batch: 16"]))
        file.write_text(f"datasets:\n  part:\n{stages}{file.read_text()}")
        self.tundish("analyze", file, "--quiet")
        self.assertEqual(self.results(self.path / "analysis/pipeline.yaml"), alone[0])

    def test_refuses_two_results_of_one_name(self):
        self.write_parts()
        inline = ", ".join(
            f"[{{text_line: part-{part}.csv}}, {{string_lookup: {{}}}}]" for part in (0, 1)
        )
        file = self.pipeline([f"concatenate: {{datasets: [{inline}]}}"])
        _, said = self.tundish("analyze", file, fails=True)
        self.assertIn("statistics gives it another", said)

    def test_notices_another_stage_inside(self):
        self.write_parts()
        inner = "{decode_csv: {record_defaults: [0, 0.0, ''], column_names: [id, x, word]}}, {string_lookup: {columns: word}}"
        around = f"interleave: {{cycle_length: 2, dataset: [text_line, {inner}]}}"
        self.tundish("analyze", self.pipeline([self.FILES, around]), "--quiet")
        changed = around.replace("text_line,", "text_line, {string_lower: {}},")
        _, said = self.tundish("peek", self.pipeline([self.FILES, changed]), fails=True)
        self.assertIn("other stages", said)


class VocabularyFiles(Learning):
    """tf.Transform's forms beside plain lines."""

    STAGE = "compute_and_apply_vocabulary: {columns: word, %s}"
    FREQUENCIES = "file_format: tfrecord_gzip, store_frequency: true"

    def analyze(self, parameters):
        file = self.pipeline([LEARNING[0], self.STAGE % parameters, "batch: 8"])
        self.tundish("analyze", file, "--quiet")
        return file

    def test_records_hold_the_terms_of_lines(self):
        self.write_rows(500)
        file = self.analyze("vocab_filename: words")
        lines = (self.path / "analysis/pipeline.yaml/words").read_bytes().splitlines()
        expected, _ = self.tundish("peek", file, "--json")
        file = self.analyze("vocab_filename: words, file_format: tfrecord_gzip")
        packed = (self.path / "analysis/pipeline.yaml/words.tfrecord.gz").read_bytes()
        self.assertEqual(list(records(gzip.decompress(packed))), lines)
        self.assertEqual(self.tundish("peek", file, "--json")[0], expected)
        file = self.analyze(self.FREQUENCIES)
        packed = (self.path / "analysis/pipeline.yaml/word.vocabulary.tfrecord.gz").read_bytes()
        entries = [record.split(b" ") for record in records(gzip.decompress(packed))]
        self.assertEqual([term for _, term in entries], lines)
        self.assertEqual(sum(int(count) for count, _ in entries), 500)

    def test_damaged_ones_are_refused(self):
        self.write_rows(100)
        file = self.analyze(self.FREQUENCIES)
        path = self.path / "analysis/pipeline.yaml/word.vocabulary.tfrecord.gz"
        good = gzip.decompress(path.read_bytes())
        huge = struct.pack("<QI", 1 << 62, 0)
        for bad, words in {
            b"": "not as it was learned",
            b"not gzip": "word.vocabulary.tfrecord.gz",
            gzip.compress(good)[:-20]: "word.vocabulary.tfrecord.gz",
            gzip.compress(good[:-1]): "damaged or truncated",
            gzip.compress(good[:20] + b"?" + good[21:]): "damaged or truncated",
            gzip.compress(huge + good): "record 0 is damaged",
            gzip.compress(b"123"): "record 0 is damaged",
        }.items():
            path.write_bytes(bad)
            _, said = self.tundish("peek", file, fails=True)
            self.assertIn(words, said)


class Transform(Learning):
    def equal(self, file, form, records):
        self.serve(file)
        said = self.lines(self.start([EQUALS, file, form, str(records)]))
        self.assertRegex(said[-1], "^equal [1-9]", said)

    def test_gives_what_a_trainer_of_the_click_log_got(self):
        subprocess.run(
            [CLICKLOG, "--rows", "3000", "--shards", "1", "--out", self.path / "clicks"], check=True
        )
        [records] = (self.path / "clicks").glob("*.tfrecord")
        self.equal(
            self.pipeline(
                [
                    f"tfrecord: {records}",
                    "parse_example: {features: {label: {type: FixedLen, dtype: int64, shape: []}, "
                    "'I*': {type: FixedLen, dtype: int64, shape: [], default_value: 0}, "
                    "'C*': {type: FixedLen, dtype: string, shape: [], default_value: ''}}, "
                    "columns: [label, I1..I13, C1..C26]}",
                    "string_lookup: {columns: 'C*', vocabulary: 'clicks/vocab/{column}.txt'}",
                    "map: {'I*': 'log1p(max(cast({column}, float32), 0))'}",
                    "batch: 256",
                ]
            ),
            "tfrecord",
            records,
        )

    def test_gives_what_a_trainer_of_text_got(self):
        chance = random.Random(2)
        lines = self.path / "lines.txt"
        with open(lines, "w") as out:
            for _ in range(500):
                words = [f"Word{chance.randrange(300)}," for _ in range(chance.randrange(1, 12))]
                out.write(" ".join(words) + "\n")
        file = self.pipeline(
            [
                "text_line: lines.txt",
                "string_length: {columns: value, output: bytes}",
                "string_split: {columns: value, output: parts}",
                "ragged_batch: 32",
                "text_vectorization: {columns: value, max_tokens: 200}",
            ]
        )
        self.tundish("analyze", file)
        self.equal(file, "lines", lines)

    def test_gives_what_a_trainer_of_pictures_got(self):
        rows = self.path / "pictures.tfrecord"
        names = ("rgb", "444", "gray", "prog", "exif")
        rows.write_bytes(
            b"".join((PICTURES / f"content_img_{name}.tfrecord").read_bytes() for name in names)
        )
        self.equal(
            self.pipeline(
                [
                    f"tfrecord: {rows}",
                    "decode_jpeg: {channels: 3}",
                    "resize: {size: [21, 17]}",
                    "rescaling: {scale: 0.00392156862745098}",
                    "map: {value: 'value - 0.5'}",
                    "batch: 2",
                ]
            ),
            "tfrecord",
            rows,
        )

    def test_takes_and_gives_every_form(self):
        self.write_rows(300)
        file = self.pipeline(LEARNING)
        self.tundish("analyze", file)
        rows = (self.path / "rows.csv").read_bytes()
        expected, _ = self.tundish("transform", file, stdin=rows)
        self.assertEqual(len(expected.splitlines()), 300)
        one, _ = self.tundish("transform", file, "--batch", "7", stdin=rows)
        self.assertEqual(one, expected)
        self.tundish("transform", file, "--until", "csv", "--to", "npy", "--output",
                     self.path / "out", stdin=rows, fails=True)  # strings are not for npy
        plain = self.pipeline(
            ["from_tensor_slices: {a: [1.5], b: [[1, 2]]}", "cast: {columns: [a, b], dtype: float64}"]
        )
        lines = b'{"a": 2.5, "b": [3, 4]}\n{"b": [5, 6], "a": -1}\n'
        out, _ = self.tundish("transform", plain, "--from", "jsonl", stdin=lines)
        self.assertEqual(
            [json.loads(line) for line in out.splitlines()],
            [{"a": 2.5, "b": [3.0, 4.0]}, {"a": -1.0, "b": [5.0, 6.0]}],
        )
        self.tundish("transform", plain, "--from", "jsonl", "--to", "npy", "--output",
                     self.path / "out", stdin=lines)
        values = (self.path / "out/b.npy").read_bytes()
        self.assertIn(b"(2, 2,)", values.replace(b" 2,)", b" 2,)"))
        self.assertEqual(struct.unpack("<4d", values[-32:]), (3, 4, 5, 6))

    def test_says_which_row_is_bad(self):
        self.write_rows(10)
        file = self.pipeline(LEARNING[:1] + LEARNING[-1:])
        rows = (self.path / "rows.csv").read_bytes() + b"oops\n"
        _, said = self.tundish("transform", file, stdin=rows, fails=True)
        self.assertIn("row 10: Expect 3 fields", said)
        plain = self.pipeline(["from_tensor_slices: {a: [1], b: [true]}", "batch: 4"])
        for row, words in {
            '{"a": 1e3, "b": 1}': "row 1:",
            '{"a": 1, "b": ': "row 1:",
            '{"a": 99999999999, "b": 0}': "'a': 99999999999 is not a valid int32",
            '{"a": 1, "b": 2}': "'b': 2 is not a valid bool",
        }.items():
            lines = '{"a": -1, "b": 1}\n' + row + "\n"
            _, said = self.tundish(
                "transform", plain, "--from", "jsonl", stdin=lines.encode(), fails=True
            )
            self.assertIn(words, said)

    def test_refuses_what_does_not_go_with_keys(self):
        self.write_rows(10)
        elementwise = "scale_to_z_score_per_key: {columns: x, key: word, elementwise: true%s}"
        for stages, words in (
            ([elementwise % ", key_vocabulary_filename: k"], "mutually exclusive"),
            (
                ["expand_dims: {columns: [word, x], axis: 0}", elementwise % ""],
                "needs one key a row, and 'word' has more",
            ),
        ):
            _, said = self.tundish("analyze", self.pipeline(LEARNING[:1] + stages), fails=True)
            self.assertIn(words, said)


class CustomOps(Learning):
    def test_are_stages_like_others(self):
        file = self.pipeline(
            [
                "from_tensor_slices: {x: [-1.0, 0.5, 99.0], first: [Ada, Bo, ''], last: [L, '', C]}",
                f"op: {{library: '{OP_CLAMP}', name: clamp, parameters: [0, 10], columns: x}}",
                f"op: {{library: '{OP_CLAMP}', name: initials, columns: [first, last], output: who}}",
                "batch: 3",
            ]
        )
        said, _ = self.tundish("peek", file, "--json")
        columns = json.loads(said.splitlines()[1])["columns"]
        self.assertEqual(columns["x"]["values"], [0.0, 0.5, 10.0])
        self.assertEqual(columns["who"]["values"], ["AL", "B", "C"])

    def test_refuse_what_they_cannot_do(self):
        for op, words in {
            f"library: '{OP_CLAMP}', name: clamp, columns: x": "lowest and the highest",
            f"library: '{OP_CLAMP}', name: squash, columns: x": "no transform 'squash'",
            "library: /nowhere/libx.so, name: clamp, columns: x": "/nowhere/libx.so",
            f"library: '{OP_CLAMP}', name: clamp, parameters: [0, 1], columns: y": "float32",
        }.items():
            file = self.pipeline(["from_tensor_slices: {x: [.nan], y: [1]}", f"op: {{{op}}}"])
            _, said = self.tundish("peek", file, fails=True)
            self.assertIn(words, said)
        file = self.pipeline(
            ["from_tensor_slices: {x: [.nan]}",
             f"op: {{library: '{OP_CLAMP}', name: clamp, parameters: [0, 1]}}"]
        )
        said, _ = self.tundish("peek", file, fails=True)
        self.assertRegex(said, r"NaN is not within any bounds \(op, line \d+ of .*\)")

    def columns_of(self, *stages):
        said, _ = self.tundish("peek", self.pipeline(stages), "--json")
        return json.loads(said.splitlines()[1])["columns"]

    def test_make_lists(self):
        pieces = f"op: {{library: '{OP_LISTS}', name: pieces, parameters: 2, columns: text}}"
        rows = self.columns_of(
            "from_tensor_slices: {text: [abcd, '', a, xyz]}", pieces, "ragged_batch: 4"
        )
        self.assertEqual(rows["text"]["dtype"], "int64")
        self.assertEqual(rows["text"]["values"], [0x6162, 0x6364, 0x61, 0x7879, 0x7A])
        self.assertEqual(rows["text"]["row_splits"], [[0, 2, 2, 3, 5]])
        batch = self.columns_of(
            "from_tensor_slices: {text: [abcd, '', a, xyz]}", "batch: 4", pieces
        )
        self.assertEqual(batch, rows)

    def test_take_vectors(self):
        stage = f"op: {{library: '{OP_LISTS}', name: unit_length, columns: x}}"
        columns = self.columns_of("from_tensors: {x: [[3.0, 4.0], [0.0, -2.0]]}", stage)
        self.assertEqual(columns["x"]["shape"], [2, 2])
        self.assertEqual(columns["x"]["values"], [0.6, 0.8, 0.0, -1.0])

    def test_take_vectors_only_of_a_known_size(self):
        stage = f"op: {{library: '{OP_LISTS}', name: unit_length, columns: x}}"
        for stages in (
            ["from_tensor_slices: {x: [1.0, 2.0]}"],
            ["from_tensor_slices: {x: [1.0, 2.0]}", "batch: {batch_size: 2, drop_remainder: true}"],
            ["from_tensors: {x: [[1.0, 2.0]]}", "to_sparse: {columns: x}"],
            ["from_tensors: {x: [[1.0, 2.0]]}", "to_ragged: {columns: x}"],
        ):
            _, said = self.tundish("peek", self.pipeline([*stages, stage]), fails=True)
            self.assertIn("no last dimension of a known size", said)


if __name__ == "__main__":
    unittest.main()
