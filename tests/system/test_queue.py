"""Batches to whoever asks first, as parameter servers' workers do; and to everybody."""

import json
import signal
import subprocess
import unittest
from functools import partial

from rig import READER, TUNDISH, Rig, batches, place, stop

SHUFFLED = ["range: 1000", "shuffle: {buffer_size: 100}", "batch: 16"]
STEPS = 63
QUEUE = "{delivery: queue}"


def steps(lines):
    return [(epoch, step) for epoch, step, _ in batches(lines)]


def every_step(epochs=1):
    return [(epoch, step) for epoch in range(epochs) for step in range(STEPS)]


class Queue(Rig):
    def test_gives_each_batch_to_one_reader(self):
        file = self.pipeline(SHUFFLED, QUEUE, "{epochs: 3}")
        expected = self.peek(file, "--epochs", "3")[0]
        server = self.serve(file)
        starters = [partial(self.read, "--delay-ms", str(delay)) for delay in (0, 1, 3)]
        readers = self.come_together(server, starters)
        lines = self.all_lines(readers)
        self.assertEqual(sorted(sum(map(batches, lines), [])), sorted(expected))
        for of_one in lines:
            self.assertEqual(steps(of_one), sorted(steps(of_one)))
            self.assertEqual(of_one.count("end"), 3)
            self.assertEqual(of_one[-1], "end_of_stream")

    def test_offers_what_a_dead_reader_held_again_and_says_so(self):
        self.serve(self.pipeline(SHUFFLED, QUEUE))
        victim = self.read("--batches", "5", "--hold")
        self.wait_for_line(victim, "place ")
        victim.kill()
        self.wait_for_log("has died")
        lines = self.lines(self.read())
        self.assertEqual(steps(lines), every_step()[4:])
        self.assertEqual(lines[2], "again 1")
        self.assertEqual(sum(line.startswith("again") for line in lines), 1)

    def test_is_not_held_up_by_a_reader_that_holds_one(self):
        self.serve(self.pipeline(SHUFFLED, QUEUE, "{epochs: 1, slots: 4}"))
        holder = self.read_paced()
        holder.take(1)
        holder.process.send_signal(signal.SIGSTOP)
        reader = self.read("--batches", "40")
        self.assertEqual(len(batches(self.lines(reader))), 40)
        holder.process.send_signal(signal.SIGCONT)

    def test_resumes_at_its_place_with_what_was_visited(self):
        file = self.pipeline(SHUFFLED, QUEUE, "{epochs: 2}", seed="")
        server = self.serve(file)
        holder = self.read("--batches", "3", "--hold")
        self.wait_for_line(holder, "place ")
        # 0 and 1 are given back, 2 is not, 3 to 9 are but for the last.
        token = place(self.lines(self.read("--batches", "7")))
        stop(server, signal.SIGKILL)
        self.serve(file)
        lines = self.lines(self.read("--place", token))
        self.assertEqual(steps(lines), [(0, 2), (0, 9), *every_step(2)[10:]])

    def test_resumes_across_the_end_of_an_epoch(self):
        file = self.pipeline(SHUFFLED, QUEUE, "{epochs: 2}", seed="")
        server = self.serve(file)
        token = place(self.lines(self.read("--batches", str(STEPS + 4))))
        stop(server, signal.SIGKILL)
        self.serve(file)
        lines = self.lines(self.read("--place", token))
        self.assertEqual(steps(lines), every_step(2)[STEPS + 3 :])

    def test_tells_those_who_outlived_its_server_that_it_knows_nothing(self):
        file = self.pipeline(SHUFFLED, QUEUE, "{epochs: null}")
        server = self.serve(file)
        reader = self.read("--survive", "--delay-ms", "5")
        self.wait_for_line(reader, "batch 0 5 ")
        stop(server, signal.SIGKILL)
        self.serve(file)
        self.assertIn("E_PLACE", self.lines(reader)[-1])


class Broadcast(Rig):
    def test_gives_every_batch_to_every_group(self):
        file = self.pipeline(SHUFFLED, "{delivery: broadcast, groups: 3}")
        expected = self.peek(file)[0]
        self.serve(file)
        readers = [self.read(group=group) for group in "abc"]
        for lines in self.all_lines(readers):
            self.assertEqual(batches(lines), expected)


class Beside(Rig):
    """Streams of all kinds in one file, and a number of replicas on the command line."""

    DELIVERIES = {
        "train": ("{}", 2),
        "asked": ("{delivery: queue}", 1),
        "shown": ("{delivery: broadcast}", 1),
        "tested": ("{evaluation_shards: 1, auto_shard: DATA}", 1),
    }

    def file(self):
        file = self.path / "pipeline.yaml"
        streams = "".join(
            f"  {name}:\n    dataset: [{{range: 12}}, {{batch: 4}}]\n"
            f"    distribute: {distribute}\n    deliver: {{epochs: 1}}\n"
            for name, (distribute, _) in self.DELIVERIES.items()
        )
        file.write_text(f"seed: 1\nstreams:\n{streams}")
        return str(file)

    def test_replicas_are_of_lanes(self):
        file = self.file()
        self.serve(file, "--replicas", "2")
        for stream, (_, replicas) in self.DELIVERIES.items():
            command = [TUNDISH, "plan", file, "--json", "--stream", stream, "--replicas", "2"]
            plan = subprocess.run(command, env=self.environment, capture_output=True, check=True)
            self.assertEqual(json.loads(plan.stdout)["replicas"], replicas)
            readers = [
                self.start([READER], TUNDISH_STREAM=stream, TUNDISH_REPLICA=str(replica))
                for replica in range(replicas)
            ]
            values = [values for lines in self.all_lines(readers) for *_, values in batches(lines)]
            self.assertEqual(sorted(sum(values, [])), list(range(12)), stream)
            self.assertEqual({len(of_one) for of_one in values}, {4 // replicas})


if __name__ == "__main__":
    unittest.main()
