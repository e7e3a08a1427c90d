"""Presigned addresses, and those with a user's name, are read, and their secrets are never shown."""

import base64
import http.server
import re
import subprocess
import threading
import unittest

from rig import DEADLINE_S, TUNDISH, Rig

SECRETS = ("hidden-signature", "hidden-token", "hidden-password")
BYTES = "".join(f"{i}\n" for i in range(200)).encode()


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        user = base64.b64encode(b"user:hidden-password").decode()
        may = "X-Amz-Signature=hidden-signature" in self.path and \
            "token=hidden-token" in self.path and \
            self.headers.get("Authorization") == f"Basic {user}"
        if not may or "gone" in self.path:
            self.send_response(404 if may else 403)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        asked = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = map(int, asked.groups()) if asked else (0, len(BYTES) - 1)
        part = BYTES[first:last + 1]
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(BYTES)}")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def do_HEAD(self):
        """The signature is of a GET, as that of a presigned address usually is."""
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class UrlSecrets(Rig):
    def setUp(self):
        super().setUp()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.host = f"127.0.0.1:{server.server_address[1]}"

    def url(self, name):
        return f"http://user:hidden-password@{self.host}/{name}?token=hidden-token&part=1" \
            "&X-Amz-Signature=hidden-signature"

    def run_tundish(self, *words):
        done = subprocess.run([TUNDISH, *words], env=self.environment, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE_S)
        for secret in SECRETS:
            self.assertNotIn(secret, done.stdout + done.stderr)
        return done

    def test_what_is_there(self):
        file = self.pipeline([f'text_line: {{filenames: "{self.url("a.txt")}"}}', "batch: 10"])
        for words in (("plan", file), ("plan", "--json", file), ("peek", file), ("explain", file)):
            done = self.run_tundish(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
        server = self.serve(file)
        reader = self.read_paced()
        reader.take(2)
        for words in (("status",), ("status", "--json")):
            self.run_tundish(*words, "--socket", self.socket)
        server.kill()
        reader.process.kill()
        for secret in SECRETS:
            self.assertNotIn(secret, self.log())

    def test_what_is_not(self):
        file = self.pipeline([f'text_line: {{filenames: "{self.url("gone.txt")}"}}', "batch: 10"])
        done = self.run_tundish("peek", file)
        self.assertIn("404", done.stdout + done.stderr)
        self.assertIn("gone.txt", done.stdout + done.stderr)

    def test_what_cannot_be_a_url(self):
        file = self.pipeline([f'text_line: {{filenames: "{self.url("a b.txt")}"}}', "batch: 10"])
        done = self.run_tundish("plan", file)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("%XX", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
