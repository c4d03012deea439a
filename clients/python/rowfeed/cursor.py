"""What rowfeed's own consumers have to know of a cursor:
[generation:]position[@start mark][[~head].term].

To everybody else a cursor is opaque: store it, and send it back.
"""

from __future__ import annotations

from typing import Tuple

BEGINNING = ""
NOW = "now"

_Position = Tuple[int, str]  # of a sequence's number, or of a ULID's text


def is_place(cursor: str) -> bool:
    """Whether it is a cursor, and no request such as now and at:TIME."""
    return cursor != NOW and not cursor.startswith("at:")


def _position(text: str) -> _Position:
    return (int(text), "") if text.isdigit() and len(text) < 20 else (0, text)


def _parse(cursor: str) -> Tuple[int, _Position, _Position, _Position]:
    """The generation, the position, the start mark and the head. The head is 0 if the cursor leaves it out: it is
    then the position or the start mark."""
    generation, colon, rest = cursor.partition(":")
    if not colon:
        generation, rest = "1", cursor
    rest, tilde, head = rest.partition(".")[0].partition("~")
    position, at, mark = rest.partition("@")
    return int(generation), _position(position), _position(mark) if at else (0, ""), _position(head) if tilde else (0, "")


def at_beginning(cursor: str) -> bool:
    if not is_place(cursor):
        return False
    if cursor == BEGINNING:
        return True
    _, position, mark, head = _parse(cursor)
    return position == mark == head == (0, "")


def generation_of(cursor: str) -> int:
    """The generation that a cursor is of; 0 of the beginning, and of now and at:TIME."""
    return 0 if not is_place(cursor) or at_beginning(cursor) else _parse(cursor)[0]


def in_pass(cursor: str) -> bool:
    """Whether a pass from the beginning is under way: its start mark is not reached yet."""
    if not is_place(cursor):
        return False
    if at_beginning(cursor):
        return True
    _, position, mark, _ = _parse(cursor)
    return mark > position
