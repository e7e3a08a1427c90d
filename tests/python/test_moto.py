"""Files in a store that others wrote, moto, which lists in pages and checks signatures by botocore's rules."""

import json
import logging
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

import rig

# moto reads it once: so many calls, which make a user and its key, need no signature.
CALLS_WITHOUT_SIGNATURE = 3
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = str(CALLS_WITHOUT_SIGNATURE)
PAGE = 20  # of the keys of a listing; a caller that names no number gets 1,000 of S3
os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = str(PAGE)

try:
    import boto3
    from moto.server import ThreadedMotoServer
except ImportError:
    boto3 = None

REGION = "us-east-1"
EVERYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}


@unittest.skipIf(boto3 is None, "moto and boto3 are not installed")
class Moto(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        cls.server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        cls.url = "http://{}:{}".format(*cls.server.get_host_and_port())
        cls.key, cls.secret = cls.make_key()
        cls.store = cls.client("s3", cls.key, cls.secret)
        cls.store.create_bucket(Bucket="rows")

    @classmethod
    def client(cls, service, key, secret):
        return boto3.client(
            service, endpoint_url=cls.url, region_name=REGION, aws_access_key_id=key, aws_secret_access_key=secret
        )

    @classmethod
    def make_key(cls):
        iam = cls.client("iam", "any", "any")
        iam.create_user(UserName="trainer")
        key = iam.create_access_key(UserName="trainer")["AccessKey"]
        policy = json.dumps({"Version": "2012-10-17", "Statement": [EVERYTHING]})
        iam.put_user_policy(UserName="trainer", PolicyName="all", PolicyDocument=policy)
        return key["AccessKeyId"], key["SecretAccessKey"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tundish-moto-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def put(self, names):
        """Files here and in the store, not in the order of their names. Each has its name twice."""
        for name in random.Random(1).sample(names, len(names)):
            body = f"{name} 1\n{name} 2\n".encode()
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(body)
            self.store.put_object(Bucket="rows", Key=name, Body=body)

    def peek(self, place, pattern, secret=None):
        """The batches of the files of a pattern."""
        file = self.folder / "case.yaml"
        file.write_text(
            f"remote: {{endpoint: '{self.url}', region: {REGION}}}\n"
            + rig.pipeline(
                f'list_files: {{file_pattern: "{place}/{pattern}", shuffle: false}}',
                "interleave: {dataset: [text_line], cycle_length: 1}",
                "batch: 64",
            )
        )
        keys = {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": secret or self.secret}
        done = subprocess.run(
            [rig.TUNDISH, "peek", "--raw", str(file)], env={**os.environ, **keys}, capture_output=True, check=False,
            timeout=rig.DEADLINE_S,
        )
        return done.stdout

    def assert_same(self, pattern, count):
        here = self.peek(self.folder, pattern)
        self.assertEqual(here.count(b".txt "), 2 * count)
        self.assertEqual(self.peek("s3://rows", pattern), here)

    def test_lists_files_page_by_page(self):
        count = 2 * PAGE + 10
        self.put([f"many/part-{n}.txt" for n in range(count)] + ["many/readme.md", "many/more/part-1.txt"])
        page = self.store.list_objects_v2(Bucket="rows", Prefix="many/part-")
        self.assertEqual((page["KeyCount"], page["IsTruncated"]), (PAGE, True))
        self.assert_same("many/part-*.txt", count)

    def test_takes_the_signature_of_any_name(self):
        self.put([f"odd names/ü={n} + (x)~!'&$@,;:%2F é.txt" for n in range(5)])
        self.assert_same("odd names/*=*.txt", 5)

    def test_refuses_another_secret(self):
        self.put(["one.txt"])
        self.assertIn(b"SignatureDoesNotMatch", self.peek("s3://rows", "one.txt", secret="wrong"))
        self.assertNotIn(b"SignatureDoesNotMatch", self.peek("s3://rows", "one.txt"))
