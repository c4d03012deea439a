import os
import sqlite3
import subprocess
import threading
import unittest
from typing import Any, Callable, List, Optional

import rowfeed
from rowfeed import Backoff, Consumer, Entry

from .running import KV, LONG, Server, running, two_that_find_no_table

QUICK = Backoff(0.01, 0.05)


class Torn(sqlite3.Connection):
    """A connection that breaks while it commits: before, or after the database has done it."""

    after, broken = True, 0

    def commit(self) -> None:
        if Torn.broken > 0 and self.in_transaction:
            Torn.broken -= 1
            if Torn.after:
                super().commit()
            else:
                super().rollback()
            self.close()
            raise sqlite3.OperationalError("the connection is lost")
        super().commit()


class ConsumerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server(self, KV, feeds="kv --table kv --data-shards 8")
        self.path = os.path.join(self.server.folder, "own.db")
        with self.open() as db:
            # Without a key: whatever takes effect twice is there twice.
            db.execute("CREATE TABLE log (id INTEGER, op TEXT, v TEXT)")
        db.close()

    def open(self, **settings: Any) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=LONG, **settings)

    def write(self, first: int, last: int) -> None:
        self.server.exec(f"WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}) INSERT INTO kv SELECT i, 'v' || i FROM n")

    def publish(self) -> None:
        self.server.publish()

    def note(self, db: Any, entries: List[Entry]) -> None:
        db.executemany("INSERT INTO log VALUES (?, ?, ?)", [(e.key["id"], e.op, e.row and e.row["v"]) for e in entries])

    def consumer(self, handle: Optional[Callable[..., Any]] = None, **settings: Any) -> Consumer:
        settings = {"backoff": QUICK, "on_trouble": lambda _: None, "wait": 5.0, **settings}
        return Consumer(settings.pop("name", "mirror"), self.server.client(), settings.pop("connect", self.open), handle or self.note, **settings)

    def ask(self, sql: str) -> List[Any]:
        db = self.open()
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def ids(self) -> List[int]:
        return [row[0] for row in self.ask("SELECT id FROM log ORDER BY rowid")]


