"""Several groups of trainers on one session: each sees everything, none disturbs another."""

import subprocess
import unittest
from functools import partial

from rig import TUNDISH, Rig, batches, place, sleep, stop

SHUFFLED = ["range: 1000", "shuffle: {buffer_size: 100}", "batch: 16"]
STEPS = 63


class Groups(Rig):
    def test_share_a_session_from_its_first_batch(self):
        file = self.pipeline(SHUFFLED, "{replicas: 2, groups: 2}", "{epochs: 2}")
        expected = self.peek(file, "--epochs", "2")
        self.serve(file)
        early = [self.read(replica=replica, group="a") for replica in range(2)]
        for reader in early:
            self.assertEqual(self.wait_for_line(reader, "first"), "first")
        late = [self.read(replica=replica, group="b") for replica in range(2)]
        for place, lines in enumerate(self.all_lines(early + late)):
            self.assertEqual(batches(lines), expected[place % 2])
            self.assertEqual(lines[-1], "end_of_stream")

    def test_are_waited_for_only_so_long(self):
        file = self.pipeline(SHUFFLED, "{groups: 3}", "{epochs: 1, group_wait: 300ms}")
        expected = self.peek(file)
        server = self.serve(file)
        readers = self.come_together(server, [partial(self.read, group=group) for group in "ab"])
        for lines in self.all_lines(readers):
            self.assertEqual(batches(lines), expected[0])
        self.wait_for_log("2 of 3 groups")

    def test_that_come_late_begin_at_the_oldest_batch_kept_and_are_told(self):
        file = self.pipeline(SHUFFLED)
        expected = self.peek(file)[0]
        self.serve(file)
        early = self.read_paced(group="a")
        early.take(11)
        late = self.read_paced(group="b")
        self.assertEqual(late.first, "first 0 11")
        self.wait_for_log('group "b" joins the running session train at epoch 0, step 11')
        early.go()
        self.assertEqual(batches(late.finish()), expected[11:])
        self.assertEqual(batches(early.finish()), expected)

    def test_that_come_at_the_end_of_an_epoch_begin_with_the_next(self):
        file = self.pipeline(SHUFFLED, deliver="{epochs: 2}")
        expected = self.peek(file, "--epochs", "2")[0]
        self.serve(file)
        early = self.read_paced(group="a")
        early.take(STEPS)
        early.ask()
        self.assertEqual(early.line(), "end")
        late = self.read_paced(group="b")
        self.assertEqual(late.first, "first 1 0")
        early.go()
        self.assertEqual(batches(late.finish()), expected[STEPS:])
        self.assertEqual(batches(early.finish()), expected)

    def test_whose_trainer_follows_another_may_ask_for_whole_epochs(self):
        """Within an epoch, and where all of it but the end was had."""
        file = self.pipeline(["range: 96", "batch: 16"], deliver="{epochs: 3, slots: 4}")
        expected = self.peek(file, "--epochs", "3")[0]
        self.serve(file)
        self.assertEqual(batches(self.lines(self.read("--batches", "2"))), expected[:2])
        following = batches(self.lines(self.read("--restart", "--batches", "6")))
        self.assertEqual(following, expected[6:12])
        self.assertEqual(batches(self.lines(self.read("--restart"))), expected[12:])

    def test_wait_for_the_slowest(self):
        file = self.pipeline(SHUFFLED, "{groups: 2}", "{epochs: 1, slots: 4}")
        self.serve(file)
        fast, slow = self.read_paced(group="fast"), self.read_paced(group="slow")
        slow.take(1)
        fast.take(4)
        fast.ask()
        sleep(0.3)
        slow.take(1)
        self.assertEqual(fast.line()[:10], "batch 0 4 ")
        fast.seen.append("batch 0 4")
        slow.go()
        self.assertEqual([step for _, step, _ in batches(fast.finish())], list(range(STEPS)))

    def test_that_are_too_slow_are_cut_off_where_asked(self):
        file = self.pipeline(SHUFFLED, "{groups: 2}", "{epochs: 1, slots: 4, slow_group: detach}")
        expected = self.peek(file)[0]
        self.serve(file)
        slow, fast = self.read_paced(group="slow"), self.read_paced(group="fast")
        slow.take(2)
        fast.go()
        self.assertEqual(batches(fast.finish()), expected)
        self.assertIn("E_DETACHED", slow.finish()[-1])

    def test_cost_one_pass_over_the_data(self):
        (self.path / "rows.csv").write_text("".join(f"{i}\n" for i in range(200000)))
        stages = [
            "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}",
            "batch: 1000",
        ]

        self.serve(self.pipeline(stages, "{groups: 4}", "{epochs: 1}"))
        readers = [self.read(group=str(group)) for group in range(4)]
        rows = [len(batches(lines)) for lines in self.all_lines(readers)]
        self.assertEqual(rows, [200] * 4)
        self.assertEqual(self.figures()["rows_read"], 200000)


