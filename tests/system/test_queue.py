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

    def test_ends_for_readers_that_give_each_batch_back_after_the_next(self):
        file = self.pipeline(SHUFFLED, QUEUE, "{epochs: 2, slots: 8}")
        for options in ([], ["--state", str(self.path)]):
            for count in (1, 3):
                server = self.serve(file, *options)
                readers = self.come_together(server, [partial(self.read, "--late")] * count)
                lines = self.all_lines(readers)
                self.assertEqual(sorted(sum(map(steps, lines), [])), every_step(2))
                for of_one in lines:
                    self.assertEqual(of_one.count("end"), 2)
                    self.assertEqual(of_one[-1], "end_of_stream")
                stop(server)
                for name in self.path.glob("train.*"):
                    name.unlink()

    def test_ends_while_a_reader_does_not_give_its_batch_back(self):
        self.serve(self.pipeline(SHUFFLED, QUEUE, "{epochs: 2, slots: 8}"))
        keeper = self.read("--batches", "1", "--hold")
        self.wait_for_line(keeper, "place ")
        lines = self.lines(self.read())
        self.assertEqual(steps(lines), every_step(2)[1:])
        self.assertEqual((lines.count("end"), lines[-1]), (2, "end_of_stream"))

    def test_gives_what_was_held_at_the_end_to_the_next_that_comes(self):
        self.serve(self.pipeline(SHUFFLED, QUEUE, "{epochs: 2, slots: 8}"))
        keeper = self.read("--batches", "1", "--hold")
        self.wait_for_line(keeper, "place ")
        reader = self.read("--batches", str(STEPS))
        self.assertEqual(steps(self.lines(reader)), every_step(2)[1 : STEPS + 1])
        keeper.kill()
        self.wait_for_log("1 batch was held by readers that left, from epoch 0, step 0 on")
        lines = self.lines(self.read())
        self.assertEqual(steps(lines), [(0, 0), *every_step(2)[STEPS + 1 :]])
        self.assertEqual((lines.count("end"), lines.count("again 1")), (2, 1))

    def test_does_without_what_nobody_came_for_when_its_slot_is_needed(self):
        self.serve(self.pipeline(SHUFFLED, QUEUE, "{epochs: 9, slots: 4}"))
        keeper = self.read("--batches", "1", "--hold")
        self.wait_for_line(keeper, "place ")
        reader = self.read_paced()
        self.assertEqual(len(reader.take(STEPS)), STEPS)  # all of an epoch, and one of the next
        keeper.kill()
        self.wait_for_log("no other reader is still in that epoch")
        lines = reader.finish()
        self.assertEqual(steps(lines), every_step(9)[1:])
        self.wait_for_log("is given up, since its slot is needed")

    def test_brings_what_was_held_at_the_end_again_after_a_restart(self):
        file = self.pipeline(SHUFFLED, QUEUE, "{epochs: 2, slots: 8}", seed="")
        server = self.serve(file, "--state", str(self.path))
        keeper = self.read("--batches", "1", "--hold")
        token = self.wait_for_line(keeper, "place ").split()[1]
        reader = self.read("--batches", str(STEPS + 4))
        lines = self.lines(reader)
        self.assertEqual(steps(lines), every_step(2)[1 : STEPS + 5])
        later = place(lines)
        keeper.kill()
        stop(server)
        server = self.serve(file, "--state", str(self.path))
        kept = self.lines(self.read())
        self.assertEqual(steps(kept), [(0, 0), *every_step(2)[STEPS + 5 :]])
        self.assertEqual(kept.count("end"), 2)
        stop(server)
        for saved, begins in ((token, 1), (later, STEPS + 4)):
            server = self.serve(file)
            lines = self.lines(self.read("--place", saved))
            self.assertEqual(steps(lines), [(0, 0), *every_step(2)[begins:]])
            stop(server)

    def test_names_the_reader_that_holds_its_slots(self):
        self.serve(self.pipeline(SHUFFLED, QUEUE, "{epochs: 1, slots: 4}"))
        holders = [self.read("--keep", "9", "--batches", "2", "--hold") for _ in range(2)]
        for holder in holders:
            self.wait_for_line(holder, "place ")
        reader = self.read()

        def names():
            said = subprocess.run([TUNDISH, "status", "--interval", "200"],
                                  env=self.environment, capture_output=True, text=True).stdout
            said = said.replace("\n        ", "")
            return any(f"process {holder.pid} holds 2 batches" in said for holder in holders)

        self.wait_until(names)
        for holder in holders:
            holder.kill()
        self.assertEqual(sorted(steps(self.lines(reader))), every_step())

    def test_stops_while_readers_hold_what_they_had_last(self):
        file = self.pipeline(["range: 1000000", "batch: 16"], QUEUE, "{slots: 8}", seed="")
        seen = []
        for _ in range(2):
            server = self.serve(file, "--state", str(self.path))
            readers = [self.read("--late", "--delay-ms", "1") for _ in range(2)]
            for reader in readers:
                self.wait_for_line(reader, "batch ")
            server.send_signal(signal.SIGTERM)
            lines = [self.whole(reader) for reader in readers]
            self.assertEqual([of_one[-1] for of_one in lines], ["stopped"] * 2)
            self.assertEqual(server.wait(), 0)
            seen.append(lines)
        # What each held when it was told is not given back. Only that comes again, if the other did
        # not take it.
        held = {steps(of_one)[-1] for of_one in seen[0]}
        first, second = (set(sum(map(steps, lines), [])) for lines in seen)
        self.assertLessEqual(first & second, held)
        self.assertEqual(sorted(first | second), [(0, i) for i in range(max(second)[1] + 1)])

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
