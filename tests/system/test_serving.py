"""Real servers and real trainers, simplest first."""

import os
import resource
import signal
import subprocess
import time
import unittest
from pathlib import Path

from rig import DEADLINE_S, TUNDISH, Rig, batches, place, stop

SHUFFLED = ["range: 1000", "shuffle: {buffer_size: 100}", "batch: 16"]


class OneTrainer(Rig):
    def test_gets_what_peek_prints(self):
        file = self.pipeline(SHUFFLED, deliver="{epochs: 2}")
        expected = self.peek(file, "--epochs", "2")
        self.serve(file)
        lines = self.lines(self.read())
        self.assertEqual(batches(lines), expected[0])
        self.assertEqual(lines.count("end"), 2)
        self.assertEqual(lines[-1], "end_of_stream")

    def test_gets_columns_that_have_no_row_for_each_of_the_batch(self):
        constants = 'map: {c: "[1, 2, 3]", d: "1.5"}'
        file = self.pipeline(["range: 10", "batch: 4", constants])
        self.serve(file)
        self.assertEqual(batches(self.lines(self.read())), self.peek(file)[0])

    def test_resumes_at_its_place_on_another_server(self):
        file = self.pipeline(SHUFFLED, deliver="{epochs: 3}", seed="")
        server = self.serve(file)
        first = self.lines(self.read("--batches", "75"))
        stop(server)
        self.serve(file)
        rest = self.lines(self.read("--place", place(first)))
        rows = batches(first) + batches(rest)
        self.assertEqual([(e, s) for e, s, _ in rows], [(e, s) for e in range(3) for s in range(63)])
        for epoch in range(3):
            values = sorted(v for e, _, vs in rows if e == epoch for v in vs)
            self.assertEqual(values, list(range(1000)), f"epoch {epoch}")

    def test_resumes_as_an_undisturbed_run_went_on(self):
        file = self.pipeline(SHUFFLED, deliver="{epochs: 2}")
        expected = self.peek(file, "--epochs", "2")[0]
        for taken in (1, 62, 63, 64, 100):
            with self.subTest(taken=taken):
                server = self.serve(file)
                token = place(self.lines(self.read("--batches", str(taken))))
                stop(server)
                server = self.serve(file)
                rest = batches(self.lines(self.read("--place", token)))
                self.assertEqual(rest, expected[taken:])
                stop(server)

    def test_is_told_that_a_place_is_of_another_pipeline(self):
        server = self.serve(self.pipeline(SHUFFLED))
        token = place(self.lines(self.read("--batches", "3")))
        stop(server)
        self.serve(self.pipeline(["range: 1000", "shuffle: {buffer_size: 50}", "batch: 16"]))
        lines = self.lines(self.read("--place", token))
        self.assertIn("E_PLACE", lines[-1])
        self.assertIn("another pipeline", lines[-1])

    def test_is_told_the_end_of_every_empty_epoch(self):
        self.serve(self.pipeline(["range: 0", "batch: 2"], deliver="{epochs: 3}"))
        lines = self.lines(self.read())
        self.assertEqual(lines[1:], ["end"] * 3 + ["end_of_stream"])

    def test_comes_long_after_the_start_of_a_server_that_is_slow_to_let_it_in(self):
        file = self.pipeline(["range: 4", "batch: 1"])
        server = self.serve(file)
        token = place(self.lines(self.read("--batches", "2")))
        stop(server)
        self.serve_until("welcome", file)
        time.sleep(5.5)  # by the heartbeat of the start it would be silent
        lines = self.lines(self.read("--place", token, "--server-timeout", "1"))
        self.assertEqual(lines, ["first", "batch 0 2 2", "batch 0 3 3", "end", "end_of_stream"])

    def test_is_told_of_a_stream_that_is_not_there(self):
        self.serve(self.pipeline(SHUFFLED))
        lines = self.lines(self.start([os.environ["TUNDISH_READER"]], TUNDISH_STREAM="test"))
        self.assertIn("train", lines[-1])

    def test_is_told_of_a_replica_that_is_not_there(self):
        self.serve(self.pipeline(SHUFFLED))
        reader = self.read(replica=1)
        self.assertIn("E_ARGUMENT", self.lines(reader)[-1])
        self.wait_for_log(f"process {reader.pid} is refused: stream train has 1 replica on")


