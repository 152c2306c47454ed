"""Accidents and attacks on documents that were valid: to their bytes, and to the values in them."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

HALF = "\ud800"  # of a character; no encoding can write it
NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 2**31, 2**53 + 1, 2**63, 10**39, 10**400, -(10**18), 0.0, -0.0, 0.5, 5e-324, 1e-9,
    1e308, float("inf"), float("-inf"), float("nan"), "", " ", "x", "\x00", "\x1b[2J", HALF, "=cmd|' /C calc'!A0",
    "0" * 64, "a" * 10_000, "none", "2020-01-01", "9999-12-31", [], {}, [[]], [None], {"": None}, [0] * 1000,
)  # fmt: skip


def deep(levels: int) -> Any:
    content: Any = 1
    for _ in range(levels):
        content = [content]
    return content


def places(content: Any) -> list[tuple[Any, Any]]:
    """Every value below the top, as container and key."""
    found: list[tuple[Any, Any]] = []
    waiting = [content]
    while waiting:
        inside = waiting.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else []
        for key in keys:
            found.append((inside, key))
            waiting.append(inside[key])
    return found


def changed_values(content: Any, chance: random.Random) -> Any:
    """One to three values replaced, deleted, repeated, renamed, moved or nested."""
    content = copy.deepcopy(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        everywhere = places(content)
        if not everywhere:
            return copy.deepcopy(chance.choice(NASTY))
        inside, key = chance.choice(everywhere)
        match chance.randrange(8):
            case 0:
                del inside[key]
            case 1 if isinstance(inside, dict):
                inside[chance.choice(("", "extra", HALF, "name", "kind", str(key) + " "))] = inside.pop(key)
            case 2 if isinstance(inside, list):
                inside.extend([copy.deepcopy(inside[key])] * chance.choice((1, 2, 300)))
            case 3:
                other, place = chance.choice(everywhere)
                inside[key] = copy.deepcopy(other[place]) if isinstance(other, dict) and place in other else deep(70)
            case 4:
                inside[key] = deep(chance.choice((3, 65, 120)))
            case 5 if isinstance(inside[key], int | float) and not isinstance(inside[key], bool):
                inside[key] = _multiplied(inside[key], chance.choice((-1, 2, 10**6, 10**12, 1e-6, 1e300)))
            case _:
                inside[key] = copy.deepcopy(chance.choice(NASTY))
    return content


def _multiplied(value: float, factor: float) -> float:
    try:
        return value * factor
    except OverflowError:  # a whole number beyond all floating point
        return -value


def changed_bytes(content: bytes, chance: random.Random) -> bytes:
    """One to three of the usual accidents and attacks."""
    damaged = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 3))):
        where, width = chance.randrange(len(damaged) + 1), chance.choice((1, 1, 2, 8, 64))
        match chance.randrange(6):
            case 0 if where < len(damaged):
                damaged[where] ^= 1 << chance.randrange(8)
            case 1:
                damaged[where : where + width] = chance.randbytes(width)
            case 2:
                del damaged[where:]
            case 3:
                del damaged[where : where + width]
            case 4:
                damaged[where:where] = chance.randbytes(width)
            case _:
                damaged[where : where + width] = bytes([chance.choice((0, 255))]) * width
    return bytes(damaged)


def as_text(content: Any) -> bytes:
    """JSON as Python writes it, Infinity and halves of characters included."""
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")
