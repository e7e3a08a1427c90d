"""A server that keeps places itself, killed and started again."""

import shutil
import signal
import struct
import subprocess
import time
import unittest

from rig import DEADLINE_S, TUNDISH, Rig, batches, place, stop

SHUFFLED = ["range: 1000", "shuffle: {buffer_size: 100}", "batch: 16"]
STEPS = 63


def steps(lines):
    return [(epoch, step) for epoch, step, _ in batches(lines)]


class State(Rig):
    def setUp(self):
        super().setUp()
        self.state = self.path / "state"
        self.state.mkdir()

    def serve_kept(self, file):
        return self.serve(file, "--state", str(self.state))

    def kept(self):
        """What the server has written of the stream: epoch, step, and how many beyond are done."""
        file = self.state / "train.place"
        if not file.exists():
            return None
        data = file.read_bytes()  # as sdk/shm/place.c lays it out
        epoch, step, bit_count = struct.unpack_from("<16xQQ16xQ", data)
        bits = int.from_bytes(data[64 : 64 + (bit_count + 7) // 8], "little")
        return epoch, step, bits.bit_count()

    def wait_until_kept(self, is_it):
        deadline = time.monotonic() + DEADLINE_S
        while not ((kept := self.kept()) and is_it(*kept)):
            self.assertLess(time.monotonic(), deadline, kept)
            time.sleep(0.01)

    def test_lets_a_trainer_without_a_place_go_on(self):
        file = self.pipeline(SHUFFLED, deliver="{epochs: 2}", seed="")
        server = self.serve_kept(file)
        first = batches(self.lines(self.read("--batches", "70")))
        self.wait_until_kept(lambda epoch, step, _: (epoch, step) == (1, 70 - STEPS))
        stop(server, signal.SIGKILL)
        self.serve_kept(file)
        rest = batches(self.lines(self.read()))
        self.assertEqual(steps_of(first + rest), [(e, s) for e in range(2) for s in range(STEPS)])
        for epoch in range(2):
            rows = sorted(v for e, _, values in first + rest if e == epoch for v in values)
            self.assertEqual(rows, list(range(1000)))

    def test_lets_a_trainer_without_a_place_begin_the_next_epoch(self):
        file = self.pipeline(SHUFFLED, deliver="{epochs: 2}", seed="")
        server = self.serve_kept(file)
        self.lines(self.read("--batches", "20"))
        self.wait_until_kept(lambda epoch, step, _: (epoch, step) == (0, 20))
        stop(server, signal.SIGKILL)
        self.serve_kept(file)
        rest = batches(self.lines(self.read("--restart")))
        self.assertEqual(steps_of(rest), [(1, s) for s in range(STEPS)])

    def test_lets_trainers_that_kept_running_go_on(self):
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 3, slots: 4}", seed="")
        server = self.serve_kept(file)
        readers = [self.read("--survive", "--delay-ms", "2", replica=r) for r in range(2)]
        for step in (10, STEPS + 2, 2 * STEPS):
            self.wait_for_line(readers[0], f"batch {step // STEPS} {step % STEPS} ")
            stop(server, signal.SIGKILL)
            server = self.serve_kept(file)
        rows = [batches(self.whole(reader)) for reader in readers]
        for of_one in rows:
            self.assertEqual(steps_of(of_one), [(e, s) for e in range(3) for s in range(STEPS)])
        for epoch in range(3):
            seen = sorted(v for of_one in rows for e, _, vs in of_one if e == epoch for v in vs)
            self.assertEqual(seen, list(range(1000)))

    def test_lets_a_queue_go_on_with_its_readers(self):
        file = self.pipeline(SHUFFLED, "{delivery: queue}", seed="")
        server = self.serve_kept(file)
        readers = [self.read_paced("--survive") for _ in range(2)]
        for reader in readers:
            reader.take(12)
        self.wait_until_kept(lambda _, step, beyond: step + beyond == 24)
        readers[0].take(3)
        stop(server, signal.SIGKILL)
        self.serve_kept(file)
        seen = [step for reader in readers for step in steps(reader.finish())]
        self.assertEqual(sorted(set(seen)), [(0, step) for step in range(STEPS)])
        # Twice at most what was given back since the last time it was written.
        self.assertLessEqual(len(seen), STEPS + 3)

    def test_goes_on_with_its_seed_when_killed_after_the_first_batch(self):
        file = self.pipeline(SHUFFLED, deliver="{epochs: 1}", seed="")
        server = self.serve_kept(file)
        first = self.read_paced().take()
        stop(server, signal.SIGKILL)
        self.assertIsNotNone(self.kept())
        self.serve_kept(file)
        again = batches(self.lines(self.read()))
        self.assertEqual(again[0], first[0])
        self.assertEqual(steps_of(again), [(0, step) for step in range(STEPS)])

    def test_goes_on_with_its_seed_when_killed_before_the_first_batch(self):
        """One replica knew already where its lane begins, the other comes without a place."""
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, slots: 4}", seed="")
        server = self.serve_until("begin", file, "--state", str(self.state))
        early = self.read_paced("--survive", replica=1)
        self.assertEqual(early.first, "first")
        stop(server, signal.SIGKILL)
        self.serve_kept(file)
        late = self.read_paced(replica=0)
        late.take()
        for reader in (early, late):
            reader.go()
        rows = [row for reader in (early, late) for *_, row in batches(reader.finish())]
        self.assertEqual(sorted(sum(rows, [])), list(range(1000)))

    def test_lets_a_queue_go_on_that_is_killed_after_its_first_batches(self):
        server = self.serve_kept(self.pipeline(SHUFFLED, "{delivery: queue}", seed=""))
        readers = [self.read_paced("--survive") for _ in range(2)]
        for reader in readers:
            reader.take()
        stop(server, signal.SIGKILL)
        self.serve_kept(str(self.path / "pipeline.yaml"))
        seen = [step for reader in readers for step in steps(reader.finish())]
        self.assertEqual(sorted(set(seen)), [(0, step) for step in range(STEPS)])

    def test_is_refused_without_its_folder(self):
        file = self.pipeline(SHUFFLED)
        (self.path / "file").touch()
        for folder in ("nowhere", "file"):
            command = [TUNDISH, "serve", file, "--state", str(self.path / folder)]
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                                  timeout=DEADLINE_S)
            self.assertEqual(done.returncode, 3)
            self.assertIn(str(self.path / folder), done.stderr)

    def test_that_drains_gives_each_row_once(self):
        for distribute in ("{replicas: 2}", "{delivery: broadcast, groups: 2}", "{delivery: queue}"):
            with self.subTest(distribute=distribute):
                file = self.pipeline(SHUFFLED, distribute)
                seen = []
                for taken in (5, 20):
                    server = self.serve_kept(file)
                    readers = self.two_paced(distribute)
                    for reader in readers * taken:
                        reader.take()
                    server.send_signal(signal.SIGTERM)
                    self.wait_for_log("stopping")
                    seen += self.finished(readers)
                    self.assertEqual(server.wait(timeout=DEADLINE_S), 0)
                    (self.path / "log").unlink()
                self.serve_kept(file)
                seen += self.finished(self.two_paced(distribute))
                rows = sorted(row for taken in seen for _, _, values in taken for row in values)
                copies = 2 if "broadcast" in distribute else 1
                self.assertEqual(rows, sorted([*range(1000)] * copies))
                self.end_all()
                (self.state / "train.place").unlink()

    def test_keeps_what_a_replica_without_a_place_lacks(self):
        """It is refused beside a place ahead of the kept one, and gets it where all have none."""
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, slots: 4, rejoin: 600s}")
        server = self.serve(file)
        ahead = place(self.all_lines([self.read("--batches", "40", replica=r) for r in range(2)])[1])
        stop(server)
        server = self.serve_kept(file)
        self.all_lines([self.read("--batches", "10", replica=r) for r in range(2)])
        self.wait_until_kept(lambda _, step, __: step == 10)
        for count in (0, 10):  # the first server of the folder, and one that was restored
            if count > 0:
                stop(server, signal.SIGKILL)
                server = self.serve_kept(file)
            one = self.read_paced("--place", ahead, replica=1)
            refused = self.lines(self.read(replica=0))
            self.assertIn("E_PLACE", refused[-1])
            self.assertIn("replica 1 of group", refused[-1])
            self.assertIn("epoch 0, step 40, and replica 0 has none", refused[-1])
            stop(one.process, signal.SIGKILL)
        stop(server, signal.SIGKILL)
        self.serve_kept(file)
        for lines in self.all_lines([self.read(replica=r) for r in range(2)]):
            self.assertEqual(steps(lines), [(0, s) for s in range(10, STEPS)])

    def test_keeps_what_a_replica_that_has_finished_reads_again(self):
        """The place on disk is from before its end, and nobody knows of that once the other and the
        server are killed."""
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, slots: 4, rejoin: 600s}")
        expected = self.peek(file)
        server = self.serve_kept(file)
        done, victim = self.read("--survive", replica=0), self.read_paced(replica=1)
        victim.take(STEPS - 2)
        self.wait_until_kept(lambda _, step, __: step == STEPS - 2)
        self.assertEqual(self.lines(done)[-1], "end_of_stream")
        for process in (victim.process, server):
            stop(process, signal.SIGKILL)
        self.serve_kept(file)
        late = self.read(replica=1)
        self.wait_for_line(late, "first")
        for replica, lines in enumerate(self.all_lines([self.read(replica=0), late])):
            self.assertEqual(batches(lines), expected[replica][STEPS - 2 :])
            self.assertEqual(lines[-1], "end_of_stream")

    def two_paced(self, distribute):
        if "replicas" in distribute:
            return [self.read_paced(replica=replica) for replica in range(2)]
        return [self.read_paced(group=group) for group in ("a", "b")]

    def finished(self, readers):
        for reader in readers:
            reader.go()
        return [batches(reader.finish()) for reader in readers]

    def test_is_refused_to_a_second_server(self):
        file = self.pipeline(SHUFFLED)
        server = self.serve_kept(file)
        # At the same socket, the server there is the better reason.
        for socket, reason in (
            (self.socket, f"another server is running at {self.socket}"),
            (self.socket + "2", f"another server keeps its places in {self.state}"),
        ):
            command = [TUNDISH, "serve", file, "--state", str(self.state), "--socket", socket]
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                                  timeout=DEADLINE_S)
            self.assertEqual(done.returncode, 3)
            self.assertIn(reason, done.stderr)
        stop(server, signal.SIGKILL)
        self.serve_kept(file)

    def test_saves_what_it_could_not_when_its_folder_is_back(self):
        file = self.pipeline(SHUFFLED)
        self.serve_kept(file)
        away = self.path / "away"
        self.state.rename(away)
        self.lines(self.read("--batches", "20"))
        self.wait_for_log("places are not saved")
        away.rename(self.state)
        self.wait_for_log("places are saved again")
        self.wait_until_kept(lambda _, step, __: step == 20)
        self.assertTrue((self.state / "train.server").exists())

    def test_gives_no_row_again_after_a_failure(self):
        (self.path / "rows.csv").write_text("".join(f"{i}\n" for i in range(43)) + "x\n")
        stages = [
            "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}",
            "batch: 4",
        ]
        for count in (1, 2):
            file = self.pipeline(stages, f"{{replicas: {count}}}", "{epochs: null}")
            server = self.serve_kept(file)
            for begin in (0, 10, 10):
                readers = [self.read(replica=replica) for replica in range(count)]
                for reader in readers:
                    lines = self.lines(reader)
                    self.assertEqual(steps(lines), [(0, step) for step in range(begin, 10)])
                    self.assertIn("E_DATA epoch 0, step 10", lines[-1])
            stop(server)
            server = self.serve_kept(file)
            lines = self.lines(self.read())
            self.assertEqual(batches(lines), [])
            self.assertIn("E_DATA epoch 0, step 10", lines[-1])
            stop(server)
            shutil.rmtree(self.state)
            self.state.mkdir()

    def test_says_that_a_place_is_of_no_stream(self):
        file = self.pipeline(SHUFFLED)
        server = self.serve_kept(file)
        self.lines(self.read("--batches", "20"))
        self.wait_until_kept(lambda _, step, __: step == 20)
        stop(server)
        text = (self.path / "pipeline.yaml").read_text()
        (self.path / "pipeline.yaml").write_text(text.replace("  train:", "  other:"))
        self.assertNotIn("is of no stream", self.log())
        stop(self.serve_kept(file))
        self.assertIn("stream other begins at its start", self.log())
        self.assertIn("and train.place there is of no stream", self.log())
        (self.state / "train.place").rename(self.state / "other.place")
        (self.path / "log").unlink()
        self.serve_kept(file)
        self.environment["TUNDISH_STREAM"] = "other"
        self.assertEqual(steps(self.lines(self.read()))[0], (0, 20))
        self.assertNotIn("is of no stream", self.log())

    def test_keeps_all_places_in_its_folder(self):
        file = self.path / "pipeline.yaml"
        file.write_text('streams: {"../train/%": {dataset: [range: 9, batch: 2]}}\n')
        self.environment["TUNDISH_STREAM"] = "../train/%"
        server = self.serve_kept(str(file))
        self.lines(self.read("--batches", "2"))
        stop(server)
        self.assertEqual(sorted(file.name for file in self.state.iterdir()),
                         ["..%2Ftrain%2F%25.place", "..%2Ftrain%2F%25.server"])
        self.assertEqual(sorted(file.name for file in self.path.glob("*.place")), [])

    def test_says_that_a_stream_was_read_to_its_end(self):
        # Who reads a lane gives an end back with the batch behind it, of which there is none here.
        for distribute, end in (("{delivery: queue}", (2, 0)), ("{replicas: 1}", (1, STEPS))):
            with self.subTest(distribute=distribute):
                file = self.pipeline(SHUFFLED, distribute, "{epochs: 2}", seed="")
                server = self.serve_kept(file)
                self.assertEqual(len(batches(self.lines(self.read()))), 2 * STEPS)
                self.wait_until_kept(lambda epoch, step, _: (epoch, step) == end)
                stop(server, signal.SIGKILL)
                server = self.serve_kept(file)
                self.assertEqual(self.lines(self.read())[-1], "end_of_stream")
                self.assertEqual(batches(self.lines(self.read())), [])
                stop(server, signal.SIGKILL)
                (self.state / "train.place").unlink()

    def test_is_refused_where_it_is_of_another_pipeline(self):
        server = self.serve_kept(self.pipeline(SHUFFLED))
        self.lines(self.read("--batches", "5"))
        stop(server)
        other = self.pipeline(["range: 1000", "batch: 10"])
        process = self.start([TUNDISH, "serve", other, "--state", str(self.state)])
        self.assertEqual(process.wait(), 3)


def steps_of(rows):
    return [(epoch, step) for epoch, step, _ in rows]


if __name__ == "__main__":
    unittest.main()