class TwoTrainers(Rig):
    def test_get_what_peek_prints(self):
        file = self.pipeline(SHUFFLED, distribute="{replicas: 2}")
        expected = self.peek(file)
        self.serve(file)
        readers = [self.read(replica=replica) for replica in range(2)]
        for replica, reader in enumerate(readers):
            self.assertEqual(batches(self.lines(reader)), expected[replica])

    def test_get_what_peek_prints_when_rows_are_carried(self):
        file = self.pipeline(
            ["range: 1000", "batch: 7"], distribute="{replicas: 2, rebatch: carry}"
        )
        expected = self.peek(file)
        self.serve(file)
        readers = [self.read(replica=r) for r in range(2)]
        for replica, reader in enumerate(readers):
            self.assertEqual(batches(self.lines(reader)), expected[replica])


    def test_that_read_in_turn_hold_up_no_growing_batch(self):
        stages = ["range: [1000, 90000, 1000]", "flat_map: [range: $value, batch: 1000000]",
                  "ragged_batch: 2"]
        self.serve(self.pipeline(stages, distribute="{replicas: 2}"), "--threads", "4")
        readers = [self.read_paced(replica=replica) for replica in range(2)]
        for _ in range(44):
            for reader in readers:
                reader.take()
                reader.seen.clear()

    def test_one_holds_all_room_of_its_lane_and_the_other_goes_on(self):
        for name, stages in (
            ("made in place", ["range: 20480", "batch: 1024"]),
            ("made as a whole", ["range: 40", "flat_map: [range: 512, batch: 512]",
                                 "ragged_batch: 2"]),
        ):
            with self.subTest(name):
                file = self.pipeline(stages, distribute="{replicas: 2}",
                                     deliver="{epochs: 1, lane_bytes: 4096, compression: none}")
                expected = self.peek(file)
                server = self.serve(file)
                holder = self.read("--batches", "1", "--hold", replica=1)
                self.wait_for_line(holder, "place")
                other = self.read_paced(replica=0)
                self.assertEqual(other.take(8), expected[0][:8])
                stop(holder, signal.SIGKILL)
                stop(server, signal.SIGKILL)
                stop(other.process, signal.SIGKILL)


class BadInput(Rig):
    def rows(self, good, *stages, bad="x\n"):
        """Stages that read so many good rows and the bad ones after them."""
        (self.path / "rows.csv").write_text("".join(f"{i}\n" for i in range(good)) + bad)
        return [
            "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}", *stages
        ]

    def test_ends_the_stream_at_its_step(self):
        stages = self.rows(40, "batch: 8")
        self.serve(self.pipeline(stages))
        lines = self.lines(self.read())
        self.assertEqual(len(batches(lines)), 5)
        self.assertIn("E_DATA", lines[-1])
        self.assertIn("rows.csv", lines[-1])
        self.assertIn("step 5", lines[-1])

    def test_who_opens_a_stream_that_failed_begins_again(self):
        stages = self.rows(43, "shuffle: {buffer_size: 4}", "batch: 8")
        self.serve(self.pipeline(stages, deliver="{epochs: 3}"))
        whole = self.lines(self.read())
        self.assertEqual([b[:2] for b in batches(whole)], [(0, step) for step in range(5)])
        for taken in ("5", "3"):
            lines = self.lines(self.read("--batches", taken))
            self.assertEqual(batches(lines), batches(whole)[: int(taken)])
            # It is told of the failure now, unless that comes before it opens.
            lines = self.lines(self.read())
            self.assertIn(batches(lines), ([], batches(whole)))
            self.assertIn("E_DATA", lines[-1])
            lines = self.lines(self.read())
            self.assertEqual(batches(lines), batches(whole))
            self.assertIn("E_DATA", lines[-1])
        for _ in range(2):
            lines = self.lines(self.read("--place", place(self.lines(self.read("--batches", "3")))))
            self.assertEqual(batches(lines), batches(whole)[3:])
            self.assertIn("E_DATA", lines[-1])

    def test_replicas_that_come_in_turn_begin_again_together(self):
        stages = self.rows(24, "batch: 8")
        self.serve(self.pipeline(stages, distribute="{replicas: 2}"))
        for _ in range(3):
            for replica in (0, 1):
                lines = self.lines(self.read(replica=replica))
                begin = 4 * replica
                self.assertEqual(
                    [values for _, _, values in batches(lines)],
                    [list(range(begin + 8 * step, begin + 8 * step + 4)) for step in range(3)],
                )
                self.assertIn("E_DATA", lines[-1])

    def test_groups_that_were_all_told_begin_again(self):
        stages = self.rows(24, "batch: 8")
        for groups in (1, 2):
            server = self.serve(self.pipeline(stages, distribute=f"{{replicas: 1, groups: {groups}}}"))
            for _ in range(3):
                readers = [self.read(group=name) for name in "ab"]
                for lines in map(self.lines, readers):
                    self.assertIn("E_DATA", lines[-1])
                    # A group that comes late to a running stream may find only the error.
                    self.assertIn(len(batches(lines)), (3,) if groups == 2 else range(4))
            stop(server)

    def bytes_held(self, server):
        """In files without names that it has open in the test's folder."""
        opened = Path(f"/proc/{server.pid}/fd").iterdir()
        return sum(link.stat().st_size for link in opened
                   if self.path.name in (name := os.readlink(link)) and "deleted" in name)

    def test_leaves_no_half_made_cache_when_a_stream_begins_again(self):
        stages = self.rows(4000, "cache: {filename: half}", "batch: 100")
        server = self.serve(self.pipeline(stages))
        kept = []
        for _ in range(4):
            self.lines(self.read())
            kept.append(self.bytes_held(server))
        self.assertGreater(kept[0], 0)
        self.assertEqual(len(set(kept[1:])), 1, kept)
        at = place(self.lines(self.read("--batches", "9")))
        for _ in range(3):
            lines = self.lines(self.read("--place", at))
            self.assertEqual(len(batches(lines)), 31)
            kept.append(self.bytes_held(server))
        self.assertEqual(len(set(kept[-2:])), 1, kept)

    def test_a_file_that_is_mended_at_once_gives_no_row_at_its_old_place(self):
        stages = self.rows(90, "batch: 8")
        self.serve(self.pipeline(stages))
        self.assertIn("E_DATA", self.lines(self.read())[-1])
        (self.path / "rows.csv").write_text("".join(f"{1000 + i}\n" for i in range(91)))
        lines = self.lines(self.read())
        self.assertEqual(batches(lines), [])
        self.assertIn("start the server again", lines[-1])

    def test_is_left_out_and_named_where_asked(self):
        stages = self.rows(40, "batch: 8")
        self.serve(self.pipeline(stages, deliver="{epochs: 1, on_error: skip}"))
        lines = self.lines(self.read())
        self.assertEqual([v for _, _, vs in batches(lines) for v in vs], list(range(40)))
        self.wait_for_log("rows.csv")

    def test_is_too_much_for_peek_where_it_is_for_serve(self):
        stages = self.rows(40, "batch: 8", bad="x\ny\n")
        for limit in (1, 2):
            file = self.pipeline(stages, deliver=f"{{epochs: 1, on_error: 'skip:{limit}'}}")
            server = self.serve(file)
            served = self.lines(self.read())
            stop(server)
            peeked = subprocess.run([TUNDISH, "peek", file], env=self.environment, text=True,
                                    capture_output=True)
            too_many = "2 bad rows, more than on_error: skip:1 allows"
            self.assertEqual(too_many in served[-1], limit == 1, served[-1])
            self.assertEqual(too_many in peeked.stdout, limit == 1, peeked.stdout)


