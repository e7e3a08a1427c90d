"""A store of objects that fails on purpose: S3's lists, ranges and signatures, and HTTP's."""

import functools
import hashlib
import hmac
import re
import signal
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, unquote_plus
from xml.sax.saxutils import escape

ACCESS_KEY, SECRET = "key-of-the-test", "secret:of/the+test"
REGION = "nowhere-1"


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # connections beyond it would try again after a second


class Store:
    """Objects by /BUCKET/KEY, served until close. `fail` makes the next answers go wrong."""

    def __init__(self, is_signed=False, page=1000):
        self.objects = {}
        self.sorted = {}
        self.is_signed, self.page = is_signed, page
        self.ranges = True  # else whole objects only
        self.tails = True  # ranges that are the last bytes
        self.totals = True  # else a range's answer does not tell the object's size
        self.ending = "length"  # of bodies; or "chunks", or "close": with the connection
        self.sent_part = 8 << 20  # of larger objects: their ETags tell
        self.tags = True  # else neither ETag nor Last-Modified
        self.delay_s = 0  # before each answer
        self.hold = None  # called with the method, before each answer
        self.link = None  # which bodies go through, if it is slow
        self.lock = threading.Lock()
        self.faults = []
        self.secrets = {ACCESS_KEY: (SECRET, None)}  # and sessions, by access key
        self.bearers = set()  # tokens that do instead of signatures
        self.signers = set()  # whose requests were taken
        self.uses_left = {}  # of access keys that expire, how many requests are taken yet
        self.requests = []  # (method, target, range) of all that came
        self.refused = []  # what the verifier of signatures said
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # connections that were cut
        self.server.store = self
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def put(self, path, data):
        self.objects[path] = data

    def tag(self, data):
        return tag_of(data, self.sent_part)

    def keys(self, bucket):
        """Sorted, and kept until another object comes."""
        if self.sorted.get(bucket, (0,))[0] != len(self.objects):
            names = sorted(name.split("/", 2)[2] for name in list(self.objects)
                           if name.startswith(f"/{bucket}/"))
            self.sorted[bucket] = len(self.objects), names
        return self.sorted[bucket][1]

    def fail(self, kind, times=1, contains="", value=None):
        """The next `times` answers about objects whose target contains that go wrong so."""
        with self.lock:
            self.faults.append([kind, times, contains, value])

    def slow_after(self, count, contains, event):
        """One answer hangs after so many."""
        self.fail("none", count, contains)
        self.fail("hang", 1, contains, event)

    def take_fault(self, target):
        with self.lock:
            for fault in self.faults:
                if fault[1] > 0 and fault[2] in target:
                    fault[1] -= 1
                    return fault[0], fault[3]
        return None, None

    def is_expired(self, header):
        key = re.search("Credential=([^/]*)", header)
        with self.lock:
            if key is None or key[1] not in self.uses_left:
                return False
            self.uses_left[key[1]] -= 1
            return self.uses_left[key[1]] < 0

    def left(self):
        """Faults that nobody has met."""
        return [fault for fault in self.faults if fault[1] > 0 and fault[1] < 1000]


@functools.lru_cache(maxsize=4096)
def tag_of(data, part):
    """Large objects as clients send them, in parts."""
    if len(data) < part:
        return f'"{hashlib.md5(data).hexdigest()}"'
    parts = [hashlib.md5(data[i : i + part]).digest() for i in range(0, len(data), part)]
    return f'"{hashlib.md5(b"".join(parts)).hexdigest()}-{len(parts)}"'


