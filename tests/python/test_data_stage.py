"""Dataset.stage: stages of the pipeline file in a program, for which tf.data has no method."""

import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import rig
from tundish import PipelineError
from tundish.data import Dataset, TextLineDataset

FEATURES = {
    "a": {"type": "FixedLen", "dtype": "int64", "shape": []},
    "c": {"type": "FixedLen", "dtype": "float32", "shape": [2]},
}


class Stages(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-")))
        self.rows = self.folder / "rows.jsonl"
        self.rows.write_text("".join(json.dumps({"a": i, "c": [i, 2.5]}) + "\n" for i in range(5)))

    def test_a_stage_is_written_as_it_is_and_its_columns_are_known(self):
        rows = TextLineDataset(str(self.rows)).stage("decode_json", features=FEATURES)
        self.assertEqual({n: (s.dtype, s.shape) for n, s in rows.element_spec.items()},
                         {"a": ("int64", ()), "c": ("float32", (2,))})  # fmt: skip
        longer = rows.map(lambda row: {"a": row["a"] * 2, "c": row["c"]}).stage("pad_or_truncate", columns="c", length=3)
        self.assertEqual(longer.element_spec["c"].shape, (3,))
        (batch, *_) = longer.batch(2).peek(1)
        self.assertEqual(batch["a"].tolist(), [0, 2])
        self.assertEqual(batch["c"].tolist(), [[0, 2.5, 0], [1, 2.5, 0]])

    def test_a_stage_keeps_the_nest_of_components_it_does_not_change(self):
        pairs = Dataset.range(4).map(lambda x: (x, x + 1)).stage("permute", seed=3)
        self.assertEqual(len(pairs.element_spec), 2)
        (gaps,) = pairs.batch(4).map(lambda x, y: y - x).peek(1)[0].values()
        self.assertEqual(gaps.tolist(), [1, 1, 1, 1])

    def test_a_source_stands_first(self):
        self.assertIn("- range: [2, 5]", Dataset.stage("range", start=2, stop=5).yaml())
        both = Dataset.stage("zip", datasets=[Dataset.range(3), Dataset.stage("range", stop=3, name="b")])
        self.assertEqual(list(both.element_spec), ["value", "b"])
        self.assertEqual(both.batch(3).peek(1)[0]["b"].tolist(), [0, 1, 2])

    def test_inside_of_a_function_the_outer_column_has_a_dollar(self):
        inner = Dataset.range(3).flat_map(lambda i: Dataset.range(2).stage("map", j="$value * 10 + value"))
        self.assertEqual(inner.batch(9).peek(1)[0]["j"].tolist(), [0, 1, 10, 11, 20, 21])
        files = Dataset.from_tensor_slices([str(self.rows)])
        lines = files.flat_map(lambda path: Dataset.stage("text_line", filenames=path))
        self.assertEqual(len(lines.batch(9).peek(1)[0]["value"]), 5)

    def test_files_need_not_be_there_to_know_the_columns(self):
        rows = TextLineDataset("/nowhere/rows.jsonl").stage("decode_json", features=FEATURES)
        self.assertEqual(list(rows.element_spec), ["a", "c"])

    def test_what_is_to_be_learned_yet_does_not_matter(self):
        words = TextLineDataset(str(self.rows)).stage("string_lookup", output="index")
        self.assertEqual(list(words.element_spec), ["value", "index"])

    def test_a_text_stays_what_it_is(self):
        self.enterContext(mock.patch.dict(os.environ, TUNDISH_TEST_NAME="wrong"))
        replaced = Dataset.from_tensor_slices(["a"]).stage("regex_replace", pattern="a", rewrite="${TUNDISH_TEST_NAME}")
        self.assertEqual(replaced.batch(1).peek(1)[0]["value"].numpy().tolist(), [b"${TUNDISH_TEST_NAME}"])

    def test_the_server_says_what_is_wrong_with_a_stage_at_its_line(self):
        with self.assertRaisesRegex(PipelineError, r'^test_data_stage.py:\d+: there is no stage "decode_xml"'):
            TextLineDataset("x").stage("decode_xml", features={})
        with self.assertRaisesRegex(PipelineError, r"test_data_stage.py:\d+: .*lenght"):
            Dataset.from_tensor_slices([[1, 2]]).stage("pad_or_truncate", lenght=3)


if __name__ == "__main__":
    unittest.main()
