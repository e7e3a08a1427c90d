"""What has no stage runs under TensorFlow itself: the same batches, in order, and said."""

import tempfile
import unittest

import rig


class Ported(rig.PortTest):
    def ported(self, target):
        from tundish.port import porting

        self.compared_in = self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-port-"))
        return porting.port(f"{rig.PROGRAMS / target}", [], compared_in=self.compared_in, in_python=True)


class InPython(Ported):
    def same(self, target, said=r"to the bit$"):
        ported = self.ported(target)
        self.assertEqual(ported.problems, [])
        for checked in self.check(ported):
            self.assertFalse(checked.failed, f"{checked.lines}\n{ported.compared}")
            self.assertRegex(checked.lines[0], said)
        return ported

    def test_functions_are_stages(self):
        ported = self.same("in_python.py:functions")
        self.assertEqual(ported.compared.count("- python:"), 3)
        self.assertIn("rows: batch", ported.text)
        self.assertIn("- shuffle:", ported.text)
        notes = "\n".join(ported.notes)
        self.assertRegex(notes, r"in_python.py:\d+ map runs in Python \(tf.numpy_function.*\): \S+ [mu]s a row")

    def test_numbers_of_the_program_s_own_seed_are_the_same_in_interpreters(self):
        self.same("in_python.py:seeded")

    def test_a_function_within_one_of_an_outer_element_is_a_stage_there(self):
        self.assertIn("interleave:", self.same("in_python.py:within").text)

    def test_one_of_an_outer_element_as_well_is_left_to_its_dataset(self):
        text = self.same("in_python.py:outer").text
        self.assertNotIn("- flat_map", text)
        self.assertIn("- program:", text)

    def test_datasets_are_programs(self):
        ported = self.same("in_python.py:datasets")
        self.assertIn("shuffle: 5", ported.text)
        self.assertEqual(ported.text.count("- program:"), 2)
        self.assertEqual([note.partition(" (")[0].split()[1] for note in ported.notes], ["from_generator", "unique"])

    def test_random_numbers_are_others_of_the_same_spread(self):
        self.same("in_python.py:random", r"spread of values of \S+, in all 5 batches.*; 1 other column the same to the bit$")

    def test_what_gives_no_tensors_is_listed(self):
        ported = self.ported("in_python.py:ragged")
        self.assertEqual(ported.text, "")
        self.assertEqual([each.origin[1] for each in ported.problems], [77])


class Unlike(rig.PortTest):
    def test_values_of_another_spread_are_told(self):
        import numpy as np

        from tundish.port import compare

        def batches(centre):
            drawn = np.random.default_rng(1).normal(centre, 1.0, (4, 8, 3))
            return [(("values", batch),) for batch in drawn]

        self.assertIsNone(compare.unlike(batches(0), batches(0.1)))
        self.assertRegex(compare.unlike(batches(0), batches(9)), r"the mean is .* in TensorFlow, .* in Tundish")
        self.assertIn("shape", compare.unlike(batches(0), [(("values", each[0][1][:2]),) for each in batches(0)]))


if __name__ == "__main__":
    unittest.main()
