"""A server, or its machine, that is not in order is told, and that it is in order again."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from rig_admin import PLAIN, costly, has_readers  # noqa: E402
from rig_status import SLOW_STEP, StatusRig  # noqa: E402
from rig import TUNDISH, may_mount, stop  # noqa: E402

FOREVER = "{epochs: null}"
QUICK_STEP = ("--survive", "--delay-ms", "20")


class Server(StatusRig):
    def setUp(self):
        super().setUp()
        self.file = self.pipeline(PLAIN, deliver=FOREVER)
        self.server = self.serve(self.file)
        self.train(*QUICK_STEP)
        self.tells(level="fine", cause="trainer")

    def test_that_is_killed_is_gone_until_another_comes(self):
        stop(self.server, signal.SIGKILL)
        self.tells(f"(process {self.server.pid}) is gone", level="gone", cause="server")
        self.prints("gone", "is gone")
        self.serve(self.file)
        self.tells(level="fine", cause="trainer")

    def test_that_is_stopped_by_a_signal_shows_no_life_until_it_goes_on(self):
        self.server.send_signal(signal.SIGSTOP)
        self.tells("has not responded for ", level="gone", cause="server")
        self.server.send_signal(signal.SIGCONT)
        self.tells(level="fine", cause="trainer")

    def test_that_is_stopped_in_good_order_has_finished(self):
        """Who looks on sees it end; who comes later finds none."""
        command = [TUNDISH, "status", "--json", "--interval", "5000"]
        looking = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(looking.stdout.close)
        self.others.append(looking)
        while not has_open(looking.pid, f"{self.socket}.stats"):
            self.assertIsNone(looking.poll())
        self.assertEqual(stop(self.server), 0)
        verdict = json.load(looking.stdout)["verdict"]
        self.assertEqual((looking.wait(), verdict["level"], verdict["advice"]), (0, "idle", ""))
        self.assertIn("was stopped normally and has finished", verdict["sentence"])
        late = self.status_run()
        self.assertEqual((late.returncode, late.stdout), (3, ""))
        self.assertIn("no server is at ", late.stderr)


def has_open(pid, path):
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        return any(os.readlink(f"{folder}/{name}") == path for name in os.listdir(folder))
    return False


def quota_folder():
    """A new control group for processor time, and how to write its quota; (None, None): none can be made."""
    for parent, name, text in (("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "{}"),
                               ("/sys/fs/cgroup", "cpu.max", "{} 100000")):
        folder = Path(parent) / f"tundish-test-{os.getpid()}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            if (folder / name).exists():
                return folder, lambda us: (folder / name).write_text(
                    text.format(us if us > 0 or name != "cpu.max" else "max"))
            folder.rmdir()
    return None, None


class Processors(StatusRig):
    def test_that_a_quota_takes_away(self):
        folder, set_quota = quota_folder()
        if folder is None:
            self.skipTest("no control group with a quota of processor time can be made here")
        self.addCleanup(folder.rmdir)
        self.addCleanup(self.end_all)
        script = 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"'
        self.serve(self.pipeline(costly(), deliver=FOREVER), "--threads", "2",
                   before=["sh", "-c", script, "sh", str(folder)])
        trainer = self.train()
        self.look_until(has_readers(1))
        set_quota(20000)
        self.tells("the quota of its cgroup stops the server ", level="waiting", cause="processors",
                   culprit="quota")
        set_quota(-1)
        self.look_until(lambda report: report["verdict"]["culprit"] != "quota")
        self.instead(trainer, *SLOW_STEP)
        self.tells(level="fine", cause="trainer")

    @unittest.skipUnless(Path("/proc/self/schedstat").exists(), "this kernel counts no run-queue delay")
    def test_that_others_use(self):
        processor = str(min(os.sched_getaffinity(0)))
        pinned = ["taskset", "-c", processor]
        self.serve(self.pipeline(costly(), deliver=FOREVER), "--threads", "1", before=pinned)
        trainer = self.train()
        self.look_until(has_readers(1))
        hogs = [subprocess.Popen([*pinned, sys.executable, "-c", "while True: pass"])
                for _ in range(4)]
        self.others += hogs
        verdict = self.tells("the server is short of processors, of which python", level="waiting",
                             cause="processors", culprit="processors")
        self.assertRegex(verdict["sentence"], r"of which python\S* \(process \d+\) uses most")
        self.assertNotIn("uses most, 0.0", verdict["sentence"])
        for hog in hogs:
            hog.kill()
            hog.wait()
        self.instead(trainer, *SLOW_STEP)
        self.tells(level="fine", cause="trainer")


@unittest.skipUnless(may_mount(), "mounting is not permitted here")
class Memory(StatusRig):
    """The kernel's file about its control group says that programs wait for memory, or that none does."""

    def write(self, waited_us):
        self.waited_us += waited_us
        text = "avg10=0.00 avg60=0.00 avg300=0.00 total"
        new = self.path / "new"
        new.write_text(f"some {text}={self.waited_us}\nfull {text}=0\n")
        new.rename(self.path / "cgroup/job/memory.pressure")

    def wait_for_memory(self):
        while not self.has_enough.wait(0.05):
            self.write(25000)

    def test_that_is_short(self):
        (self.path / "cgroup/job").mkdir(parents=True)
        (self.path / "own").write_text("0::/job\n")
        self.waited_us, self.has_enough = 10**9, threading.Event()
        self.write(0)
        script = 'mount --bind "$1/cgroup" /sys/fs/cgroup && mount --bind "$1/own" /proc/$$/cgroup' \
            ' && shift && exec "$@"'
        self.serve(self.pipeline(costly(), deliver=FOREVER), "--threads", "1",
                   before=["unshare", "-m", "sh", "-c", script, "sh", str(self.path)])
        trainer = self.train()
        self.look_until(has_readers(1))
        waiting = threading.Thread(target=self.wait_for_memory)
        waiting.start()
        self.addCleanup(waiting.join)
        self.addCleanup(self.has_enough.set)
        verdict = self.tells("memory is short on node ", level="waiting", cause="memory",
                             culprit="memory")
        self.assertRegex(verdict["sentence"], r"programs waited for it \d+% of the time")
        self.has_enough.set()
        self.look_until(lambda report: report["verdict"]["cause"] not in ("memory", "none"))
        self.instead(trainer, *SLOW_STEP)
        self.tells(level="fine", cause="trainer")


