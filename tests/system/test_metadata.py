"""Credentials of the machine and of the container: found, renewed while rows are read, and missed."""

import unittest

from metadata import Metadata
from test_remote import RemoteRig, numbers


class MachineCredentials(RemoteRig):
    """Those that expire within five minutes are renewed with each request, others stay."""

    SHORT_S = 200

    def setUp(self):
        super().setUp()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"):
            del self.environment[name]
        self.store.secrets.clear()
        self.metadata = Metadata(self.store)
        self.addCleanup(self.metadata.close)
        # Those that a test does not ask for answer nobody.
        self.environment.update(AWS_EC2_METADATA_SERVICE_ENDPOINT="http://127.0.0.1:9",
                                GCE_METADATA_HOST="127.0.0.1:9")
        for i, name in enumerate("abc"):
            self.put_numbers(f"{name}.txt", 1500, 10000 * i)

    def of_container(self, token=None):
        self.environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = f"http://{self.metadata.host}/container"
        if token is not None:
            self.metadata.token_file = self.path / "token"
            self.metadata.token_file.write_text(token)
            self.environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = str(self.metadata.token_file)

    def of_instance(self):
        self.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = f"http://{self.metadata.host}"

    def of_google(self):
        self.environment["GCE_METADATA_HOST"] = self.metadata.host

    def assert_read(self, scheme="s3"):
        stages = [stage.replace("s3://", f"{scheme}://") for stage in numbers("a.txt", "b.txt", "c.txt")]
        got = self.peek(self.stream([*stages, "batch: 50"]))[0]
        self.assertEqual([value for _, _, values in got for value in values],
                         [10000 * i + n for i in range(3) for n in range(1500)])
        self.assertEqual(self.store.refused, [])

    def test_of_a_container_are_asked_for_once(self):
        self.of_container("token of the platform\n")
        self.assert_read()
        self.assertEqual(self.store.signers, {"key-1"})
        self.assertEqual(self.metadata.issued, 1)

    def test_of_an_instance_are_asked_for_with_a_token(self):
        self.of_instance()
        self.assert_read()
        self.assertEqual(self.store.signers, {"key-1"})
        self.assertEqual([code for _, _, code in self.metadata.asked], [200, 200, 200])

    def test_of_a_machine_at_google_are_a_bearer_s(self):
        self.of_google()
        self.assert_read("gs")
        self.assertEqual(self.store.signers, {"bearer.1"})

    def test_that_expire_are_renewed_in_mid_epoch(self):
        self.metadata.lifetime_s = self.SHORT_S
        for where, scheme, name in ((self.of_google, "gs", "bearer."), (self.of_instance, "s3", "key-"),
                                    (self.of_container, "s3", "key-")):
            self.store.signers.clear()
            where()
            self.assert_read(scheme)
            self.assertGreater(len(self.store.signers), 8)  # of nine parts and what was looked at
            self.assertTrue(all(signer.startswith(name) for signer in self.store.signers))

    def test_that_the_store_calls_expired_are_asked_for_anew(self):
        self.of_container()
        self.store.uses_left["key-1"] = 2
        self.assert_read()
        self.assertEqual(self.store.signers, {"key-1", "key-2"})

    def test_new_ones_that_the_store_calls_expired_are_told(self):
        self.of_container()
        self.store.fail("status", 999, "b.txt", (400, "ExpiredToken", {}))
        self.assertIn("the credentials have expired", self.complaint(
            self.stream([*numbers("a.txt", "b.txt", "c.txt"), "batch: 50"])))

    def test_that_cannot_be_renewed_do_as_long_as_the_store_takes_them(self):
        self.of_container()
        self.metadata.lifetime_s, self.metadata.limit = self.SHORT_S, 2
        self.assert_read()
        self.assertEqual(self.store.signers, {"key-1", "key-2"})
        self.assertGreater(len([code for _, _, code in self.metadata.asked if code == 500]), 3)

    def test_the_token_of_a_container_is_read_anew_from_its_file(self):
        self.of_container("first")
        self.metadata.lifetime_s = self.SHORT_S
        self.metadata.keys = self.renewing(self.metadata.keys)
        self.assert_read()
        self.assertNotIn(403, [code for _, _, code in self.metadata.asked])
        self.assertGreater(self.metadata.issued, 3)

    def renewing(self, keys):
        """The platform writes another token after each answer."""
        def renew():
            self.metadata.token_file.write_text(f"token {self.metadata.issued}")
            return keys()
        return renew

    def test_a_wrong_token_leaves_requests_unsigned(self):
        self.of_container("right")
        self.environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = str(self.path / "none")
        self.environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "wrong"
        self.complain()
        self.assertEqual(self.metadata.issued, 0)

    def complain(self):
        file = self.stream([*numbers("a.txt"), "batch: 50"])
        self.assertIn("SignatureDoesNotMatch", self.complaint(file))
        self.assertIn("not signed", self.store.refused[0])
        self.assertEqual(self.store.signers, set())

    def test_answers_without_sense_leave_requests_unsigned(self):
        self.of_container()
        for body in (b"{", b'{"AccessKeyId": "a"}', b'{"AccessKeyId": "a', b"x" * 100000,
                     b'{"AccessKeyId": {}, "SecretAccessKey": ["b"]}', b"\0" * 50):
            self.metadata.body = body
            self.complain()

    def test_a_container_s_token_goes_to_no_other_machine(self):
        self.metadata = Metadata(self.store, "127.0.0.2")
        self.addCleanup(self.metadata.close)
        self.of_container("secret")
        self.complain()
        self.assertEqual(self.metadata.asked, [])


if __name__ == "__main__":
    unittest.main()