class ExactlyOnce(ConsumerTest):
    def test_cursor_and_effects_are_one_transaction(self) -> None:
        self.write(1, 10)
        self.publish()
        self.consumer(limit=3).run_once()
        self.server.exec("DELETE FROM kv WHERE id = 4", "UPDATE kv SET v = 'new' WHERE id = 5")
        self.publish()
        self.consumer(connect=lambda: self.open(isolation_level=None)).run_once()
        self.consumer().run_once()
        self.assertEqual(self.ids(), [*range(1, 11), 4, 5])
        self.assertEqual(self.ask("SELECT op, v FROM log WHERE id IN (4, 5) ORDER BY rowid DESC LIMIT 2"), [("upsert", "new"), ("delete", None)])
        (*stored, value, generation), = self.ask("SELECT consumer, feed, shard, value, generation FROM rowfeed_client_cursors")
        self.assertEqual((stored, value.partition(".")[0], generation), (["mirror", "kv", 0], "12", 1))

    def test_two_instances_and_a_server_that_is_killed(self) -> None:
        done = threading.Event()

        def handle(db: Any, entries: List[Entry]) -> None:
            self.note(db, entries)
            if entries[-1].key["id"] == 400:
                done.set()

        consumers = [self.consumer(handle, limit=7) for _ in range(2)]
        end = running(self, *(c.run for c in consumers), stop=lambda: [c.stop() for c in consumers])
        self.write(1, 200)
        self.publish()
        self.server.kill()
        self.write(201, 400)
        self.server.start()
        self.assertTrue(done.wait(LONG))
        self.assertEqual(end(), [])
        self.consumer().run_once()
        self.assertEqual(self.ids(), list(range(1, 401)))

    def test_of_two_with_the_same_page_one_wins(self) -> None:
        self.write(1, 3)
        self.publish()
        both, second = threading.Barrier(2, timeout=LONG), threading.Event()

        def first(db: Any, entries: List[Entry]) -> None:
            self.note(db, entries)

        slow, quick = self.consumer(first), self.consumer(first)
        fetch = slow.client.fetch

        def late(*a: Any, **k: Any) -> Any:
            page = fetch(*a, **k)
            if page.entries and not second.is_set():
                both.wait()  # both have the page
                second.wait(LONG)  # and the other has committed
            return page

        slow.client.fetch = late  # type: ignore[method-assign]
        end = running(self, slow.run_once, stop=second.set)
        both.wait()
        quick.run_once()
        self.assertEqual(end(), [])
        self.assertEqual(self.ids(), [1, 2, 3])

    def test_two_that_find_no_table(self) -> None:
        self.write(1, 3)
        self.publish()
        two_that_find_no_table(self, [self.consumer() for _ in range(2)])
        self.assertEqual(self.ids(), [1, 2, 3])

    def test_stopped_between_two_requests(self) -> None:
        # By whoever stops it after it has looked, and before its request is in hand.
        c = self.consumer(wait=10.0)
        fetch = c.client.fetch

        def stopped(*a: Any, **k: Any) -> Any:
            c.stop()
            return fetch(*a, **k)

        c.client.fetch = stopped  # type: ignore[method-assign]
        c.run()
        self.assertEqual(c.client._transport._idle, [])  # nothing was asked

    def test_a_commit_whose_outcome_is_unknown(self) -> None:
        self.write(1, 4)
        self.publish()
        self.consumer(name="made", start="now").run_once()
        for Torn.after in (True, False):
            Torn.broken = 0
            c = self.consumer(limit=2, connect=lambda: self.open(factory=Torn), name=f"torn-{Torn.after}")
            calls: List[int] = []

            def handle(db: Any, entries: List[Entry]) -> None:
                calls.append(len(entries))
                self.note(db, entries)
                if len(calls) == 1:
                    Torn.broken = 1
                if entries[-1].key["id"] == 4:
                    c.stop()

            c._handle = handle
            troubles: List[BaseException] = []
            c._on_trouble = troubles.append
            c.run()
            self.assertEqual(len(troubles), 1)
            self.assertEqual(self.ids(), [1, 2, 3, 4])
            db = self.open()
            with db:
                db.execute("DELETE FROM log")
                db.execute("DELETE FROM rowfeed_client_cursors")
            db.close()

    def test_shards_are_the_whole(self) -> None:
        self.write(1, 50)
        self.publish()
        for i in range(3):
            self.consumer(shard=i, shard_count=3, limit=5).run_once()
        self.assertEqual(sorted(self.ids()), list(range(1, 51)))
        with self.assertRaises(rowfeed.Conflict):
            self.consumer(shard=0, shard_count=2).run_once()

    def test_begins_now(self) -> None:
        self.write(1, 3)
        self.publish()
        self.consumer(start="now").run_once()
        self.write(4, 4)
        self.publish()
        self.consumer(start="now").run_once()
        self.assertEqual(self.ids(), [4])