@unittest.skipUnless(may_mount(), "mounting is not permitted here")
class SharedMemory(StatusRig):
    """The lanes are 4 MiB. Others keep their /dev/shm."""

    stages = ["range: 100000000", "batch: 65536"]

    def serve_within(self, size):
        script = 'mount -t tmpfs -o size="$1" tmpfs /dev/shm && shift && exec "$@"'
        file = self.pipeline(self.stages, deliver="{epochs: null, compression: none}")
        return self.serve(file, before=["unshare", "-m", "sh", "-c", script, "sh", size])

    def test_that_is_small_or_full_is_done_without(self):
        for size in ("1m", "64m"):
            server = self.serve_within(size)
            fill = Path("/proc", str(server.pid), "root", "dev", "shm", "fill")
            with contextlib.suppress(OSError), fill.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 20))
            trainer = self.train(*QUICK_STEP)
            self.look_until(has_readers(1))
            self.tells(level="fine", cause="trainer")
            trainer.kill()
            stop(server)

    def test_that_may_not_be_had_is_refused_with_the_arithmetic(self):
        file = self.pipeline(self.stages, deliver="{epochs: null, compression: none, memory_limit: 1MiB}")
        out = subprocess.run([TUNDISH, "serve", file], env=self.environment, capture_output=True,
                             text=True)
        self.assertEqual(out.returncode, 3, out.stderr)
        self.assertIn("there is room for 1048576 (memory_limit)", out.stderr)
        out = self.status_run()
        self.assertEqual(out.returncode, 3)
        self.assertIn("no server is at ", out.stderr)


if __name__ == "__main__":
    unittest.main()