class Draws(Rig):
    def test_stay_the_same_when_a_cache_is_put_in_far_before(self):
        first = "from_tensor_slices: {value: [[[[0.5]]], [[[0.5]]], [[[0.5]]]]}"
        layer = "random_brightness: {factor: 0.5, value_range: [0, 1], columns: value}"
        drawn = [
            self.peek(self.pipeline([first, *between, layer, "batch: 3"], seed=""), "--seed", "5")
            for between in ([], ["cache"], ["cache", "take: 3"])
        ]
        self.assertEqual(drawn[1], drawn[0])
        self.assertEqual(drawn[2], drawn[0])
        twice = self.pipeline([first, layer, layer, "batch: 3"], seed="")
        self.assertNotEqual(self.peek(twice, "--seed", "5"), drawn[0])


class Deaths(Rig):
    def test_of_a_trainer_that_holds_a_batch_loses_no_row(self):
        file = self.pipeline(SHUFFLED)
        expected = self.peek(file)[0]
        self.serve(file)
        victim = self.read("--batches", "20", "--hold")
        token = self.wait_for_line(victim, "place ").split()[1]
        victim.kill()
        victim.wait()
        rest = batches(self.lines(self.read("--place", token)))
        self.assertEqual(rest, expected[20:])

    def test_of_a_trainer_leaves_its_unreleased_batch_to_a_successor(self):
        file = self.pipeline(SHUFFLED)
        expected = self.peek(file)[0]
        self.serve(file)
        victim = self.read("--batches", "20", "--hold")
        self.wait_for_line(victim, "place ")
        victim.kill()
        victim.wait()
        rest = batches(self.lines(self.read()))
        self.assertEqual(rest, expected[19:])

    def test_of_the_server_are_outlived_by_a_trainer(self):
        server = self.serve(self.pipeline(SHUFFLED, deliver="{epochs: null}"))
        reader = self.read("--delay-ms", "10")
        self.wait_for_line(reader, "batch 0 9 ")
        server.kill()
        server.wait()
        lines = self.lines(reader)
        self.assertIn("E_SERVER_GONE", lines[-1])

    def test_of_both_leave_nothing_in_shared_memory(self):
        server = self.serve(self.pipeline(SHUFFLED))
        reader = self.read("--batches", "5", "--hold")
        self.wait_for_line(reader, "place ")
        server.kill()
        reader.kill()
        server.wait()
        reader.wait()
        self.assertEqual(self.left_in_shared_memory(), [])


