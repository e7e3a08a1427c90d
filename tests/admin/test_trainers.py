"""A trainer that holds a job up is named, with its process and how; one that only takes its time is not."""

import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from rig_admin import PLAIN, has_readers  # noqa: E402
from rig_status import StatusRig  # noqa: E402
from rig import DEADLINE_S  # noqa: E402

FOREVER = "{epochs: null}"
QUICK_STEP = ("--survive", "--delay-ms", "20")


class TwoTrainers(StatusRig):
    def serve_two(self, deliver=FOREVER):
        return self.serve(self.pipeline(PLAIN, distribute="{replicas: 2}", deliver=deliver))

    def train_two(self, first=QUICK_STEP, second=QUICK_STEP):
        return self.train(*first, replica=0), self.train(*second, replica=1)


class Trainers(TwoTrainers):
    def test_of_two_the_slower_one_is_waited_for(self):
        self.serve_two()
        slow, _ = self.train_two(("--survive", "--delay-ms", "300"))
        verdict = self.tells("for replica 0 on node ", level="waiting", cause="slots", culprit="0")
        self.assertIn("the slowest of its job", verdict["advice"])
        self.prints("waiting", "which has not freed its slots")
        self.instead(slow, *QUICK_STEP, replica=0)
        self.tells(level="fine", cause="trainer")

    def test_a_step_longer_than_the_look_holds_others_up_and_is_not_stuck(self):
        self.serve_two()
        _, quick = self.train_two(("--survive", "--delay-ms", "3000"))
        self.tells(level="waiting", cause="slots", culprit="0")
        self.instead(quick, "--survive", "--delay-ms", "3000", replica=1)
        self.tells(level="fine", cause="trainer")

    def test_one_that_was_killed_is_missed_until_another_comes(self):
        self.serve_two("{epochs: null, rejoin: 10m}")
        _, victim = self.train_two()
        self.look_until(has_readers(2))
        self.tells(level="fine")
        victim.kill()
        victim.wait()
        self.tells("for replica 1 on node ", level="stuck", cause="trainer", culprit="1")
        self.assertRegex(self.prints("stuck", "whose trainer is gone or has not attached"), r"\n  1 \(gone\)")
        self.train(*QUICK_STEP, replica=1)
        self.tells(level="fine", cause="trainer")

    def test_those_are_named_that_a_server_waits_for_before_it_stops(self):
        server = self.serve_two()
        readers = [self.read_paced(replica=replica) for replica in (0, 1)]
        for reader in readers:
            reader.take(2)
        self.look_until(lambda report: all(
            lane["published"] == lane["released"] + lane["slots"] for lane in report["streams"][0]["lanes"]))
        server.send_signal(signal.SIGTERM)
        verdict = self.tells(" is stopping: ", level="stopping", cause="trainer")
        one = r" \d+ by replica [01] \(process \d+\)"
        self.assertRegex(verdict["sentence"], f"{one},{one}$")
        self.prints("stopping", "batches of stream 'train' are still to be taken or returned, ")
        for reader in readers:  # each lane keeps what the other replica has not returned
            reader.go()
        for reader in readers:
            self.assertEqual(reader.finish()[-1], "stopped")
        self.assertEqual(server.wait(timeout=DEADLINE_S), 0)

    def test_one_that_is_stopped_is_stuck_until_it_goes_on(self):
        self.serve_two()
        stopped, _ = self.train_two()
        self.look_until(has_readers(2))
        stopped.send_signal(signal.SIGSTOP)
        verdict = self.tells(f"(process {stopped.pid}) has not taken or returned a batch for ",
                             level="stuck", cause="trainer", culprit="0")
        self.assertIn("the others wait for it", verdict["sentence"])
        stopped.send_signal(signal.SIGCONT)
        self.tells(level="fine", cause="trainer")

    def test_one_that_keeps_six_of_eight_batches_is_told_to_give_them_back(self):
        self.serve_two()
        keeper, _ = self.train_two(("--batches", "6", "--keep", "6", "--hold"))
        verdict = self.tells(f"(process {keeper.pid}) holds 6 of the 8 batches in its lane",
                             cause="trainer", culprit="0")
        self.assertIn("tundish_release", verdict["advice"])
        self.instead(keeper, *QUICK_STEP, replica=0)
        self.tells(level="fine", cause="trainer")

    def test_one_alone_that_never_gives_its_first_batch_back_waits_for_itself(self):
        self.serve(self.pipeline(PLAIN, deliver=FOREVER))
        keeper = self.train("--keep", "1")
        self.tells(f"(process {keeper.pid}) holds 8 of the 8 batches in its lane and returns none;"
                   " it waits for more", cause="trainer", culprit="0")
        self.instead(keeper, *QUICK_STEP)
        self.tells(level="fine", cause="trainer")

    def test_one_of_two_that_never_gives_its_first_batch_back_is_named(self):
        self.serve_two()
        keeper, _ = self.train_two(("--keep", "1"))
        self.tells(f"(process {keeper.pid}) holds 8 of the 8 ", cause="trainer", culprit="0")

    def test_one_alone_that_is_stopped_is_told(self):
        self.serve(self.pipeline(PLAIN, deliver=FOREVER))
        stopped = self.train(*QUICK_STEP)
        self.look_until(has_readers(1))
        stopped.send_signal(signal.SIGSTOP)
        self.tells(f"(process {stopped.pid}) has not taken or returned a batch for ", level="fine",
                   culprit="0")
        stopped.send_signal(signal.SIGCONT)
        self.tells("the trainers are the bottleneck", level="fine")


class Pauses(TwoTrainers):
    def test_of_one_hold_the_other_up_now_and_then(self):
        self.serve_two()
        pausing, _ = self.train_two(("--survive", "--delay-ms", "20", "--pause-ms", "1500"))
        verdict = self.tells("for replica 0 on node ", level="waiting", cause="trainer", culprit="0")
        self.assertRegex(verdict["sentence"], r"which stops for [1-9][0-9.]* s every \d+ batches$")
        self.assertIn("saves its state", verdict["advice"])
        self.instead(pausing, "--survive", "--delay-ms", "300", replica=0)
        verdict = self.tells("which has not freed its slots", level="waiting", cause="slots", culprit="0")
        self.assertNotIn("stops for", verdict["sentence"])

    def test_of_both_at_once_are_their_own_time(self):
        self.serve_two()
        both = ("--survive", "--delay-ms", "20", "--pause-ms", "1500")
        self.train_two(both, both)
        self.look_until(lambda report: all(
            reader["pauses"] > 2 for reader in report["streams"][0]["readers"]) and has_readers(2)(report))
        self.tells(level="fine", cause="trainer")


class LongSteps(TwoTrainers):
    def test_of_15_s_are_neither_stuck_nor_waited_for(self):
        self.serve_two()
        self.train_two(("--delay-ms", "15000"), ("--delay-ms", "15000"))
        seen = []
        while len(seen) < 3 or seen[-1][0] < 3:
            report = self.look()
            readers = report["streams"][0]["readers"]
            if len(readers) == 2:
                seen.append((min(reader["taken"] for reader in readers),
                             max(reader["silent_seconds"] for reader in readers)))
            self.assertIn(report["verdict"]["level"], ("fine", "idle"), report["verdict"])
        self.assertGreater(max(silent for _, silent in seen), 10)


if __name__ == "__main__":
    unittest.main()
