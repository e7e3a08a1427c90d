"""tf.Transform's preprocessing_fn: Tundish learns what tf.Transform learns, and gives its batches."""

import importlib.util
import inspect
import tempfile
import unittest
from pathlib import Path

import rig

# PROGRAM: DATASET FUNCTION
COMPLETE = """
taxi_transform:raw:preprocessing_fn taxi_transform:two:preprocessing_fn
census_transform:raw:preprocessing_fn transform_mappers:raw:numbers transform_mappers:raw:words
""".split()


@unittest.skipUnless(importlib.util.find_spec("tensorflow_transform"), "needs tensorflow_transform")
class Transforms(rig.PortTest):
    def transformed(self, target, compares=False):
        from tundish.port import porting

        name, dataset, function = target.split(":")
        path = rig.PROGRAMS / f"{name}.py"
        self.compared_in = self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-port-"))
        folder = self.compared_in if compares else None
        return porting.port(f"{path}:{dataset}", [], "", folder, f"{path}:{function}")

    def complete(self, target):
        ported = self.transformed(target, compares=True)
        self.assertEqual(ported.problems, [])
        file = Path(self.compared_in, "pipeline.yaml")
        file.write_text(ported.compared)
        ported.transform.analyze(file)
        for checked in self.check(ported):
            self.assertFalse(checked.failed, f"{checked.lines}\n{ported.compared}")
            self.assertRegex(checked.lines[0], r"^\d batch(es)? of \d+ columns? are the same, to the bit")

    def test_what_is_not_carried_over_is_listed(self):
        ported = self.transformed("transform_mappers:raw:refused")
        found = sorted({(tuple(each.origin)[1], each.name.partition(" (")[0]) for each in ported.problems})
        self.assertEqual(found, [
            (58, "tft.mean"), (59, "tf.linalg.matmul"), (59, "tft.pca"), (60, "tft.apply_vocabulary"), (61, "tft.ngrams"),
        ])  # fmt: skip
        self.assertEqual(ported.text, "")

    def test_streams_learn_from_the_first(self):
        self.assertTrue(self.transformed("taxi_transform:two:preprocessing_fn").text.startswith("learn_from: train\n"))

    def test_rows_that_are_not_batched_are_refused(self):
        from tundish.port import program

        with self.assertRaisesRegex(program.ProgramFailed, r"takes batches, and x .* batch the dataset first"):
            self.transformed("transform_mappers:rows_alone:numbers")

    def test_the_rules_have_tf_transforms_parameters(self):
        import tensorflow_transform as tft

        from tundish.data.lowering import RULES

        checked = 0
        for name, rule in RULES.items():
            if name.startswith("tft."):
                real = inspect.signature(inspect.unwrap(getattr(tft, name[4:]))).parameters
                ours = rule.signature.parameters
                self.assertEqual(set(ours), set(real), name)
                self.assertEqual(_positional(ours), _positional(real), name)
                for key in real:
                    self.assertEqual((ours[key].kind, ours[key].default), (real[key].kind, real[key].default), key)
                checked += 1
        self.assertGreater(checked, 20)


def _positional(parameters):
    return [each.name for each in parameters.values() if each.kind != each.KEYWORD_ONLY]


def _add_tests():
    for target in COMPLETE:
        name = target.replace(":", "_")
        setattr(Transforms, f"test_complete_{name}", lambda self, target=target: self.complete(target))


_add_tests()

if __name__ == "__main__":
    unittest.main()
