"""What a stranger or another site's page may not do."""

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from rig_admin import ADMIN, BEARER, PLAIN, TOKEN, AdminRig, has_readers  # noqa: E402
from rig import DEADLINE_S  # noqa: E402

class Security(AdminRig):
    def refused(self, *options):
        out = subprocess.run([ADMIN, *options], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(out.returncode, 2, out.stderr)
        return out.stderr

    def test_listens_on_loopback_unless_told(self):
        """At its own port, or not at all if that is taken."""
        process = subprocess.Popen([ADMIN, "--ready-fd", "1"], env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        word = process.stdout.readline()
        if word:
            self.assertEqual(word, "http://127.0.0.1:8465/\n")
        else:
            self.assertEqual(process.wait(timeout=DEADLINE_S), 3)
            self.assertIn("Address already in use", process.stderr.read())

    def test_another_address_needs_a_token_and_tls(self):
        self.assertIn("--token-file", self.refused("--listen", "0.0.0.0:0"))
        token = self.token_file()
        self.assertIn("TLS", self.refused("--listen", "0.0.0.0:0", "--token-file", token))

    def test_another_address_asks_for_the_token_even_to_read(self):
        self.admin("--listen", "0.0.0.0:0", "--token-file", self.token_file(), "--behind-proxy")
        own = ("Host", self.host)
        self.assertEqual(self.ask("/metrics", headers=[own])[0], 401)
        self.assertEqual(self.ask("/metrics", headers=[own, BEARER])[0], 200)
        self.assertEqual(self.ask("/", headers=[own])[0], 200)
        self.assertEqual(self.ask("/healthz", headers=[own])[0], 200)  # probes have no token
        self.assertEqual(self.ask("/readyz", headers=[own])[0], 503)
        self.assertEqual(self.ask("/api/v1/status", headers=[own])[0], 401)

    def test_speaks_tls(self):
        certificate, key = self.path / "certificate", self.path / "key"
        made = shutil.which("openssl") and subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
            capture_output=True, check=False)
        if not made or made.returncode != 0:
            self.skipTest("openssl makes no certificate here")
        self.assertIn("must be used together", self.refused("--tls-cert", str(certificate)))
        self.admin("--tls-cert", str(certificate), "--tls-key", str(key))
        self.assertTrue(self.url.startswith("https://"))
        trusting = ssl.create_default_context(cafile=str(certificate))
        with urllib.request.urlopen(self.url + "healthz", context=trusting, timeout=DEADLINE_S) as answer:
            self.assertEqual(answer.read(), b"ok\n")
        old = ssl.create_default_context(cafile=str(certificate))
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises(urllib.error.URLError):
            urllib.request.urlopen(self.url + "healthz", context=old, timeout=DEADLINE_S)
        name, port = self.host.split(":")
        with socket.create_connection((name, int(port)), timeout=DEADLINE_S) as plain:
            plain.sendall(f"GET /healthz HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
            self.assertNotIn(b"200", plain.recv(100))

    def test_a_key_that_is_none_is_refused(self):
        token, junk = self.token_file(), self.path / "junk"
        junk.write_text("no key\n")
        out = subprocess.run(
            [ADMIN, "--listen", "127.0.0.1:0", "--token-file", token, "--tls-cert", str(junk),
             "--tls-key", str(junk)], env=self.environment, capture_output=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(out.returncode, 3, out.stderr)

    def test_a_token_that_others_can_read_is_refused(self):
        self.assertIn("chmod 600", self.refused("--token-file", self.token_file(0o644)))
        short = self.path / "short"
        short.write_text("short")
        short.chmod(0o600)
        self.assertIn("16", self.refused("--token-file", str(short)))

    def test_host_must_be_exactly_ours(self):
        self.admin("--host", "node.example:1234")
        for host in ("evil.example", "127.0.0.1", self.host + "0", "localhost", ""):
            self.assertEqual(self.ask("/metrics", headers=[("Host", host)])[0], 421, host)
        self.assertEqual(self.ask("/metrics", headers=[("Host", "node.example:1234")])[0], 200)

    def test_other_sites_may_not_ask(self):
        self.admin("--token-file", self.token_file())
        evil = ("Origin", "http://evil.example")
        ours = ("Origin", f"http://{self.host}")
        cross = ("Sec-Fetch-Site", "cross-site")
        self.assertEqual(self.ask("/api/v1/status", headers=[evil])[0], 403)
        self.assertEqual(self.ask("/api/v1/status", headers=[("Origin", "null")])[0], 403)
        self.assertEqual(self.ask("/api/v1/status", headers=[ours])[0], 200)
        self.assertEqual(self.ask("/api/v1/status", headers=[cross])[0], 403)
        self.assertEqual(self.ask("/", headers=[cross, ("Sec-Fetch-Mode", "navigate")])[0], 200)
        navigate = [cross, ("Sec-Fetch-Mode", "navigate"), BEARER]
        self.assertEqual(self.ask("/api/v1/pause", "POST", navigate)[0], 403)

    def test_headers_that_contradict_each_other_are_refused(self):
        self.admin("--token-file", self.token_file())
        own = ("Host", self.host)
        for twice in (own, BEARER, ("Origin", f"http://{self.host}"), ("Content-Length", "0")):
            headers = [own, twice, twice] if twice is not own else [own, own]
            self.assertEqual(self.ask("/metrics", headers=headers)[0], 400, twice[0])
        both = [("Content-Length", "0"), ("Transfer-Encoding", "chunked")]
        self.assertEqual(self.ask("/api/v1/pause", "POST", [*both, BEARER])[0], 400)

    def test_bodies_and_long_headers_are_refused(self):
        self.admin("--token-file", self.token_file())
        self.assertEqual(self.ask("/api/v1/pause", "POST", [("Content-Length", "9"), BEARER])[0], 413)
        many = [(f"X-{i}", "x") for i in range(100)]
        self.assertEqual(self.ask("/metrics", headers=many)[0], 431)
        self.assertIn(self.ask("/metrics", headers=[("X-Long", "x" * 60000)])[0], (413, 431))

    def test_pages_may_run_nothing_but_their_own(self):
        self.admin()
        _, headers, body = self.ask("/")
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn("style=", body)
        self.assertNotIn("<script>", body)
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")

    def test_the_token_is_told_to_nobody(self):
        self.admin("--listen", "0.0.0.0:0", "--token-file", self.token_file(), "--behind-proxy")
        own = ("Host", self.host)
        for path in (f"/metrics?token={TOKEN}", f"/api/v1/status?access_token={TOKEN}"):
            status, headers, body = self.ask(path, headers=[own])
            self.assertEqual(status, 401, path)
            self.assertNotIn(TOKEN, str(headers) + body)
        self.assertEqual(self.ask("/metrics", headers=[own, BEARER])[0], 200)
        for shorter in (TOKEN[:-1], TOKEN + "x", "", TOKEN.upper()):
            wrong = ("Authorization", f"Bearer {shorter}")
            self.assertEqual(self.ask("/metrics", headers=[own, wrong])[0], 401)
        self.assertNotIn(TOKEN, (self.path / "admin-log").read_text())

    def test_so_many_connections_and_no_more(self):
        process = self.admin()
        name, port = self.host.split(":")
        idle = [socket.create_connection((name, int(port))) for _ in range(180)]
        self.assertLess(len(list(Path(f"/proc/{process.pid}/fd").iterdir())), 150)
        for connection in idle:
            connection.close()
        self.assertEqual(self.ask("/healthz")[0], 200)

    def test_a_request_that_never_ends_is_dropped(self):
        self.admin()
        name, port = self.host.split(":")
        with socket.create_connection((name, int(port)), timeout=DEADLINE_S) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
            while connection.recv(4096):  # at most a refusal, then the end
                pass

    def test_a_slow_client_does_not_hold_up_others(self):
        self.admin()
        name, port = self.host.split(":")
        slow = [socket.create_connection((name, int(port))) for _ in range(20)]
        for connection in slow:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        self.assertEqual(self.ask("/healthz")[0], 200)
        for connection in slow:
            connection.close()

    def test_names_forge_neither_log_lines_nor_metrics(self):
        forged = b'a"\n2026-01-01T00:00:00.000Z error forged: x\x1b[2J\xff'
        self.serve(self.pipeline(PLAIN, deliver="{epochs: null, rejoin: 100ms}"))
        self.admin()
        trainer = self.train("--delay-ms", "5", TUNDISH_GROUP=os.fsdecode(forged))
        report = self.wait_until(has_readers(1))
        self.assertIn("\\x0a", report["streams"][0]["readers"][0]["group"])
        metrics = self.ask("/metrics")[2]
        self.assertTrue(all(line[0] == "#" or line.startswith("tundish_") for line in metrics.splitlines()))
        trainer.kill()
        self.wait_until(lambda report: b"forged" in (self.path / "log").read_bytes())
        log = (self.path / "log").read_bytes()
        self.assertNotIn(b"\n2026-01-01", log)
        self.assertNotIn(b"\x1b", log)
        self.assertNotIn(b"\xff", log)

    def test_clients_that_send_a_byte_now_and_then_shut_nobody_out(self):
        self.admin()
        name, port = self.host.split(":")
        slow, over = [], threading.Event()

        def drip():
            while not over.wait(0.2):
                for connection in list(slow):
                    with contextlib.suppress(OSError):  # it was ended to make room
                        connection.sendall(b"x")

        for _ in range(300):
            slow.append(socket.create_connection((name, int(port)), timeout=DEADLINE_S))
            slow[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            for _ in range(3):
                self.assertEqual(self.ask("/healthz")[0], 200)
        finally:
            over.set()
            dripping.join()
            for connection in slow:
                connection.close()


if __name__ == "__main__":
    unittest.main()
