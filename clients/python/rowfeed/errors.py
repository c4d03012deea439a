"""Errors, told apart by classes and codes, never by their text."""

from __future__ import annotations

from typing import Dict, Optional, Type


class Error(Exception):
    """What failed, on which object, why, and what to do next.

    code is the stable name of the kind of error, the same as the server's and the Go
    library's; parameter is the one at fault, of an invalid request; status is that of
    the HTTP answer, None where there was none; retry_after is how many seconds the
    server asks to wait, None where it does not.
    """

    code = "failed"

    def __init__(self, cause: str, *, code: Optional[str] = None, object: str = "", next: str = "", feed: str = "",
                 parameter: str = "", status: Optional[int] = None, retry_after: Optional[float] = None) -> None:
        self.code = code or type(self).code
        self.cause, self.object, self.next = cause, object, next
        self.feed, self.parameter, self.status, self.retry_after = feed, parameter, status, retry_after
        text = f"{object}: {cause}" if object else cause
        super().__init__(f"{text}. Next: {next}" if next else text)


class InvalidRequest(Error):
    """A parameter that cannot be; parameter names it."""

    code = "invalid-request"


class UnknownFeed(Error):
    """A feed that does not exist, or no longer does."""

    code = "unknown-feed"


class CursorRefused(Error):
    """The feed refuses the cursor: one of the five below."""


class CursorAhead(CursorRefused):
    """The cursor is above the head: of another feed, or of a database that was set back."""

    code = "cursor-ahead"


class HistoryLost(CursorRefused):
    """The reader has read what the database has lost: a backup was restored, or a failover lost commits."""

    code = "history-lost"


class GenerationChanged(CursorRefused):
    """The cursor is of another generation of the feed."""

    code = "generation-changed"


class TombstonesExpired(CursorRefused):
    """The cursor is older than the deletes that are kept."""

    code = "tombstones-expired"


class EntriesExpired(CursorRefused):
    """The cursor is older than the entries that are kept."""

    code = "entries-expired"


class Conflict(Error):
    """Something is there with other settings."""

    code = "conflict"


class Refused(Error):
    """Something that cannot be served, or used, safely."""

    code = "refused"


class Unauthorized(Error):
    """Nobody has said who asks, or nobody knows them."""

    code = "unauthorized"


class Forbidden(Error):
    """Who asks has not the right."""

    code = "forbidden"


class TooManyRequests(Error):
    """Who asks has asked too often; retry_after says when to ask again."""

    code = "too-many-requests"


class Unavailable(Error):
    """The server, or its database, cannot be reached now."""

    code = "unavailable"


class HandlerFailed(Error):
    """A consumer's handler could not do its work; __cause__ is its exception."""

    code = "handler-failed"


class ConsumerPaused(Error):
    """An operator has paused the consumer."""

    code = "consumer-paused"


class Later(Exception):
    """Raised by a handler: it is no fault of the entries, something that they need is away.

    The page is then tried again, with back-off, for as long as it takes.
    """


_kinds = (InvalidRequest, UnknownFeed, CursorAhead, HistoryLost, GenerationChanged, TombstonesExpired, EntriesExpired, Conflict, Refused,
          Unauthorized, Forbidden, TooManyRequests, Unavailable)
by_code: Dict[str, Type[Error]] = {kind.code: kind for kind in _kinds}


def passes(error: Error) -> bool:
    """Whether what failed may succeed later, with nothing changed."""
    return not isinstance(error, (InvalidRequest, UnknownFeed, CursorRefused, Conflict, Refused, Unauthorized, Forbidden, HandlerFailed, ConsumerPaused))
