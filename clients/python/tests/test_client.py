import gzip
import http.server
import math
import os
import tempfile
import threading
import unittest
from typing import Any, List

import rowfeed
from rowfeed import Client, Error, InvalidRequest

from .running import KV, LONG, Server, running

MOST, LEAST = 2**63 - 1, -(2**63)


class Values(unittest.TestCase):
    def test_every_type_comes_as_it_is(self) -> None:
        server = Server(self, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, f REAL, s TEXT, b BLOB, x ANY, d DECIMAL(30,10), j JSON, yes BOOLEAN)", feeds="t --table t")
        import sqlite3

        rows: List[Any] = [
            (LEAST, MOST, math.inf, "\u2028é😀\"\\\x00", b"\x00\xff", MOST, "12345678901234567890.0123456789", '{"n":9007199254740993}', True),
            (0, LEAST, 1.0, "", b"", b"\x01", "0.5", "[1,2]", False),
            (MOST, 2**53 + 1, -0.0, "null", None, 1.5, None, None, None),
        ]
        db = sqlite3.connect(server.path)
        with db:
            db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            db.execute("INSERT INTO t (id, s, x) VALUES (5, CAST(x'c328' AS TEXT), CAST(x'c328' AS TEXT))")
        want = {row[0]: row for row in db.execute("SELECT id, n, f, s, b, x FROM t WHERE id <> 5")}
        db.close()
        page = server.client("t", decode=True).fetch(consistent=True, wait=60)
        got = {e.key["id"]: e.row for e in page.entries}
        self.assertEqual(set(got), {LEAST, 0, MOST, 5})
        for id, row in want.items():
            values = got[id]
            assert values is not None
            self.assertEqual(tuple(values[c] for c in ("id", "n", "f", "s", "b", "x")), row)
            self.assertEqual([type(values[c]) for c in ("n", "f", "b", "x")], [type(v) for v in (row[1], row[2], row[4], row[5])])
        odd = got[5]
        assert odd is not None
        self.assertEqual(odd["s"].encode("utf-8", "surrogateescape"), b"\xc3\x28")
        self.assertEqual(odd["x"].encode("utf-8", "surrogateescape"), b"\xc3\x28")
        travelling = server.client("t").fetch()
        self.assertIn("b", travelling.base64)
        first = [e.row for e in travelling.entries if e.key["id"] == LEAST][0]
        assert first is not None
        self.assertEqual((first["b"], first["f"], first["n"]), ("AP8=", {"$float": "Infinity"}, MOST))
        # The same, one by one.
        stream = server.client("t", decode=True).stream()
        streamed = {}
        for event in stream:
            streamed[event.entry.key["id"]] = event.entry.row
            if event.cursor == page.cursor:
                stream.close()
        self.assertEqual(streamed, got)

    def test_columns_that_change_are_read_by_their_new_types(self) -> None:
        server = Server(self, "CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)", "INSERT INTO kv VALUES (1, 'AA==')")
        client = server.client(decode=True)
        self.assertEqual(client.fetch(consistent=True, wait=60).entries[0].row, {"id": 1, "v": "AA=="})
        server.exec("ALTER TABLE kv DROP COLUMN v", "ALTER TABLE kv ADD COLUMN v BLOB", "UPDATE kv SET v = x'00'")
        self.assertEqual(client.fetch(consistent=True, wait=60).entries[0].row, {"id": 1, "v": b"\0"})

    def test_typed_values_of_documents_are_the_documents_own(self) -> None:
        self.assertEqual(rowfeed.decode_value("json", {"$float": "NaN"}), {"$float": "NaN"})
        self.assertEqual(rowfeed.decode_value("json", {"$json": {"$binary": "AA=="}}), {"$binary": "AA=="})
        self.assertTrue(math.isnan(rowfeed.decode_value("dynamic", {"$float": "NaN"})))
        self.assertEqual(rowfeed.decode_value("binary", {"$text": "x"}), "x")