class GroupDeaths(Rig):
    def test_are_told_to_siblings_and_to_nobody_else(self):
        file = self.pipeline(SHUFFLED, "{replicas: 2, groups: 2}", "{epochs: 1, rejoin: 600s}")
        expected = self.peek(file)
        self.serve(file)
        others = [self.read(replica=replica, group="b") for replica in range(2)]
        sibling = self.read_paced("--survive", replica=0, group="a")
        victim = self.read_paced(replica=1, group="a")
        victim.take(6)
        sibling.take(2)
        victim.process.kill()
        self.wait_for_log('replica 1 of group "a" has died')
        sibling.ask()
        lost = self.wait_for_line(sibling.process, "status")
        self.assertIn("E_PEER_LOST", lost)
        self.assertIn("replica 1", lost)
        successor = self.read(replica=1, group="a")
        sibling.go()
        self.assertEqual(batches(self.lines(successor)), expected[1][6:])
        for replica, reader in enumerate(others):
            lines = self.lines(reader)
            self.assertEqual(batches(lines), expected[replica])
            self.assertEqual(lines[-1], "end_of_stream")

    def test_of_a_whole_group_are_followed_at_its_lowest_step(self):
        file = self.pipeline(SHUFFLED, "{replicas: 2, groups: 2}", "{epochs: 1, rejoin: 600s}")
        expected = self.peek(file)
        self.serve(file)
        others = [self.read(replica=replica, group="b") for replica in range(2)]
        victims = [self.read_paced(replica=replica, group="a") for replica in range(2)]
        for victim, count in zip(victims, (7, 4)):
            victim.take(count)
        for victim in victims:
            victim.process.kill()
        for replica in range(2):
            self.wait_for_log(f'replica {replica} of group "a" has died')
        again = [self.read_paced(replica=replica, group="a") for replica in range(2)]
        self.assertEqual([reader.first for reader in again], ["first 0 4"] * 2)
        for reader in again:
            reader.go()
        for replica, reader in enumerate(again):
            self.assertEqual(batches(reader.finish()), expected[replica][4:])
        for replica, reader in enumerate(others):
            self.assertEqual(batches(self.lines(reader)), expected[replica])

    def test_without_a_successor_free_the_others(self):
        file = self.pipeline(SHUFFLED, "{groups: 2}", "{epochs: 1, slots: 4, rejoin: 300ms}")
        expected = self.peek(file)[0]
        self.serve(file)
        victim, other = self.read_paced(group="a"), self.read(group="b")
        victim.take(3)
        victim.process.kill()
        self.assertEqual(batches(self.lines(other)), expected)

    def test_are_not_seen_in_one_who_has_read_all(self):
        """It leaves, and has nothing that a successor could take."""
        file = self.pipeline(["range: 40", "batch: 16"], "{replicas: 2}",
                             "{epochs: 1, slots: 8, rejoin: 100ms}")
        expected = self.peek(file)
        self.serve(file)
        slow = self.read_paced(replica=1)
        self.assertEqual(batches(self.lines(self.read(replica=0))), expected[0])
        sleep(0.5)
        lines = slow.finish()
        self.assertEqual(batches(lines), expected[1])
        self.assertEqual(lines[-1], "end_of_stream")

    def test_are_not_seen_in_one_who_has_read_all_and_does_not_close(self):
        file = self.pipeline(["range: 40", "batch: 16"], "{replicas: 2}", "{epochs: 1, slots: 8}")
        expected = self.peek(file)
        self.serve(file)
        slow = self.read_paced(replica=1)
        self.assertEqual(batches(self.lines(self.read("--no-close", replica=0))), expected[0])
        # Of what the server was told first it hears first.
        self.lines(self.read("--batches", "1", group="later"))
        lines = slow.finish()
        self.assertEqual(batches(lines), expected[1])
        self.assertEqual(lines[-1], "end_of_stream")
        self.assertNotIn("has died", self.log())

    def test_are_not_meant_by_one_who_closes_early_but_told_as_well(self):
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, slots: 4, rejoin: 300ms}")
        self.serve(file)
        early, sibling = self.read_paced(replica=0), self.read_paced(replica=1)
        sibling.take(1)
        early.take(2)
        early.process.stdin.close()
        early.process.wait()
        self.wait_for_log('replica 0 of group "default" has closed its reader before the end')
        self.assertIn("E_PEER_LOST replica 0 of group", sibling.finish()[-1])

    def test_with_their_server_are_told_to_those_who_outlived_it(self):
        """The new server never saw the one that is missing; its sibling must not wait for ever."""
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, slots: 4, rejoin: 300ms}")
        expected = self.peek(file)[0]
        server = self.serve(file)
        sibling = self.read_paced("--survive", replica=0)
        victim = self.read_paced(replica=1)
        taken = sibling.take(3)
        victim.take(1)
        server.kill()
        victim.process.kill()
        server.wait()
        victim.process.wait()
        self.serve(file)
        lines = sibling.finish()
        self.assertIn("E_PEER_LOST replica 1 of group", lines[-1])
        self.assertIn("the group has ended; open again at a place", lines[-1])
        self.assertEqual(batches(lines), expected[:len(batches(lines))])
        self.assertGreaterEqual(len(batches(lines)), len(taken))

    def status_says(self, text):
        out = subprocess.run([TUNDISH, "status", "--interval", "100"], env=self.environment,
                             capture_output=True, text=True)  # fmt: skip
        return text in out.stdout

    def test_that_nobody_remembers_are_named_and_mended_by_another_start(self):
        """One replica has read all. The other went back to a place, and only their server knew."""
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, slots: 4}")
        expected = self.peek(file)
        server = self.serve(file)
        done = self.read(replica=0)
        at = place(self.lines(self.read("--batches", "2", replica=1)))
        self.lines(self.read(replica=1))
        self.lines(done)
        server.kill()
        server.wait()
        self.serve(file)
        late = self.read("--place", at, replica=1)
        self.wait_until(lambda: self.status_says("for replica 0 on node"))
        self.assertTrue(self.status_says("start it once more at the place of one that waits"))
        again = self.read("--place", at, replica=0)
        for replica, lines in enumerate(self.all_lines([again, late])):
            self.assertEqual(batches(lines), expected[replica][2:])
            self.assertEqual(lines[-1], "end_of_stream")

    def test_of_whole_groups_are_named_while_the_first_batch_waits(self):
        file = self.pipeline(SHUFFLED, "{replicas: 2, groups: 2}", "{epochs: 1, slots: 4}")
        self.serve(file)
        self.read(replica=1, group="a")
        self.wait_until(lambda: self.status_says(
            "for the first batch, which waits until 2 more groups are complete, so for replica 0 of "
            "group a"))  # fmt: skip
        self.wait_for_log("the first batch waits until 2 groups are complete")

    def test_do_not_hold_up_the_end_of_their_server(self):
        """The lane of the sibling is full of batches that it has had; nobody will give them back."""
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, slots: 4}")
        expected = self.peek(file)
        server = self.serve(file)
        sibling = self.read("--survive", replica=0)
        self.wait_for_line(sibling, "first")  # else all are dead, and their lowest step is the first
        victim = self.read("--batches", "2", "--hold", replica=1)
        place = self.wait_for_line(victim, "place ").split()[1]
        victim.kill()
        self.wait_until(lambda: self.figures()["steps"] == 5)
        self.assertEqual(stop(server), 0)
        self.serve(file)
        successor = self.read("--place", place, replica=1)
        self.assertEqual(batches(self.lines(successor)), expected[1][2:])
        self.assertEqual(batches(self.whole(sibling)), expected[0])

    def test_of_the_server_do_not_hold_up_the_end_of_the_next(self):
        """One group is back and has had all that the lane holds, the other is not back yet."""
        file = self.pipeline(SHUFFLED, "{groups: 2}", "{epochs: 1, slots: 4}")
        server = self.serve(file)
        fast, late = (self.read_paced("--survive", group=group) for group in ("fast", "late"))
        fast.take(1)
        late.take(1)
        server.kill()
        server.wait()
        server = self.serve(file)
        fast.go()
        self.wait_until(lambda: self.figures()["steps"] == 4)
        self.assertEqual(stop(server), 0)

    def place_of_one_whose_sibling_had_none(self, file, server):
        """Both die, and their server: one had three batches and a place, the other had its first."""
        readers = [self.read_paced("--places", replica=replica) for replica in range(2)]
        readers[0].take(1)
        for _ in range(3):
            readers[1].take(1)
            place = readers[1].line()
        for process in (server, *(reader.process for reader in readers)):
            process.kill()
            process.wait()
        return place.removeprefix("place "), self.serve(file)

    def test_before_a_place_was_saved_are_told_to_a_successor_without_one(self):
        """It lacks what was before its sibling's place, and nobody knows."""
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, slots: 4}")
        place, _ = self.place_of_one_whose_sibling_had_none(file, self.serve(file))
        sibling = self.read_paced("--place", place, replica=1)
        sibling.take(1)
        lines = self.lines(self.read(replica=0))
        self.assertEqual(batches(lines), [])
        self.assertIn("E_PLACE", lines[-1])
        self.assertIn("replica 0 has none and may lack what was before", lines[-1])
        successor = self.read("--place", place, replica=0)
        expected = self.peek(file)
        self.assertEqual(batches(sibling.finish()), expected[1][3:])
        self.assertEqual(batches(self.lines(successor)), expected[0][3:])

    def test_before_a_place_was_saved_keep_no_sibling_reading_apart(self):
        """While nothing is dealt yet, that is until both groups are there; whichever comes first."""
        for unplaced in (0, 1):
            file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, slots: 4}")
            place, server = self.place_of_one_whose_sibling_had_none(file, self.serve(file))
            stop(server)
            file = self.pipeline(SHUFFLED, "{replicas: 2, groups: 2}", "{epochs: 1, slots: 4}")
            expected = self.peek(file)
            server = self.serve(file)
            if unplaced == 0:
                refused = self.read_paced(replica=0)
                placed = self.read_paced("--place", place, replica=1)
                last = refused.finish()[-1]
            else:
                placed = self.read_paced("--place", place, replica=0)
                last = self.lines(self.read(replica=1))[-1]
            self.assertIn("E_PLACE", last)
            self.assertIn(f"replica {1 - unplaced} of group", last)
            self.assertIn("epoch 0, step 3", last)
            self.assertIn(f"replica {unplaced} ", last)
            successor = self.read("--place", place, replica=unplaced)
            others = [self.read("--place", place, replica=replica, group="other")
                      for replica in range(2)]  # fmt: skip
            self.assertEqual(batches(placed.finish()), expected[1 - unplaced][3:])
            self.assertEqual(batches(self.lines(successor)), expected[unplaced][3:])
            self.all_lines(others)
            stop(server)

    def test_of_the_server_lose_and_double_nothing(self):
        file = self.pipeline(
            SHUFFLED, "{replicas: 2, groups: 2}", "{epochs: 4, slots: 4}", seed=""
        )
        server = self.serve(file, "--seed", "7")
        keys = [(group, replica) for group in "ab" for replica in range(2)]
        readers = {
            (group, replica): self.read(
                "--survive", "--delay-ms", str(1 + replica), replica=replica, group=group
            )
            for group, replica in keys
        }
        for step in (20, STEPS - 1, STEPS + 1, 2 * STEPS, 3 * STEPS - 2):
            self.wait_for_line(readers["a", 0], f"batch {step // STEPS} {step % STEPS} ")
            server.kill()
            server.wait()
            server = self.serve(file)
        lines = self.all_lines(list(readers.values()))
        seen = {key: batches(lines) for key, lines in zip(readers, lines)}
        del seen["a", 0]  # some of its lines were waited for
        expected = self.peek(file, "--epochs", "4", "--seed", "7")
        for (group, replica), rows in seen.items():
            self.assertEqual(rows, expected[replica], f"replica {replica} of group {group}")

    def assert_restart_loses_nothing(self, file, held, expected):
        """One group has all that the lane holds, and waits for the other, which is back much later."""
        server = self.serve(file)
        fast, slow = (self.read_paced("--survive", group=group) for group in ("fast", "slow"))
        fast.take(held)
        fast.ask()
        slow.take(1)
        fast.seen.append(fast.line())
        server.kill()
        server.wait()
        self.serve(file)
        fast.ask()
        self.assertIn("E_SERVER_GONE", fast.line())
        fast.ask()
        sleep(1.5)
        fast.go()
        slow.go()
        for reader in (fast, slow):
            lines = reader.finish()
            self.assertEqual(batches(lines), expected)
            self.assertEqual(lines[-1], "end_of_stream")

    def test_of_the_server_lose_nothing_of_a_group_that_is_late(self):
        file = self.pipeline(SHUFFLED, "{groups: 2}", "{epochs: 1, slots: 4}")
        self.assert_restart_loses_nothing(file, 4, self.peek(file)[0])

    def test_of_the_server_lose_nothing_where_epochs_are_short(self):
        file = self.pipeline(["range: 32", "batch: 16"], "{groups: 2}", "{epochs: 9, slots: 4}")
        self.assert_restart_loses_nothing(file, 3, self.peek(file, "--epochs", "9")[0])

    def test_of_the_server_cut_a_late_group_off_where_asked(self):
        file = self.pipeline(SHUFFLED, "{groups: 2}", "{epochs: 1, slots: 4, slow_group: detach}")
        expected = self.peek(file)[0]
        server = self.serve(file)
        fast, slow = (self.read_paced("--survive", group=group) for group in ("fast", "slow"))
        slow.take(1)
        fast.take(2)
        server.kill()
        server.wait()
        self.serve(file)
        fast.go()
        self.wait_for_log("continues without a group of the previous server")
        self.assertEqual(batches(fast.finish()), expected)
        self.assertIn("E_DETACHED stream 'train' has passed epoch 0, step ", slow.finish()[-1])


if __name__ == "__main__":
    unittest.main()
