"""Servers that ask who is there: tokens, limits, and TLS with certificates of ROWFEED_TEST_TLS."""

import os
import sqlite3
import ssl
import threading
import unittest
from typing import Any, List

import rowfeed
from rowfeed import Backoff, Client, Consumer

from .running import KV, Server

INSERT = "INSERT INTO kv (v) VALUES ('a')"


class Never(Backoff):
    def pause(self, *_: Any) -> float:
        raise AssertionError("it is asked for again")


class Tokens(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server(self, KV, "CREATE TABLE other (id INTEGER PRIMARY KEY)")
        self.server.run("feed", "add", "other", "--table", "other")
        self.token = self.add("reader", "kv")
        self.server.restart("--auth", "tokens")

    def add(self, name: str, feed: str, rights: str = "read") -> str:
        return self.server.run("token", "add", name, "--feed", feed, "--right", rights).strip()

    def test_who_may_not_read_is_told_at_once(self) -> None:
        stranger = "rf_" + "A" * 43
        for token, feed, kind, status in (
            (None, "kv", rowfeed.Unauthorized, 401), (stranger, "kv", rowfeed.Unauthorized, 401), (self.token, "other", rowfeed.Forbidden, 403),
        ):
            client = Client(self.server.url, feed, token=token, backoff=Never())
            consumer = Consumer("mirror", client, lambda: sqlite3.connect(os.path.join(self.server.folder, "own.db")), lambda *_: None, backoff=Never())
            for read in (client.fetch, client.info, lambda: next(client.follow()), lambda: next(client.stream()), consumer.run):
                with self.assertRaises(kind) as refused:
                    read()
                self.assertEqual(refused.exception.status, status)
                self.assertTrue(refused.exception.next)
                for secret in (stranger, self.token):
                    self.assertNotIn(secret, str(refused.exception))
        with self.assertRaises(rowfeed.Forbidden):  # which publishes
            self.server.client(token=self.token).fetch(consistent=True)
        publisher = self.add("publisher", "kv", "read,publish")
        self.server.exec(INSERT)
        self.assertEqual(len(self.server.client(token=publisher).fetch(consistent=True, wait=60).entries), 1)

    def test_a_revoked_token_ends_a_stream_and_a_newer_one_goes_on(self) -> None:
        newer = self.add("newer", "kv")
        tokens, asked = [self.token], []

        def token() -> str:
            asked.append(tokens[-1])
            return tokens[-1]

        old, exchanged = self.server.client(token=self.token).stream(), self.server.client(token=token).stream()
        self.server.exec(INSERT)
        seen = [next(exchanged).entry.key["id"]]
        next(old)
        tokens.append(newer)
        self.server.run("token", "revoke", "reader")
        # An entry has the server ask whether the tokens still hold.
        with self.assertRaises(rowfeed.Unauthorized):
            while True:
                self.server.exec(INSERT)
                next(old)
        while newer not in asked:
            self.server.exec(INSERT)
            seen.append(next(exchanged).entry.key["id"])
        self.assertEqual(seen, list(range(1, len(seen) + 1)))

    def test_too_many_requests(self) -> None:
        self.server.restart("--auth", "tokens", "--rate", "0.001", "--burst", "1")
        client = self.server.client(token=self.token)
        client.fetch()
        with self.assertRaises(rowfeed.TooManyRequests) as refused:
            client.fetch()
        self.assertEqual(refused.exception.status, 429)
        assert refused.exception.retry_after is not None
        self.assertGreater(refused.exception.retry_after, 30)

        class Patience(threading.Event):
            """Waits for no clock, but for a server with other limits."""

            waited: List[float] = []

            def wait(patience, timeout: Any = None) -> bool:
                patience.waited.append(timeout)
                self.server.restart()
                self.server.exec(INSERT)
                return False

        self.assertEqual(next(client.follow(stop=Patience())).entries[0].key["id"], 1)
        self.assertGreater(Patience.waited[0], 30)


class Secure(unittest.TestCase):
    def file(self, name: str) -> str:
        return os.path.join(os.environ["ROWFEED_TEST_TLS"], name)

    def context(self, authority: str = "servers.pem", who: str = "") -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.file(authority))
        if who:
            context.load_cert_chain(self.file(who + ".pem"), self.file(who + "-key.pem"))
        return context

    def refused(self, server: Server, **settings: Any) -> None:
        with self.assertRaises(rowfeed.Unavailable) as refused:
            server.client(**settings).fetch()
        self.assertIn("no secure connection", refused.exception.cause)

    def test_authorities_of_servers_and_of_clients(self) -> None:
        server = Server(self)
        server.exec(INSERT)
        secure = ("--tls-cert", self.file("server.pem"), "--tls-key", self.file("server-key.pem"))
        server.restart(*secure)
        self.refused(server)
        self.refused(server, ssl_context=self.context("clients.pem"))
        with self.assertRaises(rowfeed.Unavailable):  # its certificate is of another name
            Client(server.url.replace("127.0.0.1", "localhost"), "kv", ssl_context=self.context()).fetch()
        client = server.client(ssl_context=self.context())
        self.assertEqual(len(client.fetch(consistent=True, wait=60).entries), 1)
        self.assertEqual(next(client.stream()).entry.key["id"], 1)

        server.restart(*secure, "--tls-client-ca", self.file("clients.pem"))
        self.refused(server, ssl_context=self.context())
        self.refused(server, ssl_context=self.context(who="server"))  # of another authority
        self.assertEqual(len(server.client(ssl_context=self.context(who="client")).fetch().entries), 1)
