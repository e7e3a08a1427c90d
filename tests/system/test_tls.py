"""Files behind nginx, over TLS: the rows of local files, and why a server is not trusted."""

import os
import shutil
import signal
import socket
import subprocess
import unittest

from rig import batches, stop
from test_remote import LINES, RemoteRig, numbers

# Debian has it where a user's PATH does not look.
NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
OPENSSL = shutil.which("openssl")

CONFIGURATION = """
daemon off;
worker_processes 1;
{user}
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder};
    proxy_temp_path {folder};
    fastcgi_temp_path {folder};
    uwsgi_temp_path {folder};
    scgi_temp_path {folder};
    gzip on;
    gzip_types *;
    gzip_min_length 1;
    server {{
        listen 127.0.0.1:{plain};
        root {root};
    }}
    server {{
        listen 127.0.0.1:{secure} ssl;
        ssl_certificate {folder}/{certificate}.pem;
        ssl_certificate_key {folder}/server.key;
        root {root};
        location /down/ {{
            rewrite /down/(.*) http://localhost:{plain}/$1 redirect;
        }}
        location /away/ {{
            rewrite /away/(.*) https://localhost:{secure}/$1 redirect;
        }}
        location /bucket/ {{
            proxy_pass {store};
            proxy_set_header Host $http_host;
        }}
    }}
}}
"""


@unittest.skipIf(NGINX is None, "nginx is not installed (Debian: nginx-light)")
@unittest.skipIf(OPENSSL is None, "openssl is not installed")
class Tls(RemoteRig):
    def setUp(self):
        super().setUp()
        self.site = self.path / "site"
        self.site.mkdir()
        self.sockets = [self.listen(), self.listen()]
        self.plain, self.secure = (listener.getsockname()[1] for listener in self.sockets)
        self.make_certificates()
        self.environment.pop("CURL_CA_BUNDLE", None)
        self.environment["SSL_CERT_FILE"] = str(self.site / "authority.pem")
        self.put_numbers("a.txt", 2000)
        self.put_numbers("b.txt", 700, 2000)

    def listen(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        return listener

    def openssl(self, *words):
        subprocess.run([OPENSSL, *words], cwd=self.site, check=True, capture_output=True)

    def make_certificates(self):
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        self.openssl("req", "-x509", *key, "-keyout", "authority.key", "-out", "authority.pem",
                     "-subj", "/CN=authority of the test", "-days", "3650")
        self.openssl("req", *key, "-keyout", "server.key", "-out", "request.pem", "-subj", "/CN=server",
                     "-addext", "subjectAltName=DNS:localhost")
        for name, days in ("good", "3650"), ("expired", "-1"):
            self.openssl("x509", "-req", "-in", "request.pem", "-CA", "authority.pem",
                         "-CAkey", "authority.key", "-copy_extensions", "copy", "-days", days,
                         "-out", f"{name}.pem")

    def start_nginx(self, certificate="good"):
        """On sockets that are listened to already, so that it can end and come back."""
        user = "user root;" if os.geteuid() == 0 else ""  # the test's folder is for its owner only
        text = CONFIGURATION.format(folder=self.site, root=self.path, certificate=certificate, user=user,
                                    plain=self.plain, secure=self.secure, store=self.store.url)
        (self.site / "nginx.conf").write_text(text)
        files = [listener.fileno() for listener in self.sockets]
        command = [NGINX, "-p", self.site, "-c", self.site / "nginx.conf", "-e", self.site / "errors"]
        nginx = subprocess.Popen(command, pass_fds=files, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env=dict(os.environ, NGINX="".join(f"{file};" for file in files)))
        self.addCleanup(stop, nginx, signal.SIGTERM)  # with its worker
        return nginx

    def of(self, url):
        return self.stream([f"text_line: {{filenames: '{url}'}}", "batch: 9"])

    def test_files_are_read_over_tls(self):
        self.start_nginx()
        secure = f"https://localhost:{self.secure}"
        self.assert_same(LINES, secure, f"http://localhost:{self.plain}", f"{secure}/away")

    def test_a_store_is_read_over_tls_with_its_signatures(self):
        self.start_nginx()
        here = self.rows(self.stream([stage.replace("{}", str(self.path)) for stage in LINES]))
        file = self.stream([stage.replace("{}", "s3://bucket") for stage in LINES])
        with open(file) as text:
            there = text.read().replace(self.store.url, f"https://localhost:{self.secure}")
        with open(file, "w") as text:
            text.write(there)
        self.assertEqual(self.rows(file), here)
        self.assertTrue(self.store.requests)
        self.assertEqual(self.store.refused, [])

    def test_a_server_that_is_killed_and_comes_back_is_waited_for(self):
        stages = [*numbers("a.txt", "b.txt"), "batch: 16"]
        stages[0] = stages[0].replace("s3://bucket", f"https://localhost:{self.secure}")
        nginx = self.start_nginx()
        file = self.stream(stages, ", connections: 1, cache_bytes: 128KiB")
        expected = self.peek(file)[0]
        self.serve(file)
        trainer = self.read_paced()
        trainer.take(2)
        stop(nginx, signal.SIGTERM)
        self.start_nginx()
        self.assertEqual(batches(trainer.finish()), expected)

    def assert_refused(self, url, *parts):
        text = self.complaint(self.of(url))
        for part in (f"{url}: ", *parts):
            self.assertIn(part, text)

    def test_certificates_that_are_not_good_are_refused(self):
        secure = f"https://localhost:{self.secure}/a.txt"
        nginx = self.start_nginx("expired")
        self.assert_refused(secure, "expired", "renew the server's certificate", "a wrong clock")
        stop(nginx, signal.SIGTERM)
        self.start_nginx()
        # A good one, of another name.
        self.assert_refused(f"https://127.0.0.1:{self.secure}/a.txt",
                            "ask for the name that it is made out to")
        del self.environment["SSL_CERT_FILE"]
        self.assert_refused(secure, "give the file of its authority in SSL_CERT_FILE")
        self.environment["AWS_CA_BUNDLE"] = str(self.path / "none.pem")
        self.assert_refused(secure, "check AWS_CA_BUNDLE, CURL_CA_BUNDLE and SSL_CERT_FILE")

    def test_the_wrong_port_is_said_to_be_it(self):
        self.start_nginx()
        self.assert_refused(f"https://localhost:{self.plain}/a.txt",
                            "the server does not speak TLS at this port; write http://")
        self.assert_refused(f"http://localhost:{self.secure}/a.txt",
                            "the server answers 400", "check the name")

    def test_tls_is_not_left_by_a_redirect(self):
        self.start_nginx()
        self.assert_refused(f"https://localhost:{self.secure}/down/a.txt",
                            "are followed, and from https only to https")


if __name__ == "__main__":
    unittest.main()
