"""Pauses between attempts."""

from __future__ import annotations

import random
from typing import Optional


class Backoff:
    """Pauses after failures in a row: the first, in seconds, doubles up to the longest, with
    jitter (from a half of it to all of it), and is no shorter than the server asks for."""

    def __init__(self, first: float = 0.1, longest: float = 30.0) -> None:
        self.first, self.longest = first, longest

    def pause(self, failures: int, retry_after: Optional[float] = None) -> float:
        longest = min(self.first * 2 ** min(max(failures, 1) - 1, 40), self.longest)
        return max(longest * random.uniform(0.5, 1.0), retry_after or 0.0)
