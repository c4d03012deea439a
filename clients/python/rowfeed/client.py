"""A client of one feed of a rowfeed server."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import zlib
from dataclasses import replace
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple
from urllib.parse import quote

from .entry import Entry, Info, Page, decode_entry, parse_info, parse_page
from .errors import Error, InvalidRequest, Unauthorized, Unavailable, by_code, passes
from .pace import Backoff
from .stream import Stream
from .transport import Answer, Token, Transport, lost

MAX_WAIT = 60.0
"""Seconds that a server waits, at most; the client asks again for more."""

_PROBLEM = "urn:rowfeed:problem:"
_COLUMNS = "Rowfeed-Columns"  # names the columns that an answer was made with
_COLUMN_TRIES = 5  # of a page whose table's columns change between it and its description


class Client:
    """Reads one feed of a server. Threads may share it.

    url is where the server is, such as "http://127.0.0.1:8080", with a path where it is
    served below one. token is sent as "Authorization: Bearer": the token itself,
    "env:NAME", "file:PATH", or a function that answers it. timeout, in seconds, bounds
    each read of an answer, beyond the time that the request itself may wait. max_bytes
    bounds an answer. ssl_context has what TLS needs besides the system's certificates:
    ssl.create_default_context(cafile=...), and load_cert_chain for a client certificate.
    With decode, values come as they are in the table: bytes instead of base64, NaN as a
    float (see decode_value); else as they travel. Integers are exact either way, and
    decimals are strings.
    """

    def __init__(self, url: str, feed: str, *, token: Token = None, timeout: float = 60.0, max_bytes: int = 256 << 20,
                 ssl_context: Optional[ssl.SSLContext] = None, decode: bool = False, backoff: Optional[Backoff] = None) -> None:
        if not feed:
            raise InvalidRequest("feed: there is no name", parameter="feed", next="name the feed to read")
        self.feed, self.decode = feed, decode
        self.backoff = backoff or Backoff()
        self._transport = Transport(url, token, timeout, ssl_context)
        self._token, self._max_bytes = token, max_bytes
        self._known: Optional[Tuple[Optional[str], Dict[str, str]]] = None  # the columns' tag, and their kinds

    def __repr__(self) -> str:
        return f"Client({self._transport.shown!r}, {self.feed!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes connections that nobody uses."""
        self._transport.close()

    def interrupt(self) -> None:
        """Ends the requests in hand, of other threads: they raise Unavailable."""
        self._transport.interrupt()

    def info(self) -> Info:
        """Describes the feed, as it is now."""
        data, header = self._get("/_feeds/" + quote(self.feed, safe=""), {}, 0)
        try:
            info = parse_info(data)
        except (KeyError, TypeError) as e:
            raise self._stranger("the answer is not a description of a feed") from e
        self._known = (header.get(_COLUMNS), {c.name: c.kind for c in info.columns + info.key})
        return info

    def fetch(self, after: str = "", *, limit: Optional[int] = None, shard: Optional[int] = None, shard_count: Optional[int] = None,
              wait: float = 0, consistent: bool = False, stop: Optional[threading.Event] = None) -> Page:
        """The entries above after, in increasing order of position.

        after is a cursor, "" for the beginning, "now", or "at:" and an RFC 3339 time. An
        empty page waits up to wait seconds for an entry. shard alone is one shard,
        shard with shard_count a part of the feed. With consistent, all that was committed
        before the request is there once more is False. Whoever has set stop and calls
        interrupt ends it with Unavailable, wherever it is.
        """
        query = request_query(after, limit, shard, shard_count)
        if consistent:
            query["consistent"] = "true"
        until = time.monotonic() + wait
        while True:
            asked = time.monotonic()
            now = wait if consistent or wait <= MAX_WAIT else min(max(until - asked, 0.001), MAX_WAIT)
            if now > 0:
                query["wait"] = f"{max(int(now * 1000), 1)}ms"
            page = self._page(query, now, stop)
            ended = time.monotonic()
            if page.entries or page.more or consistent or wait <= MAX_WAIT or ended >= until or ended - asked < now / 2:
                return page  # also when the server would not wait: it may be about to end
            query["after"] = page.cursor

    def pages(self, after: str = "", **request: Any) -> Iterator[Page]:
        """Fetches page after page (arguments as fetch has them) up to the head of the
        moment. Store each page's cursor once what it brings is done; the last page may be
        empty. Errors are raised as they come."""
        while True:
            page = self.fetch(after, **request)
            yield page
            if not page.more:
                return
            after = page.cursor

    def follow(self, after: str = "", *, wait: float = 30.0, stop: Optional[threading.Event] = None, **request: Any) -> Iterator[Page]:
        """Pages for ever, or until stop is set: waits where there is nothing, and outlives
        servers that are away, with back-off, jitter and what they ask for (Retry-After).
        A page without entries comes where the cursor has moved. What does not pass by
        itself is raised: a refused cursor, an unknown feed, a missing right."""
        failures, idle = 0, 0.001
        stop = stop or threading.Event()
        while not stop.is_set():
            asked = time.monotonic()
            try:
                page = self.fetch(after, wait=wait if after != "now" and not after.startswith("at:") else 0, stop=stop, **request)
            except Error as e:
                if not passes(e):
                    raise
                failures += 1
                stop.wait(self.backoff.pause(failures, e.retry_after))
                continue
            failures = 0
            if page.entries or page.cursor != after:
                after, idle = page.cursor, 0.001
                yield page
            elif not page.more and time.monotonic() - asked < wait / 2:
                stop.wait(idle)  # the source answers an empty page at once: pause in its place
                idle = min(idle * 1.5 + 0.001, 0.25)

    def stream(self, after: str = "", *, shard: Optional[int] = None, shard_count: Optional[int] = None,
               stop: Optional[threading.Event] = None) -> Stream:
        """Entries as they come, by Server-Sent Events; see Stream."""
        return Stream(self, after, request_query("", None, shard, shard_count), stop or threading.Event())

    # What follows is for this package.

    def _page(self, query: Dict[str, str], wait: float, stop: Optional[threading.Event]) -> Page:
        for _ in range(_COLUMN_TRIES):
            data, header = self._get("/_feeds/fetch/" + quote(self.feed, safe=""), query, wait, stop)
            try:
                page = parse_page(data)
            except (KeyError, TypeError) as e:
                raise self._stranger("the answer is not a page of a feed") from e
            if not self.decode or not page.entries:
                return page
            # What is known first; then, once, what the feed says of itself now.
            for fresh in (False, True):
                if fresh:
                    self.info()
                if self._known is not None and self._known[0] == header.get(_COLUMNS):
                    entries = self._decoded(page.entries, self._known[1])
                    if entries is not None:
                        return replace(page, entries=entries)
        raise Error("the table's columns change too fast", object=self._object(), next="try again")

    def _decoded(self, entries: List[Entry], kinds: Mapping[str, str]) -> Optional[List[Entry]]:
        """None where the kinds are not those of the entries."""
        try:
            return [decode_entry(e, kinds) for e in entries]
        except (KeyError, ValueError):
            return None

    def _get(self, path: str, query: Dict[str, str], wait: float, stop: Optional[threading.Event] = None) -> Tuple[Dict[str, Any], Message]:
        answer = self._answer(path, query, "application/json", wait, stop)
        try:
            body = answer.body(self._max_bytes)
        except (OSError, http.client.HTTPException, zlib.error) as e:
            raise self._named(lost(e)) from e
        finally:
            answer.close()
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as e:
            next = "raise sys.setrecursionlimit" if isinstance(e, RecursionError) else "try again"
            raise Error("the answer cannot be read as JSON", object=self._object(), next=next) from e
        if not isinstance(data, dict):
            raise self._stranger("the answer is no JSON object")
        return data, answer.header

    def _answer(self, path: str, query: Dict[str, str], accept: str, wait: float, stop: Optional[threading.Event] = None) -> Answer:
        """An answer with status 200 and the media type; the problem that came instead is raised."""
        for again in (False, True):
            try:
                answer = self._transport.get(path, query, accept, wait, stop)
            except Error as e:
                raise self._named(e)
            if answer.status == 200 and answer.header.get_content_type() == accept:
                return answer
            try:
                error = self._problem(answer)
            finally:
                answer.close()
            if again or not callable(self._token) or not isinstance(error, Unauthorized):
                break  # a function may have a newer token now
        raise error

    def _problem(self, answer: Answer) -> Error:
        data: Any = None
        if answer.header.get_content_type() == "application/problem+json":
            try:
                data = json.loads(answer.body(1 << 20))
            except (OSError, http.client.HTTPException, zlib.error) as e:
                return self._named(lost(e))
            except ValueError:
                pass
        status, retry_after = answer.status, seconds(answer.header.get("Retry-After"))
        if not isinstance(data, dict) or not str(data.get("type", "")).startswith(_PROBLEM):
            if status in (429, 502, 503, 504):  # a proxy in front of a rowfeed that is away
                return Unavailable(f"the answer is not from rowfeed: status {status}", object=self._object(), status=status, retry_after=retry_after,
                                   next="check that `rowfeed serve` runs there, then try again")
            return self._stranger(f"the answer is not from rowfeed: status {status} with {answer.header.get_content_type()}", status)
        return self._of_problem(data, status, retry_after)

    def _of_problem(self, data: Dict[str, Any], status: Optional[int], retry_after: Optional[float] = None) -> Error:
        code = str(data["type"])[len(_PROBLEM):]
        kind = by_code.get(code, Unavailable if status == 503 else Error)
        cause, own = str(data.get("detail", code)), f'feed "{self.feed}": '
        return kind(cause[len(own):] if cause.startswith(own) else cause, code=code, object=self._object(), next=str(data.get("next", "")),
                    feed=str(data.get("feed", "")), parameter=str(data.get("parameter", "")), status=status, retry_after=retry_after)

    def _object(self) -> str:
        return f'feed "{self.feed}" at {self._transport.shown}'

    def _named(self, e: Error) -> Error:
        """The same error, about this feed."""
        if e.object:
            return e
        return type(e)(e.cause, code=e.code, object=self._object(), next=e.next, parameter=e.parameter, status=e.status, retry_after=e.retry_after)

    def _stranger(self, cause: str, status: Optional[int] = None) -> Error:
        return Error(cause, object=self._object(), status=status, next="check that the URL is that of a `rowfeed serve` (without /_feeds)")


def request_query(after: str, limit: Optional[int], shard: Optional[int], shard_count: Optional[int]) -> Dict[str, str]:
    query = {"after": after} if after else {}
    for name, value in (("limit", limit), ("shard", shard), ("shard_count", shard_count)):
        if value is not None:
            query[name] = str(value)
    return query


def seconds(text: Optional[str]) -> Optional[float]:
    """Retry-After: a number of seconds, or a date."""
    if not text:
        return None
    if text.isdigit():
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None
