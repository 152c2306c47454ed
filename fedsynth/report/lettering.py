"""How wide words are in a drawing. SVG does not wrap or shorten text, so what would not fit is shortened here.

Widths are those of a wide typeface at the drawings' size; narrower ones leave a little room.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

NARROW = frozenset("iIjlrtf.,:;'`|!()[]{}/ -")
BROAD = frozenset("mwMW@%—…")
END_SHARE = 0.35


def fitted(label: str, room: float) -> str:
    """The label, or its beginning and end, where names of one kind differ, as far as `room` units reach."""
    if length(label) <= room:
        return label
    room -= _letter("…")
    end = _beginning(label[::-1], room * END_SHARE)[::-1]
    return _beginning(label, room - length(end)) + "…" + end


def margin(labels: Iterable[str], least: float, most: float) -> float:
    """How much room to leave beside a drawing for its labels."""
    return min(most, max([least, *map(length, labels)]))


def _beginning(words: str, room: float) -> str:
    for place, letter in enumerate(words):
        room -= _letter(letter)
        if room < 0:
            return words[:place]
    return words


def length(words: str) -> float:
    return sum(map(_letter, words))


def _letter(letter: str) -> float:
    if letter in NARROW:
        return 5.0
    if letter in BROAD or unicodedata.east_asian_width(letter) in "WF":
        return 12.5
    return 9.0 if letter.isupper() else 7.8
