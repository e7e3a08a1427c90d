"""What `tundish transform` writes, in every form, is what a trainer was given, to the byte."""

import base64
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
RECEIVED = os.environ.get("TUNDISH_RECEIVED", "")
CODES = {
    "bool": "?", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i",
    "uint64": "Q", "int64": "q", "float16": "e", "float32": "f", "float64": "d",
}


def packed(value, dtype):
    """A value as it lies in memory; of strings, their bytes."""
    if dtype == "string":
        if isinstance(value, dict):
            return base64.b64decode(value["base64"])
        return value.encode() if isinstance(value, str) else value
    return struct.pack("<" + CODES[dtype], float(value) if "float" in dtype else value)


def flat(value):
    if isinstance(value, dict) and "values" in value:
        value = value["values"]
    if not isinstance(value, list):
        return [value]
    return [leaf for item in value for leaf in flat(item)]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, bytes) of a protobuf message whose fields all hold bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        size, at = varint(data, at)
        yield tag >> 3, data[at : at + size]
        at += size


def records(data):
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        yield data[12 : 12 + size]
        data = data[16 + size :]


def feature_values(feature):
    for kind, values in fields(feature):
        if kind == 1:
            return [text for _, text in fields(values)]
        data = b"".join(part for _, part in fields(values))
        if kind == 2:
            return list(struct.unpack(f"<{len(data) // 4}f", data))
        numbers, at = [], 0
        while at < len(data):
            number, at = varint(data, at)
            numbers.append(number - (1 << 64) if number >> 63 else number)
        return numbers
    return []


