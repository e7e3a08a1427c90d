"""Input functions as public repositories have them, that have no stage for a part of what they do."""

import unittest

from test_in_python import Ported


class Public(Ported):
    """All are carried over, and some are compared here."""

    def test_texts_and_tables(self):
        ported = self.ported("public_texts.py:exact")
        self.assertEqual(ported.problems, [])
        self.assertEqual(len(ported.streams), 8)
        streams = ("listwise_ranking", "parallel_texts", "reviews", "translation", "captions")
        ported.streams = [each for each in ported.streams if each.name in streams]
        for checked in self.check(ported, 3):
            self.assertFalse(checked.failed, f"{checked.lines}\n{ported.compared}")
            self.assertRegex(checked.lines[0], r"to the bit$")

    def test_pictures_and_a_sound(self):
        ported = self.ported("public_images.py:all_of_them")
        self.assertEqual(ported.problems, [])
        self.assertEqual(len(ported.streams), 10)
        said = {"detection": r"to the bit$", "imagenet_training": r"spread of values of value_0, .*; 1 other column the same to the bit$"}
        ported.streams = [each for each in ported.streams if each.name in said]
        for stream, checked in zip(ported.streams, self.check(ported, 2), strict=True):
            self.assertFalse(checked.failed, f"{checked.lines}\n{ported.compared}")
            self.assertRegex(checked.lines[0], said[stream.name])


if __name__ == "__main__":
    unittest.main()
