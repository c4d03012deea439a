"""A consumer whose effects and cursor are one transaction of the caller's database."""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import Any, Callable, List, Optional, Type

from . import cursor as cursors
from .client import Client
from .cursors import CREATE, TABLE, Cursors, Row, database_errors, driver_of, is_database_error, passes_by_itself
from .entry import Entry, Page
from .errors import (Conflict, ConsumerPaused, CursorAhead, CursorRefused, Error, GenerationChanged, HandlerFailed, HistoryLost, InvalidRequest, Later,
                     Refused, passes)
from .pace import Backoff

_log = logging.getLogger("rowfeed")

_MOST_ASKED, _FIRST_ASKED = 5000, 100
_QUICK, _SLOW = 0.1, 0.5  # seconds of a batch
_DENIALS = 12  # deadlocks and the like in a row, after which they are the handler's doing
_PAUSED_POLL = 1.0


class _Overtaken(Exception):
    """The cursor is no longer what was read: another instance, or an operator, has moved it."""


class _Failure(Exception):
    """Wraps what the handler raised, or what the database said because of it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Consumer:
    """Reads a feed and hands its entries, batch by batch, to handle.

    What handle(connection, entries) does in the open transaction of the connection, and
    the cursor behind the batch, are committed together: whatever crashes, and however
    many instances run under one name, each entry takes effect exactly once. It must not
    commit or roll back (nor run DDL where that commits), which is noticed, and ends the
    consumer. It may be called again with the same entries after a failure.

    connect() answers a new DB-API 2 connection, not in autocommit mode, of the
    database of the effects: SQLite, PostgreSQL, MariaDB or MySQL. It is called by the
    thread that runs the consumer, and again after the connection was lost. The cursors are in the
    table rowfeed_client_cursors, which is made where it is missing, or in the table
    given: "rowfeed_cursors" where `rowfeed init` was run on that database, so that
    `rowfeed consumer list|pause|seek|reset` have a say. One that is given must be there.

    start is where a consumer without a cursor begins: "", "now" or "at:" and a time.
    limit is the greatest number of entries of a batch; by default it adapts between 100 and 5000. wait is
    how many seconds the server keeps an empty request. shard and shard_count are the
    part that this instance reads, with a cursor of its own; all instances have the same
    shard_count. shard alone is one shard, of feeds with ULIDs.

    After max_attempts a failing batch is tried entry by entry, so that the key at fault
    is known, and HandlerFailed is raised; nothing is passed over. Later and errors that pass
    by themselves (transient(error) may know more of them) are outlived.

    on_refused(connection, error) makes the consumer begin again at the beginning when
    its cursor is refused; it is called in the transaction that sets it back.
    on_complete(connection) is called in the transaction that completes a pass from the
    beginning, and is the place to remove what the pass did not bring.
    on_trouble(error) is told of what is outlived; else the logger "rowfeed" is.
    """

    def __init__(self, name: str, client: Client, connect: Callable[[], Any], handle: Callable[[Any, List[Entry]], Any], *,
                 start: str = "", limit: Optional[int] = None, wait: float = 10.0, shard: Optional[int] = None,
                 shard_count: Optional[int] = None, table: str = TABLE, paramstyle: Optional[str] = None, max_attempts: int = 5,
                 backoff: Optional[Backoff] = None, on_refused: Optional[Callable[[Any, CursorRefused], Any]] = None,
                 on_complete: Optional[Callable[[Any], Any]] = None, on_trouble: Optional[Callable[[BaseException], Any]] = None,
                 transient: Optional[Callable[[BaseException], bool]] = None) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}", name):
            raise InvalidRequest("name: it is not a consumer name", parameter="name",
                                 next="a letter or digit, then up to 99 of letters, digits, '_', '-', '.' and ':'")
        if shard_count is not None and (shard is None or not 0 <= shard < shard_count):
            raise InvalidRequest("shard: say which of shard_count, from 0", parameter="shard", next="give shard=0 to shard_count - 1")
        if on_complete and shard is not None:
            raise InvalidRequest("on_complete: it is about a pass over the whole feed", parameter="on_complete", next="leave shard out")
        self.name, self.client, self._connect, self._handle = name, client, connect, handle
        self._start, self._limit, self._wait = start, limit, wait
        self._shard, self._shard_count, self._part = shard, shard_count, shard or 0
        # Of one shard that is a feed by itself there is no number of parts.
        self._count = shard_count or (1 if shard is None else 0)
        self._table, self._max_attempts = table, max_attempts
        self._cursors = Cursors(table, name, client.feed, paramstyle)
        self._backoff = backoff or Backoff()
        self._on_refused, self._on_complete, self._on_trouble, self._transient = on_refused, on_complete, on_trouble, transient
        self._stop = threading.Event()
        self._connection: Any = None
        self._errors: Type[Exception] = Exception
        self._row: Optional[Row] = None  # None: the database is to be asked, as after every error
        self._failures = self._outages = self._denials = self._singly = 0
        self._asked, self._idle, self._completed = _FIRST_ASKED, 0.001, False

    def run(self) -> None:
        """Handles entries until stop is called. It outlives databases and servers that go
        away, and raises what does not pass by itself: a refused cursor (see on_refused), a
        handler that fails."""
        try:
            while not self._stop.is_set():
                self._step(once=False)
        finally:
            self._disconnect()

    def run_once(self) -> None:
        """Handles entries up to the head of the moment; does not outlive servers and
        databases that cannot be reached."""
        try:
            while not self._stop.is_set() and not self._step(once=True):
                pass
        finally:
            self._disconnect()

    def stop(self) -> None:
        """Ends run, from any thread: what is being handled is committed first, and what the
        client is waiting for, be it for others that share it, is interrupted."""
        self._stop.set()
        self.client.interrupt()

    def _step(self, once: bool) -> bool:
        """One page; True where the head was reached."""
        try:
            if self._row is None:
                self._row = self._load()
            if self._row.paused:
                self._row = None
                if once:
                    raise ConsumerPaused("it is paused", object=self._object(), next="let it go on: `rowfeed consumer resume`, or paused = 0 in its row")
                self._stop.wait(_PAUSED_POLL)
                return False
            return self._turn(self._row, once)
        except _Overtaken:
            self._stop.wait(self._backoff.pause(1))
        except _Failure as e:
            self._failed(e.error)
        except CursorRefused as e:
            if self._on_refused is None or self._row is None:
                raise self._explained(e) from e
            self._guarded(lambda: self._restart(e), once)
        except Error as e:
            self._survive(e, passes(e), once, e.retry_after)
        except Later as e:
            self._survive(e, True, once)
        except Exception as e:
            self._survive(e, is_database_error(e) or isinstance(e, OSError), once)
        return False

    def _guarded(self, work: Callable[[], None], once: bool) -> None:
        """Work of which the database's errors are outlived, and the application's end the consumer."""
        try:
            work()
        except _Overtaken:
            pass
        except _Failure as e:
            raise HandlerFailed("on_refused failed", object=self._object(), next="correct the function and start again") from e.error
        except (Later, self._errors) as e:
            self._survive(e, True, once)

    def _turn(self, row: Row, once: bool) -> bool:
        settled = cursors.is_place(row.value)  # else the place that it means is stored first of all
        asked = time.monotonic()
        page = self.client.fetch(row.value, limit=1 if self._singly else self._limit or self._asked, shard=self._shard,
                                 shard_count=self._shard_count, wait=self._wait if settled and not once else 0, stop=self._stop)
        self._left_behind(row, page)
        ends = bool(self._on_complete) and not self._completed and not page.more and page.cursor == cursors.BEGINNING
        if page.entries or page.cursor != row.value or ends:
            begun = time.monotonic()
            self._apply(row, page)
            self._learn(page, time.monotonic() - begun)
            self._failures = self._outages = self._denials = 0
            self._singly, self._idle = max(self._singly - 1, 0), 0.001
            return not page.more
        self._outages = 0
        if page.more:
            return False
        if not once and time.monotonic() - asked < self._wait / 2:
            self._stop.wait(self._idle)  # the source answers an empty page at once: pause in its place
            self._idle = min(self._idle * 1.5 + 0.001, 0.25)
        self._row = None  # it may have been moved, and there is nothing else to do
        return True

    def _learn(self, page: Page, took: float) -> None:
        if took > _SLOW:
            self._asked = max(self._asked // 2, _FIRST_ASKED)
        elif page.more and took < _QUICK:
            self._asked = min(self._asked * 2, _MOST_ASKED)

    def _load(self) -> Row:
        """The cursor as the database has it, made where it is missing."""
        connection = self._open()
        failed: Optional[Exception] = None
        try:
            for made in (False, True):
                rows = self._cursors.read(connection)
                for row in rows:
                    if row.shard_count != self._count:
                        raise Conflict(f"its cursors are of {row.shard_count} shards, and this instance is to work on {self._count}", object=self._object(),
                                       next="give all instances the same shard_count, or a new name where it is to be another one")
                    if row.shard == self._part and row.aside:
                        raise Conflict("it has dead letters, which this client knows nothing of", object=self._object(),
                                       next="retry or drop them, or use another name")
                mine = [row for row in rows if row.shard == self._part]
                if mine:
                    return mine[0]
                if not made:
                    connection.rollback()
                    failed = self._insert(connection)
            raise failed or _Overtaken()  # and dropped again at once
        finally:
            # A page is waited for outside of any transaction.
            self._roll_back()

    def _insert(self, connection: Any) -> Optional[Exception]:
        """Another instance may have made it meanwhile: the next look tells."""
        self._begin(connection)
        try:
            self._cursors.insert(connection, self._part, self._count, self._start)
            connection.commit()
        except self._errors as e:
            connection.rollback()
            return e
        return None

    def _open(self) -> Any:
        if self._connection is not None:
            return self._connection
        connection = self._connect()
        self._errors = database_errors(connection)
        getter = getattr(connection, "get_autocommit", None)
        if getattr(connection, "autocommit", False) is True or getter is not None and getter():
            connection.close()
            raise InvalidRequest("connect: its connections commit each statement by itself", parameter="connect", next="turn autocommit off")
        self._connection = connection
        try:
            self._cursors.read(connection)
        except self._errors as e:
            if not self._roll_back() or passes_by_itself(e):
                raise
            self._create(connection, e)
        connection.rollback()
        return connection

    def _create(self, connection: Any, missing: Exception) -> None:
        if self._table != TABLE:
            raise Refused(f"its table of cursors, {self._table}, cannot be read: {missing}", object=self._object(),
                          next="make the table (`rowfeed init` makes rowfeed_cursors), or leave table out") from missing
        try:
            self._run_sql(connection, CREATE)
            connection.commit()
        except self._errors:
            connection.rollback()  # of two that make it at once one may fail
        try:
            self._cursors.read(connection)
        except self._errors as e:
            if not self._roll_back() or passes_by_itself(e):
                raise
            raise Refused(f"its table of cursors cannot be made: {e}", object=self._object(), next="make it by hand: " + CREATE) from e

    def _begin(self, connection: Any) -> None:
        """Of SQLite: takes the write lock first, where it can be waited for. Others begin by themselves."""
        if "sqlite" in driver_of(connection).__name__ and not connection.in_transaction:
            self._run_sql(connection, "BEGIN IMMEDIATE")

    def _apply(self, row: Row, page: Page) -> None:
        """Hands entries over and stores the cursor behind them; nothing of it happens unless all does."""
        completes = self._on_complete is not None and cursors.in_pass(row.value) and not (
            cursors.in_pass(page.cursor) and (page.entries or page.cursor != cursors.BEGINNING))

        completing = False

        def work(connection: Any) -> None:
            nonlocal completing
            if page.entries:
                self._handle(connection, page.entries)
            if completes and self._on_complete:
                completing = True
                self._on_complete(connection)

        self._singly = self._singly if page.entries else 0
        try:
            self._in_transaction(row, page.cursor, work)
        except _Failure as e:
            if not completing:
                self._blame(page, e)
            elif self._failures + 1 >= self._max_attempts:
                raise HandlerFailed("on_complete failed", object=self._object(), next="correct the function and start again: only the end of the pass is missing") from e.error
            raise
        self._completed = self._completed or completes

    def _blame(self, page: Page, e: _Failure) -> None:
        """Ends the consumer where the entry at fault is known, and makes it known where the batch failed too often."""
        if self._singly and page.entries:
            entry = page.entries[0]
            raise HandlerFailed(f"the entry at position {entry.position} with key {entry.key} failed", object=self._object(),
                                next="correct the row or the handler, then start again") from e.error
        if self._failures + 1 >= self._max_attempts:
            self._singly = max(len(page.entries), 1)

    def _restart(self, refusal: CursorRefused) -> None:
        row = self._row
        assert row is not None and self._on_refused is not None
        refused = self._on_refused
        if self._count > 1 and isinstance(refusal, (CursorAhead, HistoryLost, GenerationChanged)):
            # The feed may have another number of data shards, or positions may have been given again: all shards begin again together. All
            # rows are locked first, in one order.
            connection = self._open()
            self._begin(connection)
            self._cursors.lock_all(connection)
            now = [r for r in self._cursors.read(connection) if r.shard == row.shard]
            row.version += 1
            if now != [row]:
                raise self._overtaken()
            self._in_transaction(row, cursors.BEGINNING, lambda c: refused(c, refusal), all_shards=True)
        else:
            self._in_transaction(row, cursors.BEGINNING, lambda c: refused(c, refusal))
        self._completed = False
        self._trouble(refusal)

    def _in_transaction(self, row: Row, to: str, work: Callable[[Any], None], all_shards: bool = False) -> None:
        """Does the work and writes the cursor, in one transaction. After any error the row is read again:
        what a failed COMMIT did is known to the database alone."""
        connection = self._open()
        after = False  # the work has begun: what fails from then on may be its doing
        try:
            self._begin(connection)
            self._run_sql(connection, "SAVEPOINT rowfeed")
            after = True
            try:
                work(connection)
            except Later:
                raise
            except Exception as e:
                raise _Failure(e) from e
            self._still_open(connection)
            if not self._cursors.compare_and_set(connection, row, to):
                raise _Overtaken
            if all_shards:
                self._cursors.set_back_all(connection)
            connection.commit()
        except BaseException as e:
            self._row = None
            usable = self._roll_back()
            if isinstance(e, (_Overtaken, Later, Error)) or not isinstance(e, Exception) or not after:
                raise
            error = e.error if isinstance(e, _Failure) else e
            if not usable or passes_by_itself(error) or self._transient and self._transient(error):
                self._denials += 1
                if not usable or self._denials <= _DENIALS:
                    raise Later(str(error)) from error
            raise _Failure(error) from error
        if all_shards:
            self._row = None
        else:
            self._row = Row(row.shard, row.shard_count, to, cursors.generation_of(to), row.epoch, row.version + 1, 0, row.aside)

    def _still_open(self, connection: Any) -> None:
        """The transaction must be the one that was handed over: else the cursor would be stored by itself."""
        try:
            self._run_sql(connection, "RELEASE SAVEPOINT rowfeed")
        except self._errors as e:
            if not self._roll_back():
                raise  # the connection is gone, and the transaction with it
            raise HandlerFailed("the handler ended the transaction that it was handed, or left it unusable: what it did may be committed without the cursor",
                                object=self._object(), next="leave commit and rollback to the consumer, and raise the errors of statements") from e

    def _left_behind(self, row: Row, page: Page) -> None:
        """A shard at its beginning is not refused by the source, where another shard's cursor is of an older generation."""
        generation = cursors.generation_of(page.cursor)
        if self._count < 2 or not generation or not cursors.at_beginning(row.value):
            return
        try:
            older = [r.generation for r in self._cursors.read(self._open()) if 0 < r.generation < generation]
        finally:
            self._roll_back()
        if older:
            raise GenerationChanged(f"another shard's cursor is of generation {older[0]}, the feed of generation {generation}", object=self._object())

    def _failed(self, error: BaseException) -> None:
        self._failures += 1
        self._asked = _FIRST_ASKED
        self._trouble(error)
        self._stop.wait(self._backoff.pause(self._failures))

    def _survive(self, error: Exception, may: bool, once: bool, retry_after: Optional[float] = None) -> None:
        self._row = None  # it may be paused, or moved, by the time that all is back
        self._roll_back()
        if may and self._stop.is_set():
            return
        if once or not may:
            raise error
        self._outages += 1
        self._trouble(error)
        self._stop.wait(self._backoff.pause(self._outages, retry_after))

    def _overtaken(self) -> _Overtaken:
        self._row = None
        self._roll_back()
        return _Overtaken()

    def _explained(self, e: CursorRefused) -> CursorRefused:
        return type(e)(f"the source refused its cursor: {e.cause}", object=self._object(), feed=e.feed, status=e.status,
                       next="set the cursor back and remove what the new pass does not bring, or give on_refused and on_complete to have that done")

    def _object(self) -> str:
        part = f", shard {self._shard}" if self._shard is not None else ""
        return f'consumer "{self.name}" of feed "{self.client.feed}"{part}'

    def _trouble(self, error: BaseException) -> None:
        if self._on_trouble:
            self._on_trouble(error)
        else:
            _log.warning("%s: %s", self._object(), error)

    def _run_sql(self, connection: Any, sql: str) -> None:
        cursor = connection.cursor()
        try:
            cursor.execute(sql)
        finally:
            cursor.close()

    def _roll_back(self) -> bool:
        """False where the connection is of no use any more; another one is then made."""
        if self._connection is None:
            return False
        try:
            self._connection.rollback()
            self._run_sql(self._connection, "SELECT 1")
            self._connection.rollback()
            return True
        except self._errors:
            self._disconnect()
            return False

    def _disconnect(self) -> None:
        connection, self._connection, self._row = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            except self._errors:
                pass  # it was gone already
