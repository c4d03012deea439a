"""Cursors in a table of the caller's database, over any DB-API 2 connection."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

from .cursor import generation_of
from .errors import InvalidRequest, Refused

TABLE = "rowfeed_client_cursors"
"""The table that consumers make for themselves."""

CREATE = """CREATE TABLE IF NOT EXISTS rowfeed_client_cursors (
  consumer VARCHAR(100) NOT NULL, feed VARCHAR(100) NOT NULL, shard BIGINT NOT NULL,
  shard_count BIGINT NOT NULL, value VARCHAR(200) NOT NULL, generation BIGINT NOT NULL,
  epoch BIGINT NOT NULL, version BIGINT NOT NULL, paused BIGINT NOT NULL,
  aside BIGINT NOT NULL DEFAULT 0, updated_at BIGINT NOT NULL, PRIMARY KEY (consumer, feed, shard))"""

_COLUMNS = "shard, shard_count, value, generation, epoch, version, paused, aside"


@dataclass
class Row:
    """A consumer's cursor of one shard, as it was read or written last."""

    shard: int
    shard_count: int
    value: str
    generation: int
    epoch: int
    version: int
    paused: int
    aside: int


class Cursors:
    """The cursors of one consumer of one feed. All methods work in the connection's open
    transaction, and end none."""

    def __init__(self, table: str, consumer: str, feed: str, paramstyle: Optional[str]) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?", table):
            raise InvalidRequest("table: it is no name of a table", parameter="table", next="write it like rowfeed_cursors, or schema.rowfeed_cursors")
        self._table, self._who, self._paramstyle = table, (consumer, feed), paramstyle

    def read(self, connection: Any) -> List[Row]:
        """All of the consumer's cursors, in the order of their shards."""
        cursor = self._execute(connection, f"SELECT {_COLUMNS} FROM {self._table} WHERE consumer = ? AND feed = ? ORDER BY shard", self._who)
        try:
            return [Row(*(value.decode() if isinstance(value, (bytes, bytearray)) else value for value in row)) for row in cursor.fetchall()]
        finally:
            cursor.close()

    def insert(self, connection: Any, shard: int, shard_count: int, value: str) -> None:
        self._execute(connection, f"INSERT INTO {self._table} (consumer, feed, {_COLUMNS}, updated_at) VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 0, ?)",
                      (*self._who, shard, shard_count, value, _now())).close()

    def compare_and_set(self, connection: Any, was: Row, to: str) -> bool:
        """Writes the cursor where its row is still as it was read. version, which every write
        counts up, tells of one that was elsewhere meanwhile. Who is paused is at rest."""
        return self._write(connection, f"UPDATE {self._table} SET value = ?, generation = ?, version = version + 1, updated_at = ?"
                           " WHERE consumer = ? AND feed = ? AND shard = ? AND shard_count = ? AND version = ? AND value = ? AND generation = ?"
                           " AND epoch = ? AND aside = ? AND paused = 0",
                           (to, generation_of(to), _now(), *self._who, was.shard, was.shard_count, was.version, was.value, was.generation,
                            was.epoch, was.aside)) == 1

    def lock_all(self, connection: Any) -> None:
        self._write(connection, f"UPDATE {self._table} SET version = version + 1 WHERE consumer = ? AND feed = ?", self._who)

    def set_back_all(self, connection: Any) -> None:
        self._write(connection, f"UPDATE {self._table} SET value = '', generation = 0, version = version + 1, updated_at = ?"
                    " WHERE consumer = ? AND feed = ?", (_now(), *self._who))

    def _write(self, connection: Any, sql: str, values: Sequence[Any]) -> int:
        cursor = self._execute(connection, sql, values)
        try:
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def _execute(self, connection: Any, sql: str, values: Sequence[Any]) -> Any:
        style = self._paramstyle or driver_of(connection).paramstyle
        sql, bound = with_parameters(style, sql, values)
        cursor = connection.cursor()
        try:
            cursor.execute(sql, bound)
        except BaseException:
            cursor.close()
            raise
        return cursor


def _now() -> int:
    return time.time_ns() // 1000  # for people; nothing is decided by it


def with_parameters(style: str, sql: str, values: Sequence[Any]) -> Tuple[str, Any]:
    """The statement, written with question marks, in the driver's style."""
    marks = iter(range(1, len(values) + 1))
    if style == "qmark":
        return sql, tuple(values)
    if style == "format":
        return sql.replace("?", "%s"), tuple(values)
    if style == "numeric":
        return re.sub(r"\?", lambda _: f":{next(marks)}", sql), tuple(values)
    named: Dict[str, Any] = {f"p{i}": value for i, value in enumerate(values, 1)}
    mark = "%%(p%d)s" if style == "pyformat" else ":p%d"
    return re.sub(r"\?", lambda _: mark % next(marks), sql), named


def _driver_of_class(kind: type) -> Any:
    parts = kind.__module__.split(".")
    for n in range(len(parts), 0, -1):
        module = sys.modules.get(".".join(parts[:n]))
        if hasattr(module, "paramstyle") and hasattr(module, "Error"):
            return module
    return None


def driver_of(connection: Any) -> Any:
    """The DB-API module that a connection is of."""
    for kind in type(connection).__mro__:
        module = _driver_of_class(kind)
        if module is not None:
            return module
    raise Refused("the connection is of no DB-API 2 module", next="give what the connect function of sqlite3, psycopg2, pymysql and the like answers")


def is_database_error(error: BaseException) -> bool:
    """Whether it is a DB-API error, of whatever module."""
    return any(kind.__name__ == "Error" and _driver_of_class(kind) is not None for kind in type(error).__mro__)


def database_errors(connection: Any) -> Type[Exception]:
    error: Type[Exception] = driver_of(connection).Error
    return error


_SQLSTATES = ("08", "40", "55P03", "57P")  # connection, deadlock and serialization, lock timeout, shutdown
_NUMBERS = (1205, 1213, 2006, 2013, 1290, 1836)  # MySQL, MariaDB: lock timeout, deadlock, connection lost, read-only
_SQLITE_CODES = (5, 6, 13)  # SQLITE_BUSY, SQLITE_LOCKED, SQLITE_FULL


def passes_by_itself(error: BaseException) -> bool:
    """Whether a database's error is nobody's fault: a deadlock, a lock, a connection that is gone.
    By the driver's codes; what has none does not."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if isinstance(state, str) and state.startswith(_SQLSTATES):
        return True
    code = getattr(error, "sqlite_errorcode", None)  # Python 3.11 and later
    if code is not None:
        return (code & 0xFF) in _SQLITE_CODES
    return bool(error.args) and error.args[0] in _NUMBERS or getattr(error, "errno", None) in _NUMBERS
