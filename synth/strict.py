"""What every document of the kit is made of: closed records, and the digest by which people approve them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Unknown keys are refused: a misspelt privacy setting must never fall back to a default. So is what no digest can
    be formed of: Infinity and NaN are no numbers in JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical JSON text: the same on every machine, whatever the file's layout was."""
    text = json.dumps(value, sort_keys=False, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def is_absent(value: object) -> bool:
    """What is not given is left out of every dump: documents from before the field keep their digests."""
    return value is None