class Failing(ConsumerTest):
    def test_the_key_at_fault_is_named_and_nothing_is_passed_over(self) -> None:
        self.write(1, 5)
        self.publish()
        calls: List[int] = []

        def handle(db: Any, entries: List[Entry]) -> None:
            calls.append(len(entries))
            self.note(db, entries)
            if any(e.key["id"] == 3 for e in entries):
                raise ValueError("three")

        for _ in range(2):
            with self.assertRaises(rowfeed.HandlerFailed) as failed:
                self.consumer(handle, max_attempts=2).run_once()
            self.assertIsInstance(failed.exception.__cause__, ValueError)
            self.assertIn("{'id': 3}", failed.exception.cause)
            self.assertEqual(self.ids(), [1, 2])
        self.assertEqual(calls, [5, 5, 1, 1, 1, 3, 3, 1])
        self.consumer().run_once()
        self.assertEqual(self.ids(), [1, 2, 3, 4, 5])

    def test_a_handler_that_ends_the_transaction(self) -> None:
        self.write(1, 2)
        self.publish()

        def commits(db: Any, entries: List[Entry]) -> None:
            self.note(db, entries)
            db.commit()

        def rolls_back(db: Any, entries: List[Entry]) -> None:
            db.rollback()
            db.execute("CREATE TABLE IF NOT EXISTS other (x)")

        for handle in (commits, rolls_back):
            with self.assertRaises(rowfeed.HandlerFailed) as failed:
                self.consumer(handle).run_once()
            self.assertIn("ended the transaction", failed.exception.cause)
        self.assertEqual(self.ask("SELECT value FROM rowfeed_client_cursors"), [("",)])

    def test_later_is_nobodys_failure(self) -> None:
        self.write(1, 1)
        self.publish()
        left = [9]

        def handle(db: Any, entries: List[Entry]) -> None:
            self.note(db, entries)
            left[0] -= 1
            if left[0] > 0:
                raise rowfeed.Later("the other side is away")
            c.stop()

        c = self.consumer(handle, max_attempts=1)
        c.run()
        self.assertEqual((self.ids(), left), ([1], [0]))

    def test_a_handlers_own_client_is_no_source(self) -> None:
        self.write(1, 1)
        self.publish()

        def handle(db: Any, entries: List[Entry]) -> None:
            raise rowfeed.CursorAhead("of another feed")

        with self.assertRaises(rowfeed.HandlerFailed):
            self.consumer(handle, max_attempts=1, on_refused=lambda db, e: self.fail("it was not the source")).run_once()

    def test_connections_that_commit_by_themselves(self) -> None:
        class Autocommit(sqlite3.Connection):
            autocommit = True

        with self.assertRaises(rowfeed.InvalidRequest):
            self.consumer(connect=lambda: self.open(factory=Autocommit)).run_once()


class Refused(ConsumerTest):
    def test_a_new_generation_is_refused_or_begins_a_pass(self) -> None:
        self.write(1, 4)
        self.publish()
        self.consumer().run_once()
        self.server.exec("DELETE FROM kv WHERE id = 2")
        self.server.run("feed", "bump", "kv")
        self.publish()
        with self.assertRaises(rowfeed.GenerationChanged) as changed:
            self.consumer().run_once()
        self.assertIn("on_refused", changed.exception.next)

        def refused(db: Any, e: Any) -> None:
            db.execute("ALTER TABLE log ADD COLUMN old INTEGER DEFAULT 0")
            db.execute("UPDATE log SET old = 1")

        def swept(db: Any) -> None:
            db.execute("DELETE FROM log WHERE old = 1")

        def handle(db: Any, entries: List[Entry]) -> None:
            db.executemany("INSERT INTO log (id, op, v) VALUES (?, ?, ?)", [(e.key["id"], e.op, e.row and e.row["v"]) for e in entries])

        self.consumer(handle, limit=2, on_refused=refused, on_complete=swept).run_once()
        self.assertEqual(self.ids(), [1, 3, 4])
        (value, generation), = self.ask("SELECT value, generation FROM rowfeed_client_cursors")
        self.assertTrue(value.startswith(f"{generation}:"), value)

    def test_a_new_generation_is_one_beginning_for_all_shards(self) -> None:
        self.write(1, 20)
        self.publish()
        for i in range(2):
            self.consumer(shard=i, shard_count=2).run_once()
        self.server.run("feed", "bump", "kv")
        self.publish()
        db = self.open()
        with db:
            db.execute("UPDATE rowfeed_client_cursors SET value = '', generation = 0 WHERE shard = 0")
        db.close()
        # At its beginning the source refuses nothing; its keys may be another shard's by now.
        with self.assertRaises(rowfeed.GenerationChanged):
            self.consumer(shard=0, shard_count=2).run_once()
        times: List[str] = []
        for i in (0, 1):
            self.consumer(shard=i, shard_count=2, on_refused=lambda db, e: times.append(e.code)).run_once()
        self.assertEqual(times, ["generation-changed"])
        self.assertEqual(sorted(self.ids()), sorted([*range(1, 21)] * 2))

    def test_lost_history_is_one_beginning_for_all_shards(self) -> None:
        self.write(1, 20)
        self.publish()
        for i in range(2):
            self.consumer(shard=i, shard_count=2).run_once()
        # As after a restored backup: the database does not know the term that the consumer has read.
        self.server.exec("UPDATE rowfeed_sequences SET term = 35184372088832")
        with self.assertRaises(rowfeed.HistoryLost) as lost:
            self.consumer(shard=0, shard_count=2).run_once()
        self.assertIn("on_refused", lost.exception.next)
        times: List[str] = []
        for i in (0, 1):
            self.consumer(shard=i, shard_count=2, on_refused=lambda db, e: times.append(e.code)).run_once()
        self.assertEqual(times, ["history-lost"])
        self.assertEqual(sorted(self.ids()), sorted([*range(1, 21)] * 2))


