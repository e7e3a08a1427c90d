"""admin/page/openapi.json describes each figure of sdk/shm/stats.def, in its words and its order."""

import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"NONE": "", "SECONDS": "_seconds", "BYTES": "_bytes"}
RATE = {"type": "number", "description": "its growth a second, over window_seconds"}
TEXT = r'"((?:[^"\\]|\\.)*)"'


def fields():
    """{kind: [(name, type, unit, help)]} of stats.def."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "sdk/shm/stats.def").read_text(), flags=re.DOTALL)
    found = {kind: [] for kind in re.findall(r"STATS_KIND\((\w+),", text)}
    row = rf"STATS_FIELD\((\w+),\s*(\w+),\s*(\w+),\s*(\w+),\s*((?:{TEXT}\s*)+)\)"
    for kind, name, type_, unit, words, _ in re.findall(row, text):
        about = "".join(json.loads(f'"{part}"') for part in re.findall(TEXT, words))
        found[kind].append((name, type_, unit, about))
    return found, text.count("STATS_FIELD(")


def properties(kind):
    """What a schema must say of the kind, in order."""
    for name, type_, unit, about in kind:
        if type_ == "HISTOGRAM":
            value = {"allOf": [{"$ref": "#/components/schemas/Histogram"}], "description": about}
        else:
            value = {"type": "number", "description": about}
        yield name + UNITS[unit], value
        if type_ == "COUNTER":
            yield f"{name}_rate", RATE


class OpenApi(unittest.TestCase):
    def setUp(self):
        described = json.loads((ROOT / "admin/page/openapi.json").read_text())
        self.schemas = described["components"]["schemas"]
        self.fields, self.count = fields()

    def test_all_rows_are_read(self):
        self.assertEqual(sum(map(len, self.fields.values())), self.count)
        self.assertGreater(self.count, 100)

    def test_each_figure_is_described_as_it_is_defined(self):
        for kind, rows in self.fields.items():
            schema = self.schemas[kind.capitalize()]
            wanted = dict(properties(rows))
            found = {name: about for name, about in schema["properties"].items() if name in wanted}
            self.assertEqual(list(found.items()), list(wanted.items()), kind)
            self.assertEqual([name for name in wanted if name not in schema["required"]], [], kind)

    def test_nothing_else_grows(self):
        """A rate is a counter's: that of a row that is gone is gone, too."""
        for kind, rows in self.fields.items():
            wanted = dict(properties(rows))
            rates = [name for name, about in self.schemas[kind.capitalize()]["properties"].items() if about == RATE]
            self.assertEqual([name for name in rates if name not in wanted], [], kind)


if __name__ == "__main__":
    unittest.main()