class Link:
    """So many bytes a second for all connections together."""

    PIECE = 128 << 10

    def __init__(self, rate):
        self.rate, self.lock, self.free_at = rate, threading.Lock(), 0.0

    def send(self, connection, body):
        view = memoryview(body)
        for begin in range(0, len(view), self.PIECE):
            piece = view[begin : begin + self.PIECE]
            with self.lock:
                now = time.monotonic()
                at = max(self.free_at, now)
                self.free_at = at + len(piece) / self.rate
            if at - now > 0.002:
                time.sleep(at - now)
            connection.sendall(piece)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        store = self.server.store
        time.sleep(store.delay_s)
        if store.hold is not None:
            store.hold(self.command)
        self.range = self.headers.get("Range", "")
        store.requests.append((self.command, self.path, self.range))
        kind, value = store.take_fault(self.path)
        if kind == "redirect":
            return self.answer(302, b"", {"Location": value})
        if kind == "header":
            return self.answer(200, b"", {"X-Long": "x" * value})
        if kind == "status":
            return self.refuse(*value)
        if store.is_signed and store.is_expired(self.headers.get("Authorization", "")):
            return self.refuse(400, "ExpiredToken", {})
        if store.is_signed and (problem := verify(self)) is not None:
            store.refused.append(problem)
            return self.refuse(403, "SignatureDoesNotMatch", {})
        path, _, query = self.path.partition("?")
        if "list-type=2" in query:
            return self.list(unquote(path), query)
        data = store.objects.get(unquote(path))
        if data is None:
            return self.refuse(404, "NoSuchKey", {})
        return self.send(data, kind, value)

    def refuse(self, code, name, headers):
        body = f"<?xml version='1.0'?><Error><Code>{name}</Code><Message>no</Message></Error>".encode()
        self.answer(code, body, headers)

    def answer(self, code, body, headers):
        ending = self.server.store.ending if code in (200, 206) else "length"
        how = {"length": ("Content-Length", len(body)), "chunks": ("Transfer-Encoding", "chunked"),
               "close": ("Connection", "close")}[ending]
        self.send_response(code)
        for name, value in [how, *headers.items()]:
            self.send_header(name, str(value))
        self.end_headers()
        if ending == "chunks":
            cut = len(body) // 3
            pieces = [piece for piece in (body[:cut], body[cut:]) if piece]
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        if self.command == "GET" and self.server.store.link is not None:
            self.server.store.link.send(self.connection, body)
        elif self.command == "GET":
            self.wfile.write(body)

    def send(self, data, kind, value):
        store = self.server.store
        headers = {"ETag": store.tag(data), "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        if not store.tags:
            headers = {}
        if store.tags and self.headers.get("If-Match", store.tag(data)) != store.tag(data):
            return self.refuse(412, "PreconditionFailed", {})
        if not self.range or not store.ranges:
            return self.answer(200, data, headers)
        first, last = self.range.removeprefix("bytes=").split("-")
        if first == "" and store.tails:
            first, last = max(len(data) - int(last), 0), len(data) - 1
        elif first == "":
            return self.answer(200, data, headers)
        first, last = int(first), min(int(last or len(data)), len(data) - 1)
        if first >= len(data):
            return self.refuse(416, "InvalidRange", headers)
        if kind == "wrong_range":
            first, last = max(first - 1, 0), last - 1
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data) if store.totals else '*'}"
        body = data[first : last + 1]
        if kind == "replace":
            store.objects[unquote(self.path)] = value
        if kind in ("reset", "short", "replace"):
            return self.break_off(body, headers, kind)
        if kind == "hang":
            return self.hang(body, headers, value)
        return self.answer(206, body, headers)

    def begin(self, body, headers):
        self.send_response(206)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()

    def break_off(self, body, headers, kind):
        self.begin(body, headers)
        self.wfile.write(body[: len(body) // 2])
        self.wfile.flush()
        self.close_connection = True
        if kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def hang(self, body, headers, event):
        """Half of the body, and no end."""
        self.begin(body, headers)
        self.wfile.write(body[: len(body) // 2])
        self.wfile.flush()
        event.wait(60)
        self.close_connection = True

    def list(self, path, query):
        store = self.server.store
        words = dict(word.split("=", 1) for word in query.split("&"))
        bucket, prefix = path.strip("/"), unquote_plus(words["prefix"])
        keys = store.keys(bucket)
        if not keys:
            return self.refuse(404, "NoSuchBucket", {})
        keys = [key for key in keys if key.startswith(prefix)]
        if "delimiter" in words:
            keys = [key for key in keys if "/" not in key[len(prefix) :]]
        begin = int(unquote(words.get("continuation-token", "0/+")).split("/")[0])
        page, rest = keys[begin : begin + store.page], keys[begin + store.page :]
        lines = "".join(self.entry(f"/{bucket}/{key}", key) for key in page)
        if rest:
            lines += f"<NextContinuationToken>{begin + store.page}/+=</NextContinuationToken>"
        body = (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<EncodingType>url</EncodingType><IsTruncated>{'true' if rest else 'false'}</IsTruncated>"
            f"{lines}</ListBucketResult>"
        )
        return self.answer(200, body.encode(), {})

    def entry(self, path, key):
        data = self.server.store.objects[path]
        return (
            f"<Contents><Key>{quote(key, safe='/')}</Key><ETag>{escape(self.server.store.tag(data))}</ETag>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified><StorageClass>STANDARD</StorageClass>"
            f"<Size>{len(data)}</Size></Contents>"
        )


def verify(request):
    """What is wrong with the signature, or None. From the text of Amazon's Signature Version 4."""
    header = request.headers.get("Authorization", "")
    store = request.server.store
    if header.removeprefix("Bearer ") in store.bearers:
        store.signers.add(header.removeprefix("Bearer "))
        return None
    if not header.startswith("AWS4-HMAC-SHA256 "):
        return f"{request.path}: not signed"
    words = dict(word.strip().split("=", 1) for word in header[len("AWS4-HMAC-SHA256 ") :].split(","))
    access_key, scope = words["Credential"].split("/", 1)
    secret, session = store.secrets.get(access_key, (None, None))
    if secret is None or request.headers.get("X-Amz-Security-Token") != session or scope.split("/")[1:] != [REGION, "s3", "aws4_request"]:
        return f"{request.path}: signed as {words['Credential']}"
    path, _, query = request.path.partition("?")
    pairs = (word.partition("=") for word in query.split("&") if word)
    pairs = sorted((quote(unquote(a), safe="-_.~"), quote(unquote(b), safe="-_.~")) for a, _, b in pairs)
    signed = words["SignedHeaders"].split(";")
    lines = "".join(f"{name}:{' '.join(request.headers[name].split())}\n" for name in signed)
    canonical = "\n".join(
        [
            request.command,
            quote(unquote(path), safe="/-_.~"),
            "&".join(f"{a}={b}" for a, b in pairs),
            lines,
            ";".join(signed),
            request.headers.get("x-amz-content-sha256", hashlib.sha256(b"").hexdigest()),
        ]
    )
    text = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            request.headers["X-Amz-Date"],
            scope,
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    expected = hmac.new(key, text.encode(), "sha256").hexdigest()
    if not hmac.compare_digest(expected, words["Signature"]):
        return f"{request.path}: {canonical!r}"
    store.signers.add(access_key)
    return None


def main():
    """store.py FOLDER BUCKET [DELAY_MS BYTES_A_SECOND]: serve the folder's files, and print address, key,
    secret and region; with the last two every answer comes so late, over a link that carries so much."""
    folder, bucket = Path(sys.argv[1]), sys.argv[2]
    store = Store(is_signed=True)
    for file in folder.rglob("*"):
        if file.is_file():
            store.put(f"/{bucket}/{file.relative_to(folder)}", file.read_bytes())
            store.tag(store.objects[f"/{bucket}/{file.relative_to(folder)}"])
    if len(sys.argv) > 3:
        store.delay_s, store.link = float(sys.argv[3]) / 1000, Link(float(sys.argv[4]))
        store.is_signed = False
    print(store.url, ACCESS_KEY, SECRET, REGION, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
