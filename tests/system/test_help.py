"""What `tundish help` says of the language is what the program does."""

import json
import subprocess
import unittest

from rig import DEADLINE_S, TUNDISH, Rig


def said(*words, **options):
    done = subprocess.run([TUNDISH, *words], capture_output=True, text=True, timeout=DEADLINE_S, **options)
    return done.stdout + done.stderr


def tables():
    return json.loads(said("help", "--json"))


class Help(Rig):
    def batch(self, stages):
        """The columns of the first batch, or the errors."""
        out = said("peek", "--json", self.pipeline(stages), env=self.environment)
        lines = [json.loads(line) for line in out.splitlines()]
        return next((line["columns"] for line in lines if "columns" in line), lines[-1]["end"])

    def row(self):
        entries = tables()["expressions"]["row"].splitlines()
        return "from_tensors: {" + ", ".join(entries) + "}"

    def test_each_example_of_an_expression_gives_its_result(self):
        entries = tables()["expressions"]["entries"]
        self.assertGreater(len(entries), 40)
        made = {f"r{number}": entry["example"] for number, entry in enumerate(entries)}
        stages = [self.row(), f"map: {json.dumps(made)}", f"select: {json.dumps(list(made))}"]
        columns = self.batch(stages)
        for name, entry in zip(made, entries):
            with self.subTest(entry["form"]):
                expected = json.loads(entry["result"])
                shape = [len(expected)] if isinstance(expected, list) else []
                shape += [len(expected[0])] if shape and isinstance(expected[0], list) else []
                self.assertEqual(columns[name]["shape"], shape)
                self.assertEqual(columns[name]["values"], flat(expected))
                if entry["gives"] in ("bool", "int64", "float32"):
                    self.assertEqual(columns[name]["dtype"], entry["gives"])

    def test_the_example_of_a_function_calls_it(self):
        for entry in tables()["expressions"]["entries"]:
            if entry["name"]:
                self.assertIn(f"{entry['name']}(", entry["example"])

    def test_a_function_has_a_page_and_stands_in_the_manual(self):
        manual, listed = said("help", "--man"), said("help", "expressions")
        for entry in tables()["expressions"]["entries"]:
            if entry["name"]:
                self.assertIn(f"{entry['example']} is {entry['result']}", said("help", entry["name"]).replace("\n", " "))
            self.assertIn(entry["help"].split(" ")[0], listed)
        self.assertIn(".SH EXPRESSIONS", manual)

    def test_an_unknown_function_names_the_stage_that_does_it(self):
        for word, stage in (("substr", "substr"), ("lower", "string_lower"), ("replace", "regex_replace")):
            answer = self.batch([self.row(), f'map: {{r: "{word}(word)"}}'])
            self.assertIn(f"there is no function '{word}'; the stage {stage} does that, before this one",
                          answer["errors"][0])  # fmt: skip
        for word in ("shuffle", "count"):
            answer = self.batch([self.row(), f'map: {{r: "{word}(word)"}}'])
            self.assertTrue(answer["errors"][0].endswith(f"there is no function '{word}'"), answer)

    def test_an_example_stands_in_the_help_and_in_the_manual(self):
        manual = said("help", "--man")
        for stage in tables()["stages"]:
            self.assertTrue(stage["example"].endswith("\n"), stage["name"])
            lines = stage["example"].rstrip("\n").splitlines()
            self.assertIn("  Example\n" + "".join(f"      {line}\n" for line in lines), said("help", stage["name"]))
            self.assertIn(lines[0].replace("\\", "\\e").replace("-", "\\-"), manual)

    def test_there_are_topics(self):
        for word, part in (("pipeline", "Every error names file"), ("columns", "float16, bfloat16"),
                           ("streams", "rejoin: a duration"), ("features", "FixedLenSequence\n")):  # fmt: skip
            self.assertIn(part, said("help", word))
            self.assertIn(f"{word}\n", said("help", "--list"))
        for word in ("stages", "columns", "pipeline"):
            shown = [line for line in said("help", word).splitlines() if not line.startswith("      ")]
            self.assertEqual([line for line in shown if len(line) > 80], [])

    def test_peek_shows_a_person_ten_steps(self):
        file = self.pipeline(["range: 30"])
        shown = said("peek", file, env=self.environment)
        self.assertEqual(shown.count(" step "), 10)
        self.assertIn("worker 0: stops after 10 steps; --steps N shows more\n", shown)
        self.assertEqual(said("peek", "--epochs", "1", file, env=self.environment).count(" step "), 30)
        self.assertEqual(said("peek", "--json", file, env=self.environment).count('"step":'), 30)

    def test_output_that_is_cut_short_is_a_failure(self):
        file = self.pipeline(["range: 30"])
        for words in (["help"], ["--help"], ["--version"], ["help", "stages"], ["plan", "--help"], ["plan", file],
                      ["peek", file], ["peek", "--json", file], ["explain", file]):  # fmt: skip
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([TUNDISH, *words], stdout=full, stderr=subprocess.PIPE, text=True,
                                      env=self.environment, timeout=DEADLINE_S)  # fmt: skip
                self.assertEqual(done.returncode, 3)
                self.assertIn("the output is cut short: No space left on device\n", done.stderr)

    def test_peek_ends_when_its_reader_has_enough(self):
        file = self.pipeline(["range: 30"], deliver="{epochs: null}")
        script = 'set -o pipefail; "$@" | head -n 1'
        done = subprocess.run(["bash", "-c", script, "bash", TUNDISH, "peek", "--json", "--epochs", "1000000000", file],
                              capture_output=True, text=True, env=self.environment, timeout=DEADLINE_S)  # fmt: skip
        self.assertEqual((done.returncode, done.stderr, done.stdout.count("\n")), (0, "", 1))

    def test_what_must_be_written_is_shown(self):
        for stage in tables()["stages"]:
            needed = [parameter["name"] for parameter in stage["parameters"] if parameter["needed"]]
            if stage["written"] and ": {..." not in stage["written"]:
                self.assertEqual([name for name in needed if f"{name}: ..." not in stage["written"]], [])
        self.assertIn("  Written  - csv: {record_defaults: ..., column_names: ..., ...}; must be", said("help", "csv"))
        self.assertIn("  Written  - normalization, or - normalization: {...}\n", said("help", "normalization"))
        self.assertIn("  Written  - batch: {batch_size: ..., ...}, in short - batch: batch_size\n", said("help", "batch"))


def flat(values):
    if not isinstance(values, list):
        return [values]
    return [item for value in values for item in flat(value)]


if __name__ == "__main__":
    unittest.main()