class Fetching(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server(self, feeds="kv --table kv --data-shards 8")
        self.client = self.server.client()

    def write(self, first: int, last: int) -> None:
        self.server.exec(f"WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}) INSERT INTO kv SELECT i, 'v' FROM n")

    def test_pages_parts_and_places(self) -> None:
        self.assertEqual(self.client.fetch().cursor, "")
        self.write(1, 25)
        self.client.fetch(consistent=True, wait=60)
        pages = list(self.client.pages(limit=10))
        self.assertEqual([len(p.entries) for p in pages], [10, 10, 5])
        self.assertEqual([e.key["id"] for p in pages for e in p.entries], list(range(1, 26)))
        head = pages[-1].cursor
        empty = self.client.fetch(head)
        self.assertEqual((empty.entries, empty.cursor, empty.more), ([], head, False))
        self.assertEqual(self.client.fetch("now").cursor, head)
        self.assertEqual(len(self.client.fetch("at:2020-01-01T00:00:00+02:00").entries), 25)
        parts = [e.key["id"] for i in range(3) for e in self.client.fetch(shard=i, shard_count=3).entries]
        self.assertEqual(sorted(parts), list(range(1, 26)))
        info = self.client.info()
        self.assertEqual((info.name, info.head, info.data_shards, [c.name for c in info.key]), ("kv", head, 8, ["id"]))

    def test_waiting_ends_with_an_entry(self) -> None:
        waiting: List[Any] = []
        end = running(self, lambda: waiting.append(self.client.fetch(wait=60)))
        self.write(1, 1)
        self.assertEqual(end(), [])
        self.assertEqual([e.key["id"] for e in waiting[0].entries], [1])

    def test_following_outlives_the_server(self) -> None:
        seen, known = [], threading.Event()
        stop = threading.Event()

        def follow() -> None:
            for page in self.client.follow(limit=7, stop=stop):
                seen.extend(e.key["id"] for e in page.entries)
                known.set()

        streamed, streaming = [], self.server.client().stream()

        def stream() -> None:
            for event in streaming:
                streamed.append(event.entry.key["id"])
                if event.entry.key["id"] == 60:
                    return

        end_following = running(self, follow, stop=lambda: (stop.set(), self.client.interrupt()))
        end_streaming = running(self, stream)
        self.write(1, 30)
        self.assertTrue(known.wait(LONG))
        self.server.kill()
        self.write(31, 60)
        self.server.start()
        self.assertEqual(end_streaming(), [])
        while len(seen) < 60 and known.wait(LONG):
            known.clear()
        self.assertEqual(end_following(), [])
        self.assertEqual((seen, streamed), (list(range(1, 61)), list(range(1, 61))))

    def test_a_kept_connection_that_the_server_closed(self) -> None:
        self.client.fetch()
        self.server.kill()
        with self.assertRaises(rowfeed.Unavailable):
            self.client.fetch()
        self.server.start()
        self.client.fetch()
        self.server.kill()
        self.server.start()
        self.assertEqual(self.client.fetch().entries, [])

    def test_compressed(self) -> None:
        self.write(1, 500)
        self.client._transport._encoding = "gzip"  # which a client on the same machine does not ask for
        page = self.client.fetch(limit=1000, consistent=True, wait=60)
        self.assertEqual(len(page.entries), 500)
        self.client._max_bytes = 2000
        with self.assertRaises(Error) as caught:
            self.client.fetch(limit=1000)
        self.assertEqual(caught.exception.code, "failed")


class Cursors(unittest.TestCase):
    def test_what_consumers_know_of_a_cursor(self) -> None:
        from rowfeed.cursor import at_beginning, generation_of, in_pass

        #               generation, at the beginning, in a pass
        for cursor, want in {
            "": (0, True, True), "0": (0, True, True), "0.7k3f2c7adq": (0, True, True), "0~7.7k3f2c7adq": (1, False, False),
            "42": (1, False, False), "42.7k3f2c7adq": (1, False, False), "10~60.7k3f2c7adq": (1, False, False), "10@42": (1, False, True),
            "10@42.7k3f2c7adq": (1, False, True), "10@42~60.7k3f2c7adq": (1, False, True), "0@42~60.7k3f2c7adq": (1, False, True),
            "9@10.v": (1, False, True), "10@10~60.v": (1, False, False), "1785000000:42.v": (1785000000, False, False),
            "1785000000:9@10~60.v": (1785000000, False, True), "2:01ARZ3NDEKTSV4RRFFQ69G5FAV": (2, False, False),
            "01ARZ3NDEKTSV4RRFFQ69G5FAV@01BX5ZZKBKACTAV9WEVGEMMVRZ": (1, False, True), "now": (0, False, False),
            "at:2026-01-31T12:00:00.5Z": (0, False, False),
        }.items():
            self.assertEqual((generation_of(cursor), at_beginning(cursor), in_pass(cursor)), want, cursor)


class Problems(unittest.TestCase):
    def test_refusals_are_told_apart(self) -> None:
        server = Server(self, KV, "INSERT INTO kv VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        client = server.client()
        client.fetch(consistent=True, wait=60)
        with self.assertRaises(InvalidRequest) as bad:
            client.fetch(limit=10**6)
        self.assertEqual((bad.exception.parameter, bad.exception.status, bad.exception.feed), ("limit", 400, "kv"))
        with self.assertRaises(rowfeed.UnknownFeed):
            server.client("nothing").fetch()
        for read in (lambda: client.fetch("9"), lambda: next(client.stream("9")), lambda: next(client.follow("9"))):
            with self.assertRaises(rowfeed.CursorAhead) as ahead:
                read()
            self.assertEqual((ahead.exception.code, ahead.exception.status), ("cursor-ahead", 409))
            self.assertIn("Next:", str(ahead.exception))
        with self.assertRaises(rowfeed.HistoryLost) as lost:
            client.fetch("3.1000000000")  # of a term that this database never had
        self.assertEqual((lost.exception.code, lost.exception.status), ("history-lost", 409))
        self.assertIsInstance(lost.exception, rowfeed.CursorRefused)
        server.exec("UPDATE rowfeed_feeds SET tombstones_below = 2")
        with self.assertRaises(rowfeed.TombstonesExpired):
            client.fetch("1")
        server.run("feed", "bump", "kv")
        with self.assertRaises(rowfeed.GenerationChanged) as changed:
            client.fetch("3")
        self.assertTrue(changed.exception.next)

    def test_no_server_and_no_rowfeed(self) -> None:
        with self.assertRaises(rowfeed.Unavailable):
            Client("http://127.0.0.1:1", "kv").fetch()
        for url in ("ftp://x", "nothing", "http://a:b:c"):
            with self.assertRaises(InvalidRequest):
                Client(url, "kv")
        self.assertNotIn("secret", repr(Client("http://me:secret@127.0.0.1:1", "kv", token="rf_secret")))


class Stranger(http.server.BaseHTTPRequestHandler):
    """Answers what it is told to, and keeps the headers of requests."""

    protocol_version = "HTTP/1.1"
    answers: List[Any] = []
    asked: List[Any] = []

    def do_GET(self) -> None:
        type(self).asked.append((self.path, dict(self.headers)))
        status, header, body = type(self).answers.pop(0)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **header}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


PAGE = b'{"feed":"kv","entries":[],"cursor":"1","more":false,"base64":[]}'
JSON = {"Content-Type": "application/json"}


class Requests(unittest.TestCase):
    def setUp(self) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}/below"
        Stranger.answers, Stranger.asked = [], []

    def test_tokens(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".token") as file:
            file.write("rf_file\n")
            file.flush()
            os.environ["ROWFEED_TEST_TOKEN"] = "rf_env"
            for token, want in (("rf_value", "rf_value"), ("env:ROWFEED_TEST_TOKEN", "rf_env"), ("file:" + file.name, "rf_file"), (lambda: "rf_call", "rf_call")):
                Stranger.answers = [(200, JSON, PAGE)]
                Client(self.url, "kv", token=token).fetch()  # type: ignore[arg-type]
                path, header = Stranger.asked.pop()
                self.assertEqual((path, header["Authorization"]), ("/below/_feeds/fetch/kv", "Bearer " + want))
        with self.assertRaises(InvalidRequest) as bad:
            Client(self.url, "kv", token="rf_a\r\nX: y").fetch()
        self.assertNotIn("rf_a", str(bad.exception))

    def test_a_refused_token_is_asked_for_once_more(self) -> None:
        problem = b'{"type":"urn:rowfeed:problem:unauthorized","detail":"who are you?","next":"send a token"}'
        refusal = (401, {"Content-Type": "application/problem+json"}, problem)
        tokens = iter(["rf_old", "rf_new"])
        Stranger.answers = [refusal, (200, JSON, PAGE)]
        self.assertEqual(Client(self.url, "kv", token=lambda: next(tokens)).fetch().cursor, "1")
        Stranger.answers = [refusal]
        with self.assertRaises(rowfeed.Unauthorized):
            Client(self.url, "kv", token="rf_old").fetch()

    def test_what_a_server_asks_for_is_waited_for(self) -> None:
        busy = b'{"type":"urn:rowfeed:problem:too-many-requests","detail":"too many"}'
        refusal = (429, {"Content-Type": "application/problem+json", "Retry-After": "7"}, busy)
        Stranger.answers = [refusal]
        with self.assertRaises(rowfeed.TooManyRequests) as caught:
            Client(self.url, "kv").fetch()
        self.assertEqual(caught.exception.retry_after, 7)
        Stranger.answers = [refusal, (502, {}, b""), (200, JSON, PAGE)]
        stop = Patience()
        self.assertEqual(next(Client(self.url, "kv").follow(stop=stop)).cursor, "1")
        self.assertGreaterEqual(stop.waited[0], 7)
        self.assertLess(stop.waited[1], 1)

    def test_a_bomb_and_a_broken_answer(self) -> None:
        bomb = gzip.compress(b" " * (1 << 22) + PAGE)
        Stranger.answers = [(200, {**JSON, "Content-Encoding": "gzip"}, bomb)]
        with self.assertRaises(Error):
            Client(self.url, "kv", max_bytes=1 << 20).fetch()
        Stranger.answers = [(200, {**JSON, "Content-Encoding": "gzip"}, bomb[:-9])]
        with self.assertRaises(rowfeed.Unavailable):
            Client(self.url, "kv").fetch()
        for body in (b"[" * 10000, b"{}", b"[]", b'{"cursor":1}'):
            Stranger.answers = [(200, JSON, body)]
            with self.assertRaises(Error):
                Client(self.url, "kv").fetch()


class Patience(threading.Event):
    """Notes how long is waited, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: List[float] = []

    def wait(self, timeout: Any = None) -> bool:
        self.waited.append(timeout)
        return False
