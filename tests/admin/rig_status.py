"""What `tundish status` tells of real servers and trainers: as JSON, as text, by its exit status."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from rig_admin import AdminRig  # noqa: E402
from rig import DEADLINE_S, TUNDISH  # noqa: E402

EXITS = {"idle": 0, "fine": 0, "warning": 0, "stopping": 0, "waiting": 0, "stuck": 4, "failed": 4, "gone": 3}
SLOW_STEP = ("--delay-ms", "200")  # of a trainer that any server feeds


class StatusRig(AdminRig):
    def status_run(self, *options, socket=None):
        command = [TUNDISH, "status", "--interval", "300", *options]
        environment = dict(self.environment, **({"TUNDISH_SERVER": socket} if socket else {}))
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    def look(self, socket=None):
        """The report of one look; its exit status is that of its level."""
        out = self.status_run("--json", socket=socket)
        report = json.loads(out.stdout)
        self.assertEqual(out.returncode, EXITS[report["verdict"]["level"]], out.stdout)
        return report

    def look_until(self, true_of, socket=None):
        deadline = time.monotonic() + DEADLINE_S / 2
        while not true_of(report := self.look(socket)):
            self.assertLess(time.monotonic(), deadline, f"never came: {json.dumps(report['verdict'])}")
        return report

    def tells(self, sentence="", socket=None, **wanted):
        """Wait until the verdict has these values and says that; returns it."""
        verdict = self.look_until(lambda report: is_told(report["verdict"], sentence, wanted),
                                  socket)["verdict"]
        if os.environ.get("TUNDISH_SHOW_VERDICTS"):
            print(f"{self.id()}: {json.dumps(verdict, indent=2)}", file=sys.stderr)
        return verdict

    def prints(self, level, sentence):
        """Wait until the text begins with that level and has that sentence, however it is broken."""
        deadline = time.monotonic() + DEADLINE_S / 2
        while True:
            out = self.status_run()
            words = " ".join(out.stdout.split())
            if words.startswith(f"{level} ") and sentence in words:
                self.assertEqual(out.returncode, EXITS[level], out.stdout)
                return out.stdout
            self.assertLess(time.monotonic(), deadline, out.stdout)

    def instead(self, trainer, *options, **others):
        """Another trainer in place of one that is ended."""
        trainer.kill()
        trainer.wait()
        return self.train(*options, **others)


def is_told(verdict, sentence, wanted):
    return sentence in verdict["sentence"] and all(verdict[key] == value
                                                   for key, value in wanted.items())
