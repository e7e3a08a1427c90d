"""`tundish doctor` on machines that are made wrong, one thing at a time, and on this one."""

import ctypes
import errno
import json
import os
import re
import resource
import struct
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from rig import DEADLINE_S, TUNDISH, Rig, may_mount  # noqa: E402

ROWS = ["range: 100", "batch: 10"]
PIDFD_OPEN = 434  # on every processor


class Doctor(Rig):
    def examine(self, *arguments, before=(), prepare=None, **environment):
        done = subprocess.run(
            [*before, TUNDISH, "doctor", "--json", *arguments], capture_output=True, text=True,
            env=dict(self.environment, **environment), preexec_fn=prepare, timeout=DEADLINE_S)
        return self.found(done)

    def found(self, done):
        """The exit status, and the findings by what they are about, the worst of each."""
        order = ("ok", "note", "warning", "fault")
        findings = {}
        for finding in sorted(json.loads(done.stdout)["findings"],
                              key=lambda finding: order.index(finding["level"])):
            findings[finding["about"]] = finding
        worst = max((finding["level"] for finding in findings.values()), key=order.index)
        self.assertEqual(json.loads(done.stdout)["level"], worst)
        self.assertEqual(done.returncode, 4 if worst in ("warning", "fault") else 0, findings)
        return findings

    def finds(self, about, level, text, advice, *arguments, **how):
        finding = self.examine(*arguments, **how)[about]
        self.assertEqual(finding["level"], level, finding)
        self.assertRegex(finding["text"], text)
        self.assertRegex(finding["advice"] or "nothing", advice)

    # --- the machine --------------------------------------------------------------------------

    def test_text_has_a_line_for_each_finding_and_the_sum(self):
        done = subprocess.run([TUNDISH, "doctor"], env=self.environment, capture_output=True,
                              text=True, timeout=DEADLINE_S)
        *lines, last = done.stdout.splitlines()
        self.assertRegex(last, "^(nothing|[0-9]+ things?) to change$")
        for about in ("memory", "shared memory", "processors", "memory nodes", "open files", "clock", "socket",
                      "cache folder", "MPI", "GPU"):
            self.assertRegex("\n".join(lines), f"(?m)^(ok|note|warning|fault) +{about} ")

    def test_few_open_files(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

        self.finds("open files", "warning", "256 files at once", "ulimit -n 65536", prepare=few)

    def test_little_locked_memory(self):
        def little():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))

        self.finds("locked memory", "warning", "may lock 64 KiB", "LimitMEMLOCK", prepare=little)

    def test_a_call_that_a_filter_refuses(self):
        self.finds("system calls", "fault", "pidfd_open is refused: Operation not permitted",
                   "seccomp", prepare=lambda: refuse_call(PIDFD_OPEN))

    def test_processors_that_others_have(self):
        one = {min(os.sched_getaffinity(0))}
        processors = self.examine(prepare=lambda: os.sched_setaffinity(0, one))["processors"]
        if os.cpu_count() == 1:
            self.assertEqual(processors["text"], "1, all can be used")
        else:
            self.assertEqual(processors["level"], "note")
            self.assertRegex(processors["text"], r"^1 of the .* affinity .* allows 1\)")

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    @unittest.skipIf(os.cpu_count() == 1, "a quota is more than one processor")
    def test_processors_that_control_groups_withhold(self):
        for line, files, folder in (
            ("0::/job/step", {"job/cpu.max": "90000 100000"}, "job"),
            ("0::/job/step", {"job/step/cpu.max": "max 100000", "job/cpu.max": "50000 100000"}, "job"),
            ("3:cpu,cpuacct:/job", {"cpu,cpuacct/job/cpu.cfs_quota_us": "90000",
                                    "cpu,cpuacct/job/cpu.cfs_period_us": "100000"},
             "cpu,cpuacct/job"),
        ):
            with self.subTest(line=line, files=files):
                found = self.found(self.in_groups(line, files, TUNDISH, "doctor", "--json"))
                self.assertRegex(found["processors"]["text"],
                                 f"^1 of the .* group /sys/fs/cgroup/{folder} allows 0.[59] proc")

    @unittest.skipUnless("tests/cuda" in os.environ.get("LD_LIBRARY_PATH", ""),
                         "built without libtundish_cuda, which has the driver's stand-in")
    def test_drivers_of_a_gpu(self):
        for level, text, advice, environment in (
            ("ok", "^1, with a driver of CUDA 13.0", "nothing", {}),
            ("warning", "of CUDA 10.2, which is too old", "newer", {"FAKE_CUDA_VERSION": "10020"}),
            ("warning", "refuses to start with error 100", "nvidia-smi", {"FAKE_CUDA_INIT": "100"}),
        ):
            with self.subTest(text=text):
                self.finds("GPU", level, text, advice, **environment)

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "there is a GPU")
    def test_no_gpu(self):
        self.finds("GPU", "ok", "none", "nothing", LD_LIBRARY_PATH="")

    def test_a_library_that_is_no_driver(self):
        (self.path / "libcuda.so.1").symlink_to(os.environ["TUNDISH_LIBRARY"])
        self.finds("GPU", "warning", "is not a driver", "stubs", LD_LIBRARY_PATH=str(self.path))

    # --- folders, memory ----------------------------------------------------------------------

    def test_a_cache_folder_that_cannot_be(self):
        (self.path / "file").write_text("")
        self.finds("cache folder", "fault", "file", "--cache", "--cache", str(self.path / "file"))

    def test_a_cache_folder_that_others_may_write_to(self):
        (self.path / "open").mkdir()
        (self.path / "open").chmod(0o777)
        self.finds("cache folder", "fault", "open", "--cache", TUNDISH_CACHE=str(self.path / "open"))

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_a_cache_folder_without_room(self):
        (self.path / "cache").mkdir(mode=0o700)
        self.finds("cache folder", "warning", "has 1 MiB left", "remove files",
                   before=self.with_little("1m", self.path / "cache"))

    def test_a_socket_that_a_server_has(self):
        self.serve(self.pipeline(ROWS))
        self.finds("socket", "note", "a server listens at .*/server already", "nothing")

    def test_a_socket_with_too_long_a_path(self):
        self.finds("socket", "fault", "takes 107", "nothing", "--socket", "/tmp/" + "s" * 200)

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_a_small_folder_for_shared_memory(self):
        little = self.with_little("64m", "/dev/shm")
        self.assertEqual(self.examine(before=little)["shared memory"]["level"], "ok")
        large = ["range: 10000000", "batch: 2000000"]
        self.finds("shared memory", "warning", "has 64 MiB free, and batches need 1[0-9][0-9]: ",
                   "--shm-size", self.pipeline(large), before=little)
        file = self.pipeline(large, deliver="{memory: memfd}")
        self.assertEqual(self.examine(file, before=little)["shared memory"]["level"], "ok")

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_less_memory_than_batches_need(self):
        files = {"job/memory.max": "100000000", "job/memory.current": "10000000"}
        file = self.pipeline(["range: 10000000", "batch: 2000000"])
        done = self.in_groups("0::/job", files, TUNDISH, "doctor", "--json", file)
        memory = self.found(done)["memory"]
        self.assertEqual(memory["level"], "fault")
        self.assertRegex(memory["text"], "need 1.. MiB, but there is room for 86 .*/job has a limit")

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_huge_pages(self):
        file = self.pipeline(ROWS, deliver="{huge_pages: true}")
        for mode, level, advice in (("never", "warning", "remount,huge=advise /dev/shm"), ("advise", "ok", "nothing")):
            self.finds("huge pages", level, rf"/dev/shm gives .*\({mode}\)", advice, file, before=[
                "unshare", "-m", "sh", "-c",
                f'mount -t tmpfs -o huge={mode} tmpfs /dev/shm && exec "$@"', "sh"])
        self.assertNotIn("huge pages", self.examine(self.pipeline(ROWS)))

    def with_little(self, size, folder):
        script = 'mount -t tmpfs -o size="$1",mode=0700 tmpfs "$2" && shift 2 && exec "$@"'
        return ["unshare", "-m", "sh", "-c", script, "sh", size, str(folder)]

    # --- the pipeline file --------------------------------------------------------------------

    def test_files_that_are_not_there(self):
        found = self.examine(self.pipeline(["text_line: absent.txt", "batch: 2"]))
        self.assertEqual(found["files"]["level"], "fault")
        self.assertRegex(found["files"]["text"], "stream train: .*absent.txt")

    def test_every_error_of_the_file(self):
        file = self.pipeline(["range: 10", "btach: 2", "shufle: 3"])
        done = subprocess.run([TUNDISH, "doctor", file], env=self.environment, capture_output=True,
                              text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stdout, "(?m)^fault +pipeline +.*pipeline.yaml:6.*btach")
        self.assertRegex(done.stdout, "(?m)^fault +pipeline +.*pipeline.yaml:7.*shufle")
        self.finds("pipeline", "fault", "no such|No such", "nothing", str(self.path / "none.yaml"))

    def test_each_stream_is_looked_at_or_the_one_that_was_named(self):
        file = self.path / "two.yaml"
        file.write_text("streams:\n  good:\n    dataset: [range: 10, batch: 2]\n"
                        "  bad:\n    dataset: [text_line: absent.txt, batch: 2]\n")
        self.finds("files", "fault", "stream bad: ", "nothing", str(file))
        self.finds("files", "ok", "stream good: can be read", "nothing", str(file), "--stream", "good")

    def test_what_tables_and_batches_need(self):
        (self.path / "words.txt").write_text("".join(f"word{i}\n" for i in range(50000)))
        file = self.pipeline(["text_line: words.txt",
                              "string_lookup: {columns: value, vocabulary: words.txt}", "batch: 10"])
        self.assertRegex(self.examine(file)["memory"]["text"], "vocabulary tables [1-9]")

    def test_a_table_that_two_stages_share_is_counted_once(self):
        def tables(*vocabularies):
            columns = [f"c{i}" for i in range(len(vocabularies))]
            lookups = [f"string_lookup: {{columns: {column}, vocabulary: {name}}}"
                       for column, name in zip(columns, vocabularies, strict=True)]
            copies = ", ".join(f"{column}: value" for column in columns)
            file = self.pipeline(["text_line: words.txt", f"map: {{{copies}}}", *lookups, "batch: 10"])
            text = self.examine(file)["memory"]["text"]
            return int(re.search(r"vocabulary tables (\d+)", text)[1])

        for name in ("words", "others"):
            (self.path / f"{name}.txt").write_text("".join(f"{name}{i}\n" for i in range(200000)))
        alone = tables("words.txt")
        self.assertGreater(alone, 1)
        self.assertEqual(tables("words.txt", "words.txt"), alone)
        self.assertGreater(tables("words.txt", "others.txt"), alone)

    def test_too_many_arguments(self):
        done = subprocess.run([TUNDISH, "doctor", "a", "b"], capture_output=True, text=True,
                              timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 2)
        self.assertIn("one pipeline file at most", done.stderr)


def refuse_call(number):
    """A filter of seccomp for this process: the call fails with EPERM, all others go through."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, equal, leave, allow, refuse = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000 | errno.EPERM
    program = b"".join(struct.pack("HBBI", *step) for step in (
        (load, 0, 0, 0), (equal, 0, 1, number), (leave, 0, 0, refuse), (leave, 0, 0, allow)))
    steps = ctypes.create_string_buffer(program)
    filter_ = struct.pack("HxxxxxxP", 4, ctypes.addressof(steps))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, filter_, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    unittest.main()
