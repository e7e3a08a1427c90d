"""tundish-admin, looked at while its server is killed, and killed itself."""

import http.client
import json
import os
import subprocess

from .ledger import Failure


class Admin:
    def __init__(self, job, program):
        self.job, self.program = job, program
        self.process = None
        if program.exists():
            self.start()

    def start(self):
        read_end, write_end = os.pipe()
        with open(self.job.folder / "admin-log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(self.program), "--listen", "127.0.0.1:0", "--ready-fd", str(write_end)],
                env=self.job.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=[write_end],
            )  # fmt: skip
        os.close(write_end)
        word = os.read(read_end, 200).decode()
        os.close(read_end)
        if not word.startswith("http"):
            raise Failure("tundish-admin did not start")
        self.host = word.strip().split("/")[2]

    def look(self):
        """It answers, whatever has become of the server; now and then it is killed."""
        if self.process is None:
            return
        connection = http.client.HTTPConnection(self.host, timeout=300)
        try:
            connection.request("GET", "/api/v1/status")
            answer = connection.getresponse()
            body = answer.read()
        except OSError as error:
            log = (self.job.folder / "admin-log").read_text(encoding="utf-8")
            raise Failure(f"tundish-admin ({self.process.poll()}) does not answer: {error}\n{log}") from None
        finally:
            connection.close()
        if answer.status != 200 or "nodes" not in json.loads(body):
            raise Failure(f"tundish-admin answers {answer.status}: {body[:200]}")
        self.job.troubles["asked of admin"] += 1
        if self.job.random.random() < 0.2:
            self.close()
            self.job.killed["admins"] += 1
            self.start()

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
