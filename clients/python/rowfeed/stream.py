"""Server-Sent Events of a feed."""

from __future__ import annotations

import http.client
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple
from urllib.parse import quote

from .cursor import generation_of
from .entry import Entry, parse_entry
from .errors import Error, Unauthorized, passes
from .transport import Answer, lost

if TYPE_CHECKING:
    from .client import Client


@dataclass(frozen=True)
class Event:
    """An entry, and the cursor to store once it is done."""

    cursor: str
    entry: Entry


class Stream:
    """Iterates over Events for ever, or until stop is set or close is called.

    cursor is how far it is; it also moves where there is nothing to show. It comes back
    by itself where it was, with back-off, after the server was away; what does not pass
    by itself is raised.
    """

    def __init__(self, client: "Client", after: str, query: Dict[str, str], stop: threading.Event) -> None:
        self.cursor = after
        self._client, self._query, self._stop = client, query, stop
        self._answer: Optional[Answer] = None
        self._events = self._run()

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def __next__(self) -> Event:
        return next(self._events)

    def close(self) -> None:
        """Ends it, also in the midst of waiting in another thread; what else waits by the same
        client is interrupted, and asks again."""
        self._stop.set()
        self._client.interrupt()

    def _run(self) -> Iterator[Event]:
        failures, retry = 0, 0.0
        while not self._stop.is_set():
            heard = False
            try:
                for name, value in self._read():
                    failures, heard = 0, True
                    if name == "retry":
                        retry = value
                    else:
                        yield value
            except Error as e:
                if self._stop.is_set():
                    return
                # A token that held when the answer began may have been exchanged meanwhile.
                if not passes(e) and not (heard and isinstance(e, Unauthorized)):
                    raise
                failures += 1
                self._stop.wait(self._client.backoff.pause(failures, e.retry_after))
            else:  # the server has ended it, in order
                self._stop.wait(self._client.backoff.pause(1, retry))

    def _read(self) -> Iterator[Tuple[str, Any]]:
        """Events of one answer: ("event", Event), or ("retry", seconds)."""
        client = self._client
        query = dict(self._query)
        if self.cursor:
            query["after"] = self.cursor
        answer = client._answer("/_feeds/stream/" + quote(client.feed, safe=""), query, "text/event-stream", 0, self._stop)
        kinds: Optional[Mapping[str, str]] = None
        name, cursor, size = "", self.cursor, 0
        data: List[str] = []
        try:
            while not self._stop.is_set():
                try:
                    raw = answer.readline(client._max_bytes + 1 - size)
                except (OSError, http.client.HTTPException) as e:
                    raise client._named(lost(e)) from e
                size += len(raw)
                if size > client._max_bytes:
                    raise Error(f"an event has more than {client._max_bytes} bytes", object=client._object(), next="raise max_bytes")
                if not raw.endswith(b"\n"):
                    return  # what has no end does not count
                field, _, value = raw.decode().rstrip("\r\n").partition(":")
                value = value[1:] if value.startswith(" ") else value
                if field == "id" and "\0" not in value:
                    cursor = value
                elif field == "event":
                    name = value
                elif field == "data":
                    data.append(value)
                elif field == "retry" and value.isdigit():
                    yield "retry", int(value) / 1000
                elif raw in (b"\n", b"\r\n"):
                    text, event, name, data, size = "\n".join(data), name, "", [], 0
                    if event == "problem":
                        raise client._of_problem(json.loads(text), None)
                    if not text or event not in ("", "message"):
                        self.cursor = cursor
                        continue
                    entry = parse_entry(json.loads(text), generation_of(cursor))
                    if client.decode:
                        entry, kinds = self._decode(entry, kinds)
                    self.cursor = cursor
                    yield "event", Event(cursor, entry)
        except (KeyError, TypeError, ValueError, RecursionError) as e:
            raise client._stranger("the stream is no feed's") from e
        finally:
            answer.close()

    def _decode(self, entry: Entry, kinds: Optional[Mapping[str, str]]) -> Tuple[Entry, Mapping[str, str]]:
        """With the description of when the stream began, and anew where that does not fit."""
        for fresh in (False, True):
            if kinds is None or fresh:
                info = self._client.info()
                kinds = {c.name: c.kind for c in info.columns + info.key}
            entries = self._client._decoded([entry], kinds)
            if entries is not None:
                return entries[0], kinds
        raise Error("the table's columns change too fast", object=self._client._object(), next="try again")
