"""HTTP, by the standard library's http.client: connections that are kept, gzip, TLS."""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import threading
import zlib
from typing import Callable, Dict, List, Optional, Tuple, Union
from urllib.parse import unquote, urlencode, urlsplit

from .errors import Error, InvalidRequest, Unavailable

Token = Union[str, Callable[[], str], None]


def read_token(token: Token) -> str:
    """The token's text: of a function, of env:NAME, of file:PATH, or as it stands. It is
    read for each request, so that one that is exchanged is used at once."""
    text = token() if callable(token) else token or ""
    if text.startswith("env:"):
        name = text[4:]
        if not os.environ.get(name):
            raise InvalidRequest(f"token: the environment has no {name}", parameter="token", next=f"set {name}")
        text = os.environ[name]
    elif text.startswith("file:"):
        try:
            with open(text[5:], encoding="utf-8") as file:
                text = file.read().strip()
        except OSError as e:
            raise InvalidRequest(f"token: its file cannot be read: {e.strerror}", parameter="token", next="check its path and rights") from e
    if not all("!" <= c <= "~" for c in text):
        raise InvalidRequest("token: it has other characters than a token's", parameter="token", next="give it without blanks and line breaks")
    return text


class Answer:
    """An answer whose header has been read. Whoever has it closes it."""

    def __init__(self, transport: "Transport", connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._transport, self._connection, self._response = transport, connection, response
        self.status = response.status
        self.header = response.headers

    def readline(self, limit: int) -> bytes:
        return self._response.readline(limit)

    def body(self, limit: int) -> bytes:
        """All of it, at most limit bytes, inflated where it was compressed."""
        zipped = self.header.get("Content-Encoding", "").lower() == "gzip"
        inflate = zlib.decompressobj(16 + zlib.MAX_WBITS) if zipped else None
        parts: List[bytes] = []
        size = 0
        while True:
            data = self._response.read(64 << 10)
            if not data:
                break
            if inflate:
                data = inflate.decompress(data, limit + 1 - size)
            size += len(data)
            if size > limit:
                raise Error(f"the answer has more than {limit} bytes", next="ask for fewer entries (limit), or raise max_bytes")
            parts.append(data)
        if inflate and not inflate.eof:
            raise ConnectionError("the answer breaks off")
        return b"".join(parts)

    def close(self) -> None:
        """Leaves the connection to others where all of the answer has been read."""
        whole = self._response.isclosed() and not self._response.will_close
        self._response.close()
        self._transport.release(self._connection, whole)


class Transport:
    """Connections to one server, for any number of threads."""

    def __init__(self, url: str, token: Token, timeout: float, context: Optional[ssl.SSLContext]) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:  # whose text quotes the whole URL, with its password
            raise InvalidRequest("url: it cannot be parsed", parameter="url", next="write it like http://127.0.0.1:8080") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequest("url: it does not have the form http://host:port", parameter="url", next="write it like http://127.0.0.1:8080")
        self._https, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._path = parts.path.rstrip("/")
        self._token, self._timeout, self._context = token, timeout, context
        self._basic = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._basic = "Basic " + base64.b64encode(pair.encode()).decode()
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.shown = f"{parts.scheme}://{host}{f':{port}' if port else ''}{self._path}"  # without a password
        # To compress for this machine saves nothing.
        self._encoding = "identity" if self._host in ("localhost", "::1") or self._host.startswith("127.") else "gzip"
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []
        self._busy: Dict[int, http.client.HTTPConnection] = {}

    def get(self, path: str, query: Dict[str, str], accept: str, wait: float, stop: Optional[threading.Event] = None) -> Answer:
        """Sends a request; raises Unavailable where no answer comes. Each read of the answer may
        take the timeout, and wait seconds beyond it. None is sent once stop is set."""
        target = self._path + path + ("?" + urlencode(query) if query else "")
        headers = {"Accept": accept, "Accept-Encoding": self._encoding}
        token = read_token(self._token)
        if token:
            headers["Authorization"] = "Bearer " + token
        elif self._basic:
            headers["Authorization"] = self._basic
        while True:
            connection, kept = self._take(wait, stop)
            try:
                if connection.sock is None:
                    connection.connect()
                    with self._lock:
                        if id(connection) not in self._busy:
                            raise ConnectionAbortedError  # interrupted, where there was nothing yet to shut
                connection.request("GET", target, headers=headers)
                return Answer(self, connection, connection.getresponse())
            except (OSError, http.client.HTTPException) as e:
                interrupted = not self.release(connection, False)
                # The server may have closed a connection while nobody used it: a new one tells.
                if kept and not interrupted and isinstance(e, (ConnectionError, http.client.RemoteDisconnected, http.client.CannotSendRequest)):
                    continue
                raise lost(e) from e

    def _take(self, wait: float, stop: Optional[threading.Event]) -> Tuple[http.client.HTTPConnection, bool]:
        timeout = self._timeout + wait
        with self._lock:
            # Who stops sets it before interrupting: a request is in hand by then, or never begins.
            if stop is not None and stop.is_set():
                raise Unavailable("it was stopped")
            connection = self._idle.pop() if self._idle else None
            kept = connection is not None
            if connection is None:
                if self._https:
                    connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)
                else:
                    connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
            self._busy[id(connection)] = connection
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection, kept

    def release(self, connection: http.client.HTTPConnection, whole: bool) -> bool:
        """Keeps the connection, where all of its answer was read; False where it was interrupted."""
        with self._lock:
            was_busy = self._busy.pop(id(connection), None) is not None
            if was_busy and whole and connection.sock is not None:
                self._idle.append(connection)
                return True
        connection.close()
        return was_busy

    def interrupt(self) -> None:
        """Ends the requests in hand: whoever waits for them gets Unavailable."""
        with self._lock:
            busy, self._busy = self._busy, {}
        for connection in busy.values():
            sock = connection.sock
            if sock is not None:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it is closed already

    def __del__(self) -> None:
        if hasattr(self, "_idle"):
            self.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def lost(e: Exception) -> Unavailable:
    """The error of a request without a whole answer."""
    if isinstance(e, socket.timeout):
        cause = "the server did not answer in time"
    elif isinstance(e, ssl.SSLError):
        cause = f"no secure connection to the server: {e.reason or e}"
    else:
        cause = "the server cannot be reached, or closed the connection early"
    return Unavailable(cause, next="check that `rowfeed serve` runs there, then try again")
