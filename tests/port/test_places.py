"""Where a pipeline file will be served: its replicas, and other paths; names and files beside it."""

import unittest

import rig


class Places(rig.PortTest):
    def text(self, target, **place):
        from tundish.port import porting

        ported = porting.port(f"{rig.PROGRAMS / target}", [], place=porting.Place(**place))
        self.assertEqual(ported.problems, [])
        return ported

    def test_replicas_are_those_of_the_place(self):
        self.assertIn("distribute: {replicas: 8}", self.text("titanic_csv.py:make", replicas=8).text)
        text = self.text("guide_input.py:distributed", replicas=3).text
        self.assertIn("replicas: 3", text)
        self.assertIn("rebatch: tensorflow", text)

    def test_paths_begin_as_they_do_at_the_place(self):
        ported = self.text("elsewhere.py:make", paths=[("speech", "s3://bucket/speech"), ("pre", "other")])
        self.assertIn('file_pattern: "s3://bucket/speech/*/*.wav"', ported.text)
        self.assertIn('value: ["s3://bucket/speech/no/a.wav", pretrain-0.tfrecord]', ported.text)
        self.assertIn("cache: speechless", ported.text)
        self.assertEqual(
            ported.notes,
            [
                "elsewhere.py:10: values of from_tensor_slices are taken for paths, and changed by --map-path",
                "--map-path pre=other: no path begins with pre",
            ],
        )

    def test_a_later_function_names_what_has_the_path_of_a_feature(self):
        ported = self.port("elsewhere.py:features", compares=True)
        self.assertEqual(ported.streams[0].structure, ("image", "label"))
        self.assertFalse(self.check(ported)[0].failed)

    def test_adapted_vocabularies_lie_beside_the_file(self):
        for function, count in (("vectorized", 58), ("multi_hot", 59), ("looked_up", 67)):
            with self.subTest(function):
                ported = self.port(f"elsewhere.py:{function}", compares=True)
                self.assertEqual(ported.problems, [])
                (name,) = ported.files
                self.assertRegex(ported.text, rf"vocabulary: {name}\b")
                self.assertEqual(ported.files[name].count(b"\n"), count)
                self.assertFalse(self.check(ported)[0].failed)


if __name__ == "__main__":
    unittest.main()
