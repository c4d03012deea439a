"""Entries, pages, and the values of their rows."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional

from .cursor import generation_of

UPSERT = "upsert"
DELETE = "delete"


@dataclass(frozen=True)
class Entry:
    """One key at its position.

    op is "upsert", with the row as it was when the page was read, or "delete", with
    row None. Feed, generation, shard and position tell a delivery from every other.
    """

    position: str
    shard: int
    op: str
    key: Dict[str, Any]
    row: Optional[Dict[str, Any]]
    generation: int


@dataclass(frozen=True)
class Page:
    """The answer to a fetch. cursor is to be stored and sent as the next after; more is
    False when the page reached the head of its moment, and only then. base64 names the
    columns whose values travel as base64 (and are so unless they were decoded)."""

    feed: str
    entries: List[Entry]
    cursor: str
    more: bool
    base64: List[str]


@dataclass(frozen=True)
class Column:
    """A column: its type as the database spells it, and kind, how its values travel."""

    name: str
    type: str
    kind: str


@dataclass(frozen=True)
class Info:
    """A feed's description. head is the cursor of who has read everything."""

    name: str
    mode: str
    state: str
    generation: int
    head: str
    key: List[Column]
    columns: List[Column]
    base64: List[str]
    data_shards: int
    shard_ids: Optional[List[int]]
    raw: Dict[str, Any] = field(repr=False, compare=False)  # all that the server says


def parse_info(data: Dict[str, Any]) -> Info:
    """Raises KeyError or TypeError for what is not a description of a feed."""

    def columns(of: List[Dict[str, str]]) -> List[Column]:
        return [Column(c["name"], c["type"], c["kind"]) for c in of]

    return Info(name=data["name"], mode=data["mode"], state=data["state"], generation=data["generation"], head=data["head"],
                key=columns(data["key"]), columns=columns(data["columns"]), base64=data["base64"], data_shards=data["data_shards"],
                shard_ids=data.get("shard_ids"), raw=data)


def parse_entry(data: Dict[str, Any], generation: int) -> Entry:
    """Raises KeyError or TypeError for what is no entry."""
    return Entry(data["position"], data["shard"], data["op"], data["key"], data["row"] if data["op"] == UPSERT else None, generation)


def parse_page(data: Dict[str, Any]) -> Page:
    """Raises KeyError or TypeError for what is no page."""
    cursor, more = data["cursor"], data["more"]
    if not isinstance(cursor, str) or not isinstance(more, bool):
        raise TypeError("cursor and more")
    generation = generation_of(cursor)
    return Page(data["feed"], [parse_entry(e, generation) for e in data["entries"]], cursor, more, data["base64"])


def decode_entry(entry: Entry, kinds: Mapping[str, str]) -> Entry:
    """The entry with values of the columns' kinds instead of the forms in which they travel.
    Raises KeyError where a column is not among the kinds: the table has changed."""

    def decoded(row: Dict[str, Any]) -> Dict[str, Any]:
        return {name: decode_value(kinds[name], value) for name, value in row.items()}

    return replace(entry, key=decoded(entry.key), row=None if entry.row is None else decoded(entry.row))


def decode_value(kind: str, value: Any) -> Any:
    """A value as it is in the table: bytes of binary columns, floats also where they are no
    number, documents without rowfeed's wrappings (JSON's null is None like SQL's NULL).
    Text that is not UTF-8 has its other bytes as surrogates (errors="surrogateescape")."""
    if isinstance(value, str):
        if kind == "binary":
            return base64.b64decode(value, validate=True)
        return float(value) if kind in ("float32", "float64") else value
    if not isinstance(value, dict) or len(value) != 1:
        return value
    (tag, inner), = value.items()
    if tag == "$json" and kind == "json":
        return inner
    if tag == "$text":
        return inner
    if tag == "$binary":
        data = base64.b64decode(inner, validate=True)
        return data if kind in ("dynamic", "binary", "json") else data.decode("utf-8", "surrogateescape")
    if kind != "json" and tag == "$text64":
        return base64.b64decode(inner, validate=True).decode("utf-8", "surrogateescape")
    if kind != "json" and tag == "$float":
        return float(inner)
    return value
