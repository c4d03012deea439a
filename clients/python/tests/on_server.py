"""Consumers on a database server, ROWFEED_TEST_DATABASE, through a driver of its own."""

import os
import threading
import unittest
from typing import Any, List
from urllib.parse import urlsplit

from rowfeed import Backoff, Consumer, Entry, HandlerFailed

from .running import LONG, Server, running, two_that_find_no_table

URL = os.environ["ROWFEED_TEST_DATABASE"]


def connect() -> Any:
    if URL.startswith("postgres"):
        import psycopg2

        return psycopg2.connect(URL)
    import pymysql

    parts = urlsplit(URL)
    return pymysql.connect(host=parts.hostname, port=parts.port or 3306, user=parts.username or "", password=parts.password or "", database=parts.path[1:])


def execute(sql: str) -> Any:
    db = connect()
    try:
        with db.cursor() as cursor:
            cursor.execute(sql)
            rows = cursor.fetchall() if cursor.description else None
        db.commit()
        return rows
    finally:
        db.close()


class OnServer(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server(self)
        execute("CREATE TABLE log (id BIGINT)")
        self.addCleanup(execute, "DROP TABLE log")
        self.addCleanup(execute, "DROP TABLE rowfeed_client_cursors")

    def consumer(self, handle: Any) -> Consumer:
        return Consumer("mirror", self.server.client(), connect, handle, limit=7, backoff=Backoff(0.01, 0.05), wait=2, max_attempts=1, on_trouble=lambda _: None)

    def note(self, db: Any, entries: List[Entry]) -> None:
        with db.cursor() as cursor:
            cursor.executemany("INSERT INTO log VALUES (%s)", [(e.key["id"],) for e in entries])

    def test_instances_race(self) -> None:
        done = threading.Event()

        def handle(db: Any, entries: List[Entry]) -> None:
            self.note(db, entries)
            if entries[-1].key["id"] == 200:
                done.set()

        consumers = [self.consumer(handle) for _ in range(3)]
        end = running(self, *(c.run for c in consumers), stop=lambda: [c.stop() for c in consumers])
        self.server.exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO kv SELECT i, 'v' FROM n")
        self.assertTrue(done.wait(LONG))
        self.assertEqual(end(), [])
        self.consumer(handle).run_once()
        self.assertEqual(sorted(row[0] for row in execute("SELECT id FROM log")), list(range(1, 201)))

    def test_two_that_find_no_table(self) -> None:
        self.server.exec("INSERT INTO kv VALUES (1, 'a')")
        self.server.publish()
        two_that_find_no_table(self, [self.consumer(self.note) for _ in range(2)])
        self.assertEqual([row[0] for row in execute("SELECT id FROM log")], [1])

    def test_connections_are_lost_and_transactions_end(self) -> None:
        self.server.exec("INSERT INTO kv VALUES (1, 'a')")
        self.server.publish()
        calls: List[int] = []

        def handle(db: Any, entries: List[Entry]) -> None:
            calls.append(1)
            self.note(db, entries)
            if len(calls) <= 2:
                with db.cursor() as cursor:  # another session ends this one
                    if URL.startswith("postgres"):
                        cursor.execute("SELECT pg_backend_pid()")
                        execute(f"SELECT pg_terminate_backend({cursor.fetchone()[0]})")
                    else:
                        execute(f"KILL {db.thread_id()}")
            c.stop() if len(calls) == 3 else None

        c = self.consumer(handle)
        c.run()
        self.assertEqual((len(calls), execute("SELECT id FROM log")), (3, ((1,),) if not URL.startswith("postgres") else [(1,)]))

        self.server.exec("INSERT INTO kv VALUES (2, 'b')")
        self.server.publish()
        for statement in ("CREATE TABLE other (x INT)", "COMMIT"):
            if statement.startswith("CREATE") and URL.startswith("postgres"):
                continue  # where it is part of the transaction

            def ends(db: Any, entries: List[Entry], statement: str = statement) -> None:
                with db.cursor() as cursor:
                    cursor.execute(statement)

            with self.assertRaises(HandlerFailed) as failed:
                self.consumer(ends).run_once()
            self.assertIn("ended the transaction", failed.exception.cause)
        self.consumer(self.note).run_once()
        self.assertEqual(sorted(row[0] for row in execute("SELECT id FROM log")), [1, 2])
