"""A rowfeed server on a SQLite file of its own, as its users start it. ROWFEED_BIN is the binary."""

from __future__ import annotations

import functools
import itertools
import os
import re
import sqlite3
import subprocess
import tempfile
import threading
import unittest
from typing import Any, Callable, Dict, List, Optional, Tuple

from rowfeed import Backoff, Client, Consumer

KV = "CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)"
LONG = 300  # seconds for what must come: the machine may do other work


# On which nobody else listens, also while a server is killed and started again.
_addresses = itertools.cycle(os.environ["ROWFEED_TEST_ADDRESSES"].split(","))
_made: Dict[Tuple[Tuple[str, ...], str], bytes] = {}  # databases, to copy


class Server:
    def __init__(self, test: unittest.TestCase, *tables: str, feeds: str = "kv --table kv") -> None:
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.folder, self.path = folder.name, os.path.join(folder.name, "rowfeed.db")
        self._process: Optional[subprocess.Popen[str]] = None
        self._listen, self._scheme, self._feed, self._killed = next(_addresses), "http", feeds.split()[0], False
        made = _made.get((tables, feeds))
        if made is None:
            self.exec(*(tables or (KV,)))
            self.run("init")
            self.run("feed", "add", *feeds.split())
            with open(self.path, "rb") as file:
                _made[tables, feeds] = file.read()
        else:
            with open(self.path, "wb") as file:
                file.write(made)
        test.addCleanup(self.kill)
        self.start()

    def run(self, *arguments: str, check: bool = True) -> str:
        return subprocess.run([os.environ["ROWFEED_BIN"], *arguments, "--db", "sqlite:" + self.path], cwd=self.folder, check=check,
                              capture_output=True, text=True, timeout=LONG).stdout

    def exec(self, *statements: str) -> None:
        db = sqlite3.connect(self.path, timeout=LONG)
        with db:
            for statement in statements:
                db.execute(statement)
        db.close()

    def start(self, *arguments: str) -> None:
        """On the address that it had, so that clients find it again. After one that was killed it
        need not wait until the claim on the publisher's lease is over."""
        if self._killed:
            self.run("lease", "release", "publish:" + self._feed, check=False)  # it may have had none yet
            self._killed = False
        self._scheme = "https" if "--tls-cert" in arguments else "http"
        self._process = subprocess.Popen([os.environ["ROWFEED_BIN"], "serve", "--listen", self._listen, "--db", "sqlite:" + self.path, *arguments],
                                         cwd=self.folder, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        said: List[str] = []
        for line in self._process.stderr:
            said.append(line)
            if re.search(r"msg=serving address=\S+", line):
                break
        else:
            raise AssertionError("the server ended: " + "".join(said))
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process, self._killed = None, True

    def restart(self, *arguments: str) -> None:
        """With other arguments, after it has ended in order."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(LONG)
        self._process = None
        self.start(*arguments)

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self._listen}"

    def client(self, feed: str = "kv", **settings: Any) -> Client:
        return Client(self.url, feed, backoff=Backoff(0.02, 0.2), **settings)

    def publish(self) -> None:
        """What was committed is there then. The feed has entries, so that nobody waits for the first."""
        with self.client() as client:
            client.fetch(limit=1, consistent=True, wait=60)


def running(test: unittest.TestCase, *runs: Callable[[], Any], stop: Callable[[], Any] = lambda: None) -> Callable[[], List[BaseException]]:
    """Runs all of them, each in a thread; the function that it answers stops them, waits, and answers what they raised."""
    raised: List[BaseException] = []

    def caught(run: Callable[[], Any]) -> None:
        try:
            run()
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=caught, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()

    def end() -> List[BaseException]:
        stop()
        for thread in threads:
            thread.join(LONG)
        return raised

    test.addCleanup(end)
    return end


def two_that_find_no_table(test: unittest.TestCase, consumers: List[Consumer]) -> None:
    """Neither has made it, nor then the row, when the other finds that it is missing; and neither fails."""
    both, raised = threading.Barrier(2, timeout=LONG), []

    def run(c: Consumer) -> None:
        create, insert = c._create, c._insert
        c._create = lambda *a: (both.wait(), create(*a))[1]  # type: ignore[method-assign]
        c._insert = lambda *a: (both.wait(), insert(*a))[1]  # type: ignore[method-assign]
        try:
            c.run_once()
        except threading.BrokenBarrierError:
            pass  # the other has failed
        except BaseException as e:
            raised.append(e)
            both.abort()

    running(test, *(functools.partial(run, c) for c in consumers))()
    test.assertEqual(raised, [])
