"""What the fields of an event must be. Strict: a record is read back after years, and nothing in it may be guessed."""

import math
from typing import Any

from synth.errors import PrivacyError


def require_count(event: Any, name: str) -> None:
    value = getattr(event, name)
    if type(value) is not int or value < 1:
        raise PrivacyError(f"{event.kind}: {name} must be a whole number of at least 1, got {value!r}")


def require_positive(event: Any, name: str) -> None:
    value = getattr(event, name)
    if not isinstance(value, float) or not math.isfinite(value) or value <= 0:
        raise PrivacyError(f"{event.kind}: {name} must be a finite number above 0 (a float), got {value!r}")


def require_one_of(event: Any, name: str, allowed: tuple[str, ...]) -> None:
    value = getattr(event, name)
    if value not in allowed:
        raise PrivacyError(f"{event.kind}: {name} must be one of {', '.join(allowed)}, got {value!r}")
