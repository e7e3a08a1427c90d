"""The services that give a machine or a container its credentials: Amazon's for instances (IMDSv2) and for
containers (ECS, EKS), and Google's. Each time they are asked they give others, which the store takes."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Metadata:
    def __init__(self, store, address="127.0.0.1"):
        self.store, self.address, self.lifetime_s = store, address, 3600
        self.token_file = None  # the container's, whose content must come with its requests
        self.issued = 0
        self.limit = None  # so many, and then none any more
        self.body = None  # instead of credentials
        self.asked = []  # (method, path, code)
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.server.metadata = self
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def host(self):
        return f"{self.address}:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def keys(self):
        number = self.issued
        key, secret, session = f"key-{number}", f"secret/{number}", f"session+{number}=="
        self.store.secrets[key] = secret, session
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lifetime_s))
        return {"Code": "Success", "AccessKeyId": key, "SecretAccessKey": secret,
                "Token": session, "Expiration": until}

    def bearer(self):
        token = f"bearer.{self.issued}"
        self.store.bearers.add(token)
        return {"access_token": token, "expires_in": self.lifetime_s, "token_type": "Bearer"}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_PUT(self):
        good = self.path == "/latest/api/token" and "X-aws-ec2-metadata-token-ttl-seconds" in self.headers
        self.answer(200 if good else 400, b"token of the session" if good else b"")

    def do_GET(self):
        metadata = self.server.metadata
        roles = "/latest/meta-data/iam/security-credentials/"
        if self.path.startswith(roles) and self.headers["X-aws-ec2-metadata-token"] != "token of the session":
            return self.answer(401, b"")
        if self.path == roles:
            return self.answer(200, b"role-of-the-test\n")
        if self.path == roles + "role-of-the-test":
            return self.issue(metadata.keys)
        if self.path == "/container":
            wanted = metadata.token_file.read_text().strip() if metadata.token_file else None
            good = self.headers["Authorization"] == wanted
            return self.issue(metadata.keys) if good else self.answer(403, b"")
        if self.path.startswith("/computeMetadata/v1/") and self.headers["Metadata-Flavor"] == "Google":
            return self.issue(metadata.bearer)
        return self.answer(404, b"")

    def issue(self, make):
        metadata = self.server.metadata
        with metadata.lock:
            if metadata.limit is not None and metadata.issued >= metadata.limit:
                return self.answer(500, b"")
            metadata.issued += 1
            body = metadata.body or json.dumps(make()).encode()
        return self.answer(200, body)

    def answer(self, code, body):
        self.server.metadata.asked.append((self.command, self.path, code))
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