class Servers(Rig):
    def test_of_one_socket_are_one(self):
        file = self.pipeline(SHUFFLED)
        self.serve(file)
        second = self.start([TUNDISH, "serve", file])
        self.assertEqual(second.wait(timeout=DEADLINE_S), 3)

    def test_take_over_what_a_dead_one_left(self):
        file = self.pipeline(SHUFFLED)
        stop(self.serve(file), signal.SIGKILL)
        self.serve(file)
        self.assertEqual(len(batches(self.lines(self.read()))), 63)

    def test_print_into_no_file_of_theirs_where_their_output_is_closed(self):
        file = self.pipeline(SHUFFLED)
        server = self.serve(file, before=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
        for number in range(3):
            self.assertEqual(os.readlink(f"/proc/{server.pid}/fd/{number}"), "/dev/null")

    def test_drain_on_sigterm(self):
        server = self.serve(self.pipeline(SHUFFLED, deliver="{epochs: null}"))
        reader = self.read("--delay-ms", "5")
        self.wait_for_line(reader, "batch 0 4 ")
        self.assertEqual(stop(server), 0)
        self.assertEqual(self.lines(reader)[-1], "stopped")

    def test_stop_without_a_trainer_that_hangs_and_name_it(self):
        deliveries = {"{replicas: 1}": [], "{delivery: queue}": ["--state", str(self.path)]}
        for distribute, options in deliveries.items():
            file = self.pipeline(SHUFFLED, distribute, "{slots: 4, epochs: null}")
            server = self.serve(file, "--drain-limit", "1", *options)
            trainer = self.read("--keep", "9", "--batches", "2", "--hold")
            for _ in range(2):
                self.wait_for_line(trainer, "batch ")
            trainer.send_signal(signal.SIGSTOP)
            # Without room for its last word, or a place to keep, it would wait for nobody.
            self.wait_until(lambda: self.figures()["lanes"][0]["published"] == 4)
            self.assertEqual(stop(server), 0, distribute)
            self.assertIn(f"stopping without process {trainer.pid} ", self.log())
            trainer.kill()

    def test_stop_says_whom_it_waits_for(self):
        server = self.serve(self.pipeline(SHUFFLED, deliver="{slots: 4}"), "--drain-limit", "600")
        trainer = self.read_paced("--keep", "9")
        trainer.take(2)
        self.wait_until(lambda: self.figures()["lanes"][0]["published"] == 4)
        command = subprocess.Popen([TUNDISH, "stop", "--timeout", "600"], env=self.environment,
                                   stderr=subprocess.PIPE, text=True)
        self.assertRegex(command.stderr.readline(), "batches of stream 'train' are still to be taken "
                         rf"or returned, . by replica 0 \(process {trainer.process.pid}\)")
        trainer.process.kill()
        self.assertEqual(command.wait(), 0)
        self.assertEqual(server.wait(), 0)
        command.stderr.close()

    def test_say_so_where_stack_or_files_are_limited_too_much(self):
        file = self.pipeline(SHUFFLED)
        for limit, size, said in ((resource.RLIMIT_STACK, 1 << 18, "the limit for the stack is below"),
                                  (resource.RLIMIT_FSIZE, 1 << 12, "ulimit -f")):  # fmt: skip
            done = subprocess.run(
                [TUNDISH, "serve", file], env=self.environment, capture_output=True, text=True,
                preexec_fn=lambda limit=limit, size=size: resource.setrlimit(limit, (size, size)))
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(said, done.stderr)

    def test_end_with_the_process_that_owns_them(self):
        owner = self.start(["sleep", str(DEADLINE_S)])
        server = self.serve(self.pipeline(SHUFFLED, deliver="{epochs: null}"),
                            "--end-with", str(owner.pid))
        reader = self.read("--delay-ms", "5")
        self.wait_for_line(reader, "batch 0 4 ")
        owner.kill()
        owner.wait()
        self.assertEqual(server.wait(timeout=DEADLINE_S), 0)
        self.assertEqual(self.lines(reader)[-1], "stopped")
        self.assertIn(f"process {owner.pid}, which owns this server, has ended", self.log())
        late = self.start([TUNDISH, "serve", self.pipeline(SHUFFLED), "--end-with", str(owner.pid)])
        self.assertEqual(late.wait(timeout=DEADLINE_S), 3)

    def test_sleep_when_there_is_nothing_to_do(self):
        server = self.serve(self.pipeline(SHUFFLED))
        self.assert_sleeps([server.pid], 0.05)


if __name__ == "__main__":
    unittest.main()
