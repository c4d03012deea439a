"""Reads the change feeds of a rowfeed server, and consumes them exactly once."""

from .client import MAX_WAIT, Client
from .consumer import Consumer
from .cursor import BEGINNING, NOW
from .entry import DELETE, UPSERT, Column, Entry, Info, Page, decode_value
from .errors import (Conflict, ConsumerPaused, CursorAhead, CursorRefused, EntriesExpired, Error, Forbidden, GenerationChanged,
                     HandlerFailed, HistoryLost, InvalidRequest, Later, Refused, TombstonesExpired, TooManyRequests, Unauthorized, Unavailable, UnknownFeed)
from .pace import Backoff
from .stream import Event, Stream

__all__ = [
    "BEGINNING", "DELETE", "MAX_WAIT", "NOW", "UPSERT", "Backoff", "Client", "Column", "Conflict", "Consumer", "ConsumerPaused", "CursorAhead",
    "CursorRefused", "EntriesExpired", "Entry", "Error", "Event", "Forbidden", "GenerationChanged", "HandlerFailed", "HistoryLost", "Info",
    "InvalidRequest", "Later", "Page", "Refused", "Stream", "TombstonesExpired", "TooManyRequests", "Unauthorized", "Unavailable",
    "UnknownFeed", "decode_value",
]
