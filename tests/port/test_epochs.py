"""Why a comparison is not the first epoch's, what TensorFlow itself changes from run to run, and where both
end."""

import unittest
from unittest import mock

import rig

READ = r"the shuffle at epochs.py:\d+ was read once before"


class Epochs(rig.PortTest):
    def of(self, function):
        ported = self.port(f"epochs.py:{function}", compares=True)
        self.assertEqual(ported.problems, [])
        return ported, self.check(ported)

    def test_what_was_read_before_is_told_and_the_next_epoch_compared(self):
        for function in ("adapted", "looped", "listed", "reduced", "numpied"):
            with self.subTest(function):
                ported, (checked,) = self.of(function)
                self.assertFalse(checked.failed, checked.lines)
                self.assertRegex(ported.notes[0], f"{READ}.* next epoch is epoch 1 of this pipeline file")
                self.assertRegex(checked.lines[0], "are the same, to the bit$")
                self.assertRegex(checked.lines[1], f"{READ}.* compared is epoch 1 of Tundish")

    def test_a_cache_of_what_was_read_before_is_compared_as_a_set(self):
        _, (checked,) = self.of("cached")
        self.assertRegex(checked.lines[0], f"the same 20 rows, compared as sets: {READ}")

    def test_streams_of_one_shuffle_leak(self):
        for function in ("split", "split_unseeded"):
            with self.subTest(function):
                ported, checked = self.of(function)
                self.assertRegex(ported.notes[0], r"^LEAK: train and validation are parts of one shuffle \(epochs.py:\d+\)")
                self.assertFalse(any(each.failed for each in checked), checked)
                self.assertRegex(checked[1].lines[1], f"{READ}.* another stream")

    def test_streams_of_one_shuffle_that_stays_do_not_leak(self):
        ported, checked = self.of("split_fixed")
        self.assertEqual(ported.notes, [])
        self.assertEqual([len(each.lines) for each in checked], [1, 1])

    def test_where_both_end_is_told_with_both_reasons(self):
        _, (checked,) = self.of("ending")
        self.assertFalse(checked.failed, checked.lines)
        self.assertRegex(
            checked.lines[0],
            r"(?s)^2 batches of 1 column are the same, to the bit; then both end at step 2: TensorFlow: .*five.*; Tundish: .*five",
        )

    def test_where_tensorflow_alone_ends_is_a_difference(self):
        _, (checked,) = self.of("ending_in_tensorflow")
        self.assertTrue(checked.failed)
        self.assertRegex(checked.lines[0], r"(?s)^step 1: TensorFlow: .*assertion failed.*; Tundish goes on")


class Races(rig.PortTest):
    def checked(self, function, is_repeated):
        """What is told of a difference. is_repeated: whether TensorFlow gives the same in other runs."""
        from tundish.port import check

        ported = self.port(f"epochs.py:{function}", compares=True)
        ported.compared = ported.compared.replace("[", "[ ").replace("batch: 4", "batch: 3")
        with mock.patch.object(check, "_is_repeated", lambda *_: is_repeated):
            return self.check(ported)[0]

    def test_draws_in_parallel_are_not_compared_if_tensorflow_changes_from_run_to_run(self):
        checked = self.checked("racing", is_repeated=False)
        self.assertFalse(checked.failed)
        self.assertRegex(checked.lines[0], r"^not compared: epochs.py:\d+ draws at random in several calls at once")

    def test_draws_in_parallel_that_are_repeated_are_a_difference(self):
        checked = self.checked("racing", is_repeated=True)
        self.assertTrue(checked.failed)
        self.assertRegex(checked.lines[1], "TensorFlow's values may change from run to run")

    def test_what_is_not_known_to_race_is_a_difference(self):
        checked = self.checked("looped", is_repeated=False)
        self.assertTrue(checked.failed)
        self.assertIn("TensorFlow gives other batches in a second run of the program", checked.lines)

    def test_a_second_run_of_tensorflow_is_compared_with_the_first(self):
        from tundish.port import check

        ported = self.port("epochs.py:looped", compares=True)
        stream = ported.streams[0]
        question = check.Question(None, "", "train", None, stream.structure, again=stream.again)
        taken, ended = check._taken(stream.again(), 9)
        self.assertEqual((len(taken), ended), (5, ""))
        found = check.Batches(0, 0, 0, [check._components(question, each) for each in taken], [])
        self.assertTrue(check._is_repeated(question, found))
        found.theirs.reverse()
        self.assertFalse(check._is_repeated(question, found))


if __name__ == "__main__":
    unittest.main()
