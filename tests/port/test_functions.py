"""Functions of TensorFlow, each ported and compared: functions_*.py."""

import ast
import unittest

import rig

LISTED = {
    "functions_of_orders:captured": ["shuffle"],
    "functions_of_orders:captured_in_a_body": ["shuffle"],
    "functions_of_orders:cached_once": ["cache"],
    "functions_of_orders:cached_twice": ["cache"],
    "functions_of_shapes:refused": ["tf.gather", "tf.repeat", "tf.tile"],
    "functions_of_tables:shortened": ["tf.lookup.StaticHashTable.lookup"],
    "functions_of_tables:shortened_with_buckets": ["tf.lookup.StaticVocabularyTable.lookup"],
    "functions_of_tables:shifted": ["tf.lookup.StaticHashTable.lookup"],
}


class Functions(rig.PortTest):
    def complete(self, target):
        ported = self.port(target.replace(":", ".py:"), compares=True)
        self.assertEqual(ported.problems, [])
        for checked in self.check(ported):
            self.assertFalse(checked.failed, f"{checked.lines}\n{ported.compared}")
            self.assertRegex(checked.lines[0], r"^[1-9]\d* batch(es)? of \d+ columns? are the same, to the bit")

    def test_what_is_not_carried_over_is_listed(self):
        for target, names in LISTED.items():
            ported = self.port(target.replace(":", ".py:"))
            self.assertEqual(sorted(each.name for each in ported.problems), names)

    def test_what_remains_is_tensorflows_and_has_a_remedy(self):
        import tensorflow as tf

        from tundish.data import remaining

        for name in remaining.REMAINING:
            found = tf
            for part in name.split(".")[1:]:
                found = getattr(found, part)
        ported = self.port("functions_of_shapes.py:refused")
        told = {each.name: each.remedy for each in ported.problems}
        self.assertEqual(told["tf.repeat"], "use tf.stack or tf.concat of columns")


def _add_tests():
    for path in sorted(rig.PROGRAMS.glob("functions_*.py")):
        for node in ast.parse(path.read_text()).body:
            target = f"{path.stem}:{node.name}" if isinstance(node, ast.FunctionDef) else ""
            is_dataset = target and not node.args.args and not node.name.startswith("_")
            if is_dataset and target not in LISTED:
                setattr(Functions, f"test_{path.stem}_{node.name}", lambda self, t=target: self.complete(t))


_add_tests()

if __name__ == "__main__":
    unittest.main()
