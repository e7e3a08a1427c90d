"""Datasets for a strategy: each worker and each replica gets TensorFlow's batches."""

import unittest

import rig

JOBS = [(1, 2), (2, 2), (3, 2)]
COMPLETE = """
by_file by_file_in_parallel map_after_batch whole_batches memory policy filtered_batches filtered_rows
""".split()


class Dealing(rig.PortTest):
    def test_each_replica_of_each_worker_gets_its_batches(self):
        for function in COMPLETE:
            with self.subTest(function):
                ported = self.port(f"distributed.py:{function}", compares=True)
                self.assertEqual(ported.problems, [])
                checked = self.check(ported)
                said = [line for each in checked for line in each.lines]
                self.assertEqual([each.failed for each in checked], [False] * 3, said)
                for (workers, _), line in zip(JOBS, said, strict=True):
                    self.assertRegex(line, rf"^{workers} workers? of 2 replicas: .* to the bit$")

    def test_a_function_gets_the_context_of_each_worker(self):
        ported = self.port("contexts.py:unless_one", compares=True)
        said = [line for each in self.check(ported) for line in each.lines]
        self.assertEqual(len(said), 3)
        self.assertRegex(said[1], r"^2 workers of 1 replica: 3 batches .* to the bit$")

    def test_a_job_that_neither_makes_is_told(self):
        ported = self.port("contexts.py:sharded", compares=True)
        checked = self.check(ported)
        self.assertFalse(checked[2].failed)
        self.assertRegex(checked[2].lines[0], r"^3 workers of 1 replica: neither gives batches: .* not divisible")

    def test_a_difference_names_worker_replica_row_and_file(self):
        ported = self.port("distributed.py:by_file", compares=True)
        ported.compared = ported.compared.replace("rebatch: tensorflow", "rebatch: split")
        checked = self.check(ported)
        self.assertRegex(
            checked[0].lines[0], r"^1 worker of 2 replicas: worker 0, replica \d, step \d, column .*shape"
        )
        ported.compared = ported.compared.replace("rebatch: split", "rebatch: tensorflow, auto_shard: DATA")
        checked = self.check(ported)
        self.assertTrue(checked[1].failed)
        self.assertRegex(checked[1].lines[0], r"worker \d, replica \d, step \d, column")

    def test_the_rows_of_another_worker_are_named_with_file_and_byte(self):
        ported = self.port("contexts.py:unless_one", compares=True)
        ported.compared = ported.compared.replace("index: $input_pipeline_id", "index: 0")
        checked = self.check(ported)
        self.assertEqual([each.failed for each in checked], [False, True, True])
        self.assertRegex(checked[1].lines[0], r"^2 workers of 1 replica: worker 1, replica 0, step 0, .* row 0")

    def test_a_predicate_that_needs_a_stage_after_batch_is_listed(self):
        ported = self.port("distributed.py:filtered_texts")
        self.assertEqual([(each.origin[1], each.name) for each in ported.problems], [(63, "filter")])


if __name__ == "__main__":
    unittest.main()