class Operated(ConsumerTest):
    """With rowfeed's own table of cursors operators have their say."""

    def command(self, *arguments: str) -> str:
        return subprocess.run([os.environ["ROWFEED_BIN"], *arguments, "--db", "sqlite:" + self.path], check=True, capture_output=True,
                              text=True, cwd=self.server.folder, timeout=LONG).stdout

    def test_paused_seen_and_set_back(self) -> None:
        with self.assertRaises(rowfeed.Refused):
            self.consumer(table="rowfeed_cursors").run_once()
        self.command("init")
        self.write(1, 3)
        self.publish()
        self.consumer(table="rowfeed_cursors").run_once()
        self.assertIn('"cursor":"3.', self.command("consumer", "list", "--json").replace(" ", "").replace("\n", ""))
        self.command("consumer", "pause", "mirror")
        with self.assertRaises(rowfeed.ConsumerPaused):
            self.consumer(table="rowfeed_cursors").run_once()
        self.command("consumer", "seek", "mirror", "--feed", "kv", "--to", "1")
        self.command("consumer", "resume", "mirror")
        self.consumer(table="rowfeed_cursors").run_once()
        self.assertEqual(self.ids(), [1, 2, 3, 2, 3])

    def test_moved_while_a_page_is_handled(self) -> None:
        self.command("init")
        self.write(1, 3)
        self.publish()
        moved: List[bool] = []

        def handle(db: Any, entries: List[Entry]) -> None:
            self.note(db, entries)
            if not moved:
                moved.append(True)
                # As an operator does, of a database with rows instead of one lock: in between.
                db.execute("UPDATE rowfeed_cursors SET version = version + 1")
                db.execute("UPDATE rowfeed_cursors SET value = ''")

        calls: List[bool] = []
        self.consumer(lambda db, entries: (calls.append(True), handle(db, entries)), table="rowfeed_cursors").run_once()
        self.assertEqual((self.ids(), len(calls)), ([1, 2, 3], 2))


class Parameters(unittest.TestCase):
    def test_every_style(self) -> None:
        from rowfeed.cursors import with_parameters

        sql = "UPDATE t SET a = ? WHERE b = ?"
        self.assertEqual(with_parameters("qmark", sql, (1, 2)), (sql, (1, 2)))
        self.assertEqual(with_parameters("format", sql, (1, 2)), ("UPDATE t SET a = %s WHERE b = %s", (1, 2)))
        self.assertEqual(with_parameters("numeric", sql, (1, 2)), ("UPDATE t SET a = :1 WHERE b = :2", (1, 2)))
        self.assertEqual(with_parameters("named", sql, (1, 2)), ("UPDATE t SET a = :p1 WHERE b = :p2", {"p1": 1, "p2": 2}))
        self.assertEqual(with_parameters("pyformat", sql, (1, 2)), ("UPDATE t SET a = %(p1)s WHERE b = %(p2)s", {"p1": 1, "p2": 2}))
