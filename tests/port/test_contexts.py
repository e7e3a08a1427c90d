"""Functions of an InputContext: a file says the same for all workers, or says nothing."""

import unittest

import rig

SHARD = "shard: {num_shards: $num_input_pipelines, index: $input_pipeline_id}"
# By function: the line of the problem, and its name.
LISTED = {
    "shuffled_if_one": (52, "condition num_input_pipelines > 1"),
    "by_worker": (64, "condition input_pipeline_id == 0"),
    "many_workers": (74, "condition num_input_pipelines > 8"),
    "files_by_hand": (85, "InputContext"),
    "divided": (101, "InputContext"),
    "constant": (108, "InputContext"),
    "static_shape": (116, "the function of an InputContext"),
    "consumed": (127, "the function of an InputContext"),
    "seeded": (133, "Dataset.shuffle"),
    "in_a_list": (138, "InputContext"),
    "last_worker": (145, "condition input_pipeline_id == sub($num_input_pipelines, 1)"),
    "pattern": (94, "the function of an InputContext"),
}


class Contexts(rig.PortTest):
    def test_a_condition_that_only_leaves_out_a_shard_by_one_is_carried_over(self):
        for function in ("sharded", "unless_one", "unseeded"):
            with self.subTest(function):
                ported = self.port(f"contexts.py:{function}")
                self.assertEqual(ported.problems, [])
                self.assertEqual(ported.text.count(SHARD), 1, ported.text)

    def test_seeds_are_drawn_as_if_the_function_had_run_once(self):

        ported = self.port("contexts.py:unseeded", compares=True)
        self.assertIsNone(ported.streams[0].unordered)
        self.assertIn("seed: 5\n", ported.text)


def _listed(function, expected):
    def test(self):
        ported = self.port(f"contexts.py:{function}")
        self.assertEqual(ported.text, "")
        found = {(tuple(each.origin)[1], each.name) for each in ported.problems}
        self.assertEqual(found, {expected}, [(e.origin[1], e.name, e.why) for e in ported.problems])

    return test


for name, expected in LISTED.items():
    setattr(Contexts, f"test_listed_{name}", _listed(name, expected))

if __name__ == "__main__":
    unittest.main()