class Received(Rig):
    def transform(self, file, rows, *options, fails=False):
        done = subprocess.run(
            [TUNDISH, "transform", file, *map(str, options)],
            env=self.environment, input=rows, capture_output=True,
        )
        self.assertEqual(done.returncode != 0, fails, done.stderr.decode())
        return done.stdout

    def received(self, file, stream="train"):
        """What a trainer is given: of each column its dtype, and of each row its values."""
        self.serve(file)
        folder = self.path / "received"
        folder.mkdir()
        said = self.lines(self.start([RECEIVED, folder], TUNDISH_STREAM=stream))
        self.assertRegex(said[-1], "^received [1-9]", said)
        columns = {}
        for path in folder.glob("*.dtype"):
            dtype, name = path.read_text(), path.stem
            data = (folder / f"{name}.values").read_bytes()
            counts = (folder / f"{name}.counts").read_bytes()
            columns[name] = dtype, self.rows_of(
                data, dtype, struct.unpack(f"<{len(counts) // 8}Q", counts)
            )
        return columns

    def rows_of(self, data, dtype, counts):
        at, rows = 0, []
        for count in counts:
            row = []
            for _ in range(count):
                size = struct.calcsize(CODES.get(dtype, "Q"))
                if dtype == "string":
                    (length,) = struct.unpack_from("<Q", data, at)
                    at += 8
                    size = length
                row.append(data[at : at + size])
                at += size
            rows.append(row)
        self.assertEqual(at, len(data))
        return rows

    def assert_written(self, expected, file, rows, *options):
        self.assert_json(expected, self.transform(file, rows, *options))
        self.assert_examples(expected, self.transform(file, rows, "--to", "tfrecord", *options))

    def assert_rows(self, written, expected, name):
        """Of what differs only the first row is shown: all of them take unittest minutes."""
        self.assertEqual(len(written), len(expected), name)
        for i, (one, other) in enumerate(zip(written, expected)):
            if one != other:
                self.fail(f"{name}, row {i}: {one[:9]} is not {other[:9]}")

    def assert_json(self, expected, lines):
        rows = [json.loads(line) for line in lines.splitlines()]
        for name, (dtype, values) in expected.items():
            self.assert_rows([[packed(v, dtype) for v in flat(row[name])] for row in rows], values, name)
        self.assertEqual({key for row in rows for key in row}, set(expected))

    def assert_examples(self, expected, data):
        rows = []
        for record in records(data):
            [(_, features)] = fields(record)
            entries = [dict(fields(entry)) for _, entry in fields(features)]
            rows.append({e[1].decode(): feature_values(e[2]) for e in entries})
        for name, (dtype, values) in expected.items():
            self.assert_rows([[packed(v, dtype) for v in row[name]] for row in rows], values, name)

    def assert_npy(self, expected, file, rows, *options):
        folder = self.path / "npy"
        self.transform(file, rows, "--to", "npy", "--output", folder, *options)
        for name, (_, values) in expected.items():
            data = (folder / f"{name}.npy").read_bytes()
            self.assertIn(b"'shape': (%d," % len(values), data[:256])
            self.assertTrue(data[256:] == b"".join(v for row in values for v in row), name)

    def write_clicks(self):
        command = [CLICKLOG, "--rows", "700", "--shards", "1", "--out", self.path / "clicks"]
        subprocess.run(command, check=True)
        [path] = (self.path / "clicks").glob("*.tfrecord")
        return path

    def test_clicks(self):
        clicks = self.write_clicks()
        file = self.pipeline(
            [
                f"tfrecord: {clicks}",
                "parse_example: {features: {label: {type: FixedLen, dtype: int64, shape: []}, "
                "'I*': {type: FixedLen, dtype: int64, shape: [], default_value: 0}, "
                "'C*': {type: FixedLen, dtype: string, shape: [], default_value: ''}}, "
                "columns: [label, I1..I13, C1..C26]}",
                "string_lookup: {columns: 'C*', vocabulary: 'clicks/vocab/{column}.txt'}",
                "map: {'I*': 'log1p(max(cast({column}, float32), 0))'}",
                "batch: 64",
            ]
        )
        expected = self.received(file)
        self.assertEqual(len(expected), 40)
        self.assert_written(expected, file, clicks.read_bytes(), "--from", "tfrecord")
        self.assert_npy(expected, file, clicks.read_bytes(), "--from", "tfrecord", "--batch", "33")

    def test_clicks_up_to_a_stage_of_another_stream(self):
        clicks = self.write_clicks()
        start = f"""    dataset:
      - tfrecord: {clicks}
      - parse_example:
          features:
            'I*': {{type: FixedLen, dtype: int64, shape: [], default_value: 0}}
            'C*': {{type: FixedLen, dtype: string, shape: [], default_value: ''}}
          columns: [I1..I3, C1..C3]
      - bucketize: {{columns: 'I*', num_buckets: 7}}
      - string_lookup: {{columns: 'C*', num_oov_indices: 2}}
"""
        file = self.path / "pipeline.yaml"
        file.write_text(
            f"streams:\n  train:\n{start}      - map: {{'I*': '{{column}} * 2'}}\n      - batch: 64\n"
            f"  eval:\n{start}      - batch: 50\n    deliver: {{epochs: 1}}\n"
        )
        subprocess.run(
            [TUNDISH, "analyze", file, "--quiet"], env=self.environment, check=True
        )
        expected = self.received(str(file), "eval")
        rows = clicks.read_bytes()
        options = "--from", "tfrecord", "--stream"
        self.assert_written(expected, file, rows, *options, "eval")
        self.assert_written(expected, file, rows, *options, "train", "--until", "string_lookup")
        self.assert_npy(expected, file, rows, *options, "train", "--until", "string_lookup")

    def test_text(self):
        chance = random.Random(2)
        words = [b"Word%d," % i for i in range(80)] + [b"\xff\xfe", "\u00fcber".encode(), b"a\\\"b"]
        lines = b"".join(
            b" ".join(chance.choices(words, k=chance.randrange(0, 9))) + b"\n" for _ in range(150)
        )
        (self.path / "lines.txt").write_bytes(lines)
        file = self.pipeline(
            [
                "text_line: lines.txt",
                "string_length: {columns: value, output: bytes}",
                "string_split: {columns: value, output: parts}",
                "ragged_batch: 16",
                "to_sparse: {columns: parts, output: apart}",
                "text_vectorization: {columns: value, max_tokens: 60}",
            ]
        )
        subprocess.run([TUNDISH, "analyze", file, "--quiet"], env=self.environment, check=True)
        expected = self.received(file)
        self.assertEqual(set(expected), {"value", "bytes", "parts", "apart"})
        self.assert_written(expected, file, lines, "--batch", "16")
        self.assert_written(expected, file, lines[:-1], "--batch", "16", "--from", "jsonl")

    def test_pictures(self):
        names = ("rgb", "444", "gray", "prog", "exif")
        rows = b"".join((PICTURES / f"content_img_{name}.tfrecord").read_bytes() for name in names)
        (self.path / "pictures.tfrecord").write_bytes(rows)
        file = self.pipeline(
            [
                "tfrecord: pictures.tfrecord",
                "decode_jpeg: {channels: 3}",
                "resize: {size: [9, 7]}",
                "rescaling: {scale: 0.00392156862745098}",
                "map: {value: 'value - 0.5'}",
                "batch: 2",
            ]
        )
        expected = self.received(file)
        self.assert_written(expected, file, rows, "--from", "tfrecord")
        self.assert_npy(expected, file, rows, "--from", "tfrecord")

    def test_lines_of_csv(self):
        chance = random.Random(7)
        lines = "".join(
            f"{chance.randrange(-9, 9)},{chance.gauss(0, 1):.9g},\"a,{chance.randrange(5)}\"\n"
            for _ in range(120)
        ).encode()
        (self.path / "rows.csv").write_bytes(lines)
        file = self.pipeline(
            [
                "csv: {filenames: rows.csv, record_defaults: [0, {values: 0.0, dtype: float64}, ''], "
                "column_names: [id, x, word]}",
                "scale_to_z_score: {columns: x}",
                "compute_and_apply_vocabulary: {columns: word, output: number}",
                "batch: 32",
            ]
        )
        subprocess.run([TUNDISH, "analyze", file, "--quiet"], env=self.environment, check=True)
        expected = self.received(file)
        self.assert_json(expected, self.transform(file, lines, "--batch", "1"))
        self.assert_json(expected, self.transform(file, lines[:-1], "--from", "csv"))

    def test_rows_of_named_columns(self):
        values = {
            "a": ("float64", [0.1, 1e300, float("nan")]),
            "b": ("uint64", [2**64 - 1, 2**53 + 1, 0]),
            "c": ("int8", [[-128, 127], [0, 1], [2, 3]]),
            "d": ("bool", [True, False, True]),
            "e": ("float16", [0.5, 65504.0, float("-inf")]),
        }
        entries = ", ".join(
            f"{name}: {{values: {json.dumps(v).replace('NaN', '.nan').replace('-Infinity', '-.inf')}, "
            f"dtype: {dtype}}}"
            for name, (dtype, v) in values.items()
        )
        file = self.pipeline([f"from_tensor_slices: {{{entries}, s: ['', \"\\u00e9\", x]}}", "batch: 2"])
        expected = self.received(file)
        lines = b""
        for i in range(3):
            row = {name: v[i] for name, (_, v) in values.items()}
            row["s"] = ["", {"base64": base64.b64encode("\u00e9".encode()).decode()}, "x"][i]
            for name in "ae":
                row[name] = "nan" if row[name] != row[name] else row[name]
                row[name] = "-inf" if row[name] == float("-inf") else row[name]
            lines += json.dumps(row).encode() + b"\n"
        written = self.transform(file, lines, "--from", "jsonl")
        self.assert_json(expected, written)
        self.assertEqual(self.transform(file, written, "--from", "jsonl"), written)
        for bad, words in {
            '"b": -1': b"row 1: column 'b': -1 is not a valid uint64",
            '"b": 18446744073709551616': b"is not a valid uint64",
            '"c": [1, 128]': b"'c': 128 is not a valid int8",
            '"a": "x"': b"'a': expected a number, found a string",
            '"s": {"base64": "*"}': b"'s': not base64",
        }.items():
            row = json.dumps({**json.loads(written.splitlines()[0]), **json.loads(f"{{{bad}}}")})
            done = subprocess.run(
                [TUNDISH, "transform", file, "--from", "jsonl"], env=self.environment,
                input=written.splitlines()[0] + b"\n" + row.encode(), capture_output=True,
            )
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
