"""Shards of an evaluation: each wholly visited, exactly once by those who finish it."""

import os
import signal
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from rig import DEADLINE_S, TUNDISH, Paced, Rig, batches, place, stop

SESSIONS_MAX = 64  # that a server makes for its readers


def finished_shards(lines):
    """{(epoch, shard): values} of the shards that a reader has seen to their ends."""
    open_shards, finished, batch = {}, {}, None
    for line in lines:
        if line.startswith("batch "):
            epoch, _, *values = map(int, line.split()[1:])
            batch = epoch, values
        elif line.startswith("shard "):
            key = batch[0], int(line.split()[1])
            open_shards.setdefault(key, []).extend(batch[1])
            if line.endswith(" end"):
                finished[key] = open_shards.pop(key)
    return finished


class Evaluation(Rig):
    stages = ["range: 1000", "shuffle: {buffer_size: 1000}", "batch: 16"]

    def check(self, readers, epochs, shards):
        """Every reader's finished shards together are every row of every epoch, once."""
        seen = {}
        for lines in readers:
            for key, values in finished_shards(lines).items():
                self.assertNotIn(key, seen)
                seen[key] = values
        self.assertEqual(sorted(seen), [(e, s) for e in range(epochs) for s in range(shards)])
        for epoch in range(epochs):
            rows = sorted(v for (e, _), values in seen.items() if e == epoch for v in values)
            self.assertEqual(rows, list(range(1000)))

    def readers(self, count, *options):
        return [partial(self.read, *options, replica=replica) for replica in range(count)]

    def test_is_shared_by_its_readers(self):
        distribute = "{auto_shard: DATA, evaluation_shards: 7}"
        server = self.serve(self.pipeline(self.stages, distribute, "{epochs: 2}", seed=""))
        lines = self.all_lines(self.come_together(server, self.readers(3, "--delay-ms", "1")))
        self.wait_for_log("ready: serving 1 stream")
        self.check(lines, 2, 7)
        for of_one in lines:
            self.assertEqual(of_one.count("end"), 2)
            self.assertEqual(of_one[-1], "end_of_stream")

    def test_gives_the_shards_of_a_dead_reader_to_others(self):
        distribute = "{auto_shard: DATA, evaluation_shards: 6}"
        self.serve(self.pipeline(self.stages, distribute, seed=""))
        victim = self.read("--batches", "20", "--hold")  # of its second shard
        self.wait_for_line(victim, "place ")
        other = self.read(replica=1)
        self.wait_for_line(other, "shard")
        victim.kill()
        lines, of_victim = self.whole(other), self.whole(victim)
        self.assertEqual(lines[-1], "end_of_stream")
        seen, before = finished_shards(lines), finished_shards(of_victim)
        self.assertEqual(len(before), 1)
        self.assertEqual(set(seen) & set(before), set())
        rows = sorted(v for values in {**before, **seen}.values() for v in values)
        self.assertEqual(rows, list(range(1000)))

    def test_gives_all_to_the_one_that_is_left(self):
        distribute = "{auto_shard: DATA, evaluation_shards: 5}"
        self.serve(self.pipeline(self.stages, distribute, seed=""))
        victim = self.read("--batches", "1", "--hold")
        self.wait_for_line(victim, "place ")
        other = self.read(replica=1)
        self.wait_for_line(other, "shard")
        victim.kill()
        lines = self.whole(other)
        self.check([lines], 1, 5)
        self.assertEqual(len(batches(lines)), 5 * 13)

    def rows(self, lines, epoch):
        """Of the shards of an epoch that a reader has seen to their ends."""
        shards = finished_shards(lines)
        return [v for (e, _), values in shards.items() if e == epoch for v in values]

    def evaluation(self, shards=6, epochs=2, stages=None):
        return self.serve(self.pipeline(stages or self.stages,
                                        f"{{auto_shard: DATA, evaluation_shards: {shards}}}",
                                        f"{{epochs: {epochs}}}", seed=""))

    def test_begins_anew_for_a_successor_that_asks(self):
        self.evaluation()
        victim = self.read("--batches", "30", "--hold")  # of its third shard
        self.wait_for_line(victim, "place ")
        victim.kill()
        self.assertGreater(len(finished_shards(self.whole(victim))), 0)
        lines = self.lines(self.read("--restart"))
        self.assertRegex(lines[0], "first 0 [12]$")  # shards that are done
        self.assertEqual({epoch for epoch, _, _ in batches(lines)}, {1})
        self.assertEqual(sorted(self.rows(lines, 1)), list(range(1000)))
        self.assertEqual(lines[-1], "end_of_stream")

    def test_is_shared_by_those_who_ask_before_anything_is_done(self):
        self.evaluation(epochs=1)
        first = self.read("--batches", "1", "--hold")
        self.wait_for_line(first, "place ")
        second = self.read("--restart")
        self.wait_for_line(second, "shard")
        first.kill()
        self.check([self.whole(second)], 1, 6)

    def test_waits_with_the_next_epoch_for_those_who_are_in_this_one(self):
        self.evaluation()
        other = self.read_paced(replica=1)
        other.take()
        victim = self.read("--batches", "30", "--hold")
        self.wait_for_line(victim, "place ")
        victim.kill()
        before = finished_shards(self.whole(victim))
        successor = self.read("--restart")
        self.wait_for_line(successor, "first")
        other.go()
        of_other, lines = other.finish(), self.whole(successor)
        rows = self.rows(of_other, 0) + [v for values in before.values() for v in values]
        self.assertEqual(sorted(rows), list(range(1000)))
        self.assertEqual({epoch for epoch, _, _ in batches(lines)} - {1}, set())
        self.assertEqual(sorted(self.rows(of_other, 1) + self.rows(lines, 1)), list(range(1000)))

    def test_gives_the_shards_of_one_that_goes_on_to_the_next_epoch_to_others(self):
        self.evaluation()
        other = self.read_paced(replica=1)
        other.take()
        leaver = self.read("--restart-after", "16")  # in its second shard, 13 batches each
        self.wait_for_line(leaver, "batch 0 15 ")
        other.go()
        of_other, lines = other.finish(), self.whole(leaver)
        self.assertEqual(len([1 for epoch, _, _ in batches(lines) if epoch == 0]), 16)
        for epoch in range(2):
            rows = self.rows(of_other, epoch) + self.rows(lines, epoch)
            self.assertEqual(sorted(rows), list(range(1000)))

    def test_ends_for_readers_that_hold_a_batch_while_they_ask_for_the_next(self):
        server = self.evaluation()
        lines = self.all_lines(self.come_together(server, self.readers(2, "--late")))
        self.check(lines, 2, 6)
        for of_one in lines:
            self.assertEqual(of_one.count("end"), 2)
            self.assertEqual(of_one[-1], "end_of_stream")

    def test_goes_on_beside_a_reader_that_does_not_ask(self):
        self.evaluation(shards=4)
        idle = self.read_paced(replica=1)
        lines = self.lines(self.read())
        self.check([lines], 2, 4)
        self.assertEqual(lines[-1], "end_of_stream")
        late = idle.finish()
        self.assertEqual((batches(late), late.count("end"), late[-1]), ([], 0, "end_of_stream"))

    def end_epoch(self, reader, number):
        reader.ask()
        while (line := reader.line()) != "end":
            self.assertTrue(line.startswith(f"batch {number} "))
            self.assertTrue(reader.line().startswith("shard "))
            reader.ask()

    def test_tells_a_late_reader_one_end_and_lets_it_go_on_with_the_others(self):
        """In step with the others it is late by one epoch. By more it begins as one that comes now."""
        self.evaluation(shards=4, epochs=4)
        late, first = self.read_paced(replica=1), self.read_paced()
        self.end_epoch(first, 0)
        late.ask()
        self.assertEqual(late.line(), "end")
        self.end_epoch(first, 1)
        self.end_epoch(first, 2)
        late.ask()
        self.assertTrue(late.line().startswith("batch 3 0 "))

    def take_shard(self, reader):
        """All of the reader's first shard. Since many are left, the next one is then made ready."""
        while not reader.seen or not reader.seen[-1].endswith(" end"):
            reader.take()
            reader.seen.append(reader.line())

    def assert_told_of_take_back(self, reader):
        """In the log, once, and in the status."""
        said = f"stream train: process {reader.process.pid} has begun nothing of shard "
        self.wait_for_log(said)
        self.assertEqual(self.log().count(said), 1, self.log())
        self.assertIn("went to others: not begun for 1 s", self.status())

    def status(self):
        return subprocess.run([TUNDISH, "status", "--interval", "200"],
                              env=self.environment, capture_output=True, text=True).stdout

    def test_takes_back_what_a_reader_does_not_begin(self):
        for batch in (16, 2):  # the shard lies in the lane; there is no room for all of it
            with self.subTest(batch=batch):
                server = self.evaluation(shards=12, epochs=1,
                                         stages=[*self.stages[:-1], f"batch: {batch}"])
                idle = self.read_paced(replica=1)
                self.take_shard(idle)
                lines = self.lines(self.read())
                self.assertEqual(lines[-1], "end_of_stream")
                self.assert_told_of_take_back(idle)
                self.check([lines, idle.finish()], 1, 12)
                self.assertEqual(idle.seen[-2:], ["end", "end_of_stream"])
                stop(server)

    def test_gives_a_reader_others_for_what_was_taken_back(self):
        self.evaluation(shards=12, epochs=2)
        idle, other = self.read_paced("--late", replica=1), self.read_paced()
        self.take_shard(idle)
        while len(finished_shards(other.seen)) < 11:
            other.take()
            other.seen.append(other.line())
        with ThreadPoolExecutor(2) as pool:
            lines = list(pool.map(Paced.finish, (idle, other)))
        self.check(lines, 2, 12)
        self.assertEqual([of_one[-1] for of_one in lines], ["end_of_stream"] * 2)

    def test_takes_back_what_a_stopped_reader_was_given_while_it_waited(self):
        for options in ((), ("--late",)):  # with --late it holds a batch
            with self.subTest(options=options):
                server = self.evaluation(shards=2, epochs=1)
                victim = self.read_paced(replica=1)
                victim.take()
                stopped = self.read(*options)
                self.wait_for_line(stopped, "shard 1 end")
                self.wait_until(partial(self.waits_beside, victim))
                stopped.send_signal(signal.SIGSTOP)
                victim.process.kill()
                victim.process.wait()
                lines = self.lines(self.read(replica=2))
                self.assertEqual(set(finished_shards(lines)), {(0, 0)})
                stopped.send_signal(signal.SIGCONT)
                self.check([lines, self.whole(stopped)], 1, 2)
                stop(server)

    def test_is_left_at_once_beside_readers_that_are_not_in_it(self):
        """One that never asked, and one at its end."""
        self.evaluation(shards=6, epochs=3)
        idle, first = self.read_paced(replica=1), self.read_paced()
        self.end_epoch(first, 0)
        lines = self.lines(self.read("--restart-after", "16", replica=2))
        self.assertEqual(len([1 for epoch, _, _ in batches(lines) if epoch == 1]), 16)
        self.assertEqual(sorted(self.rows(lines, 2)), list(range(1000)))
        self.assertEqual(lines[-1], "end_of_stream")
        self.assertEqual(idle.finish()[-1], "end_of_stream")

    def test_goes_on_beside_a_reader_that_stands_at_its_end(self):
        self.evaluation(shards=4, epochs=3)
        first = self.read_paced()
        for _ in range(4 * 16):
            first.ask()
            self.assertTrue(first.line().startswith("batch 0 "))
            self.assertTrue(first.line().startswith("shard "))
        first.ask()
        self.assertEqual(first.line(), "end")
        lines = self.lines(self.read(replica=1))
        self.assertEqual({epoch for epoch, _, _ in batches(lines)}, {1, 2})
        for epoch in (1, 2):
            self.assertEqual(sorted(self.rows(lines, epoch)), list(range(1000)))
        self.assertEqual(lines[-1], "end_of_stream")

    def waits_beside(self, holder):
        """Some reader asks, and this one has what is left."""
        said = self.status()
        return f"process {holder.process.pid} holds 0 batches" in said.replace("\n        ", "")

    def test_names_the_reader_that_has_what_is_left(self):
        self.evaluation(shards=2)
        holder = self.read_paced(replica=1)
        holder.take()
        other = self.read()
        self.wait_for_line(other, "shard 1 end")
        self.wait_until(partial(self.waits_beside, holder))
        holder.go()
        self.check([self.whole(other), holder.finish()], 2, 2)

    def test_is_over_for_the_readers_of_a_server_that_is_gone(self):
        """The next one begins anew: of what they go on with they would count shards twice."""
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(number=number):
                server = self.evaluation(epochs=1)
                reader = self.read("--survive", "--delay-ms", "20")
                self.wait_for_line(reader, "batch 0 14 ")  # of the second shard
                stop(server, number)
                server = self.evaluation(epochs=1)
                last = self.lines(reader)[-1]
                if number == signal.SIGTERM:
                    self.assertEqual(last, "stopped")
                else:
                    self.assertIn("E_PLACE", last)
                    self.assertIn("open again, and count anew", last)
                self.check([self.lines(self.read())], 1, 6)
                stop(server)

    def test_forgets_readers_that_it_refuses(self):
        training = self.serve(self.pipeline(self.stages))
        token = place(self.lines(self.read("--batches", "1")))
        stop(training)
        distribute = "{auto_shard: DATA, evaluation_shards: 5}"
        server = self.serve(self.pipeline(self.stages, distribute, seed=""))
        threads = len(os.listdir(f"/proc/{server.pid}/task"))
        for _ in range(SESSIONS_MAX + 1):
            self.assertIn("an evaluation has no places", self.lines(self.read("--place", token))[-1])
        self.check([self.lines(self.read())], 1, 5)
        self.wait_for_threads(server, threads)

    def test_cuts_files_and_needs_enough_of_them(self):
        for i in range(4):
            (self.path / f"{i}.txt").write_text("".join(f"{i * 250 + k}\n" for k in range(250)))
        stages = [
            'list_files: {file_pattern: "*.txt", seed: 1}',
            "flat_map: {dataset: [text_line]}",
            "string_to_number: {out_type: int64}",
            "batch: 16",
        ]
        self.serve(self.pipeline(stages, "{evaluation_shards: 4}", seed=""))
        lines = self.all_lines([self.read(replica=replica) for replica in range(2)])
        self.check(lines, 1, 4)
        self.socket = self.environment["TUNDISH_SERVER"] = str(self.path / "other")
        for count in ("5", "auto"):  # of auto, one reader has five
            file = self.pipeline(stages, f"{{evaluation_shards: {count}}}", seed="")
            for command, status in (("plan", 3), ("serve", 3), ("peek", 1)):
                with self.subTest(count=count, command=command):
                    done = subprocess.run([TUNDISH, command, file], env=self.environment,
                                          capture_output=True, text=True, timeout=DEADLINE_S)
                    self.assertEqual(done.returncode, status)
                    self.assertRegex(done.stdout + done.stderr,
                                     "only 4 file.*not enough for 5 shards of an evaluation")
                    self.assertNotIn("ready", done.stderr)

    def test_has_five_shards_for_each_reader_where_left_to_us(self):
        distribute = "{auto_shard: DATA, evaluation_shards: auto}"
        server = self.serve(self.pipeline(self.stages, distribute, seed=""))
        lines = self.all_lines(self.come_together(server, self.readers(2)))
        self.check(lines, 1, 10)

    def test_goes_through_empty_shards_in_every_epoch(self):
        for stages, shards, readers in (
            (["range: 0", "batch: 2"], 2, 1),
            (["range: 7", "batch: 2"], 20, 4),
        ):
            with self.subTest(stages[0]):
                distribute = f"{{auto_shard: DATA, evaluation_shards: {shards}}}"
                server = self.serve(self.pipeline(stages, distribute, "{epochs: 3}"))
                of_all = self.all_lines(self.come_together(server, self.readers(readers)))
                for lines in of_all:
                    self.assertEqual(lines[-1], "end_of_stream")
                # Who comes while another has gone through all of an epoch begins with the next.
                ends = [lines.count("end") for lines in of_all]
                self.assertEqual(max(ends), 3, ends)
                for epoch in range(3):
                    rows = sorted(v for lines in of_all for e, _, vs in batches(lines)
                                  if e == epoch for v in vs)
                    self.assertEqual(rows, list(range(int(stages[0].split()[1]))))
                stop(server)

    def test_is_refused_where_nothing_can_be_cut(self):
        file = self.pipeline(self.stages, "{auto_shard: OFF, evaluation_shards: 3}")
        self.assertEqual(self.start([TUNDISH, "serve", file]).wait(), 1)


if __name__ == "__main__":
    unittest.main()
