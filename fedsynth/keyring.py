"""keys.yaml: everybody's public keys, those that were retired included, as `fedsynth verify --keys` reads them.

    north: ed25519:AAAA…                       one key, used ever since
    south:                                     or several, with the times between which each was used
      - {key: ed25519:BBBB…, retired_on: "2026-03-01T09:00:00+00:00"}
      - {key: ed25519:CCCC…, valid_from: "2026-03-01T09:00:00+00:00"}

A key that is rotated away is kept with its dates: certificates that it signed before then still hold, and later ones,
by whoever got hold of it, do not.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crypto.errors import CryptoError
from crypto.keys import Identity
from fedsynth.documents import read_document
from synth.certificate.evidence import Keys, PinnedKey
from synth.errors import InputError

MOST_KEYS = 10_000
FIELDS = {"key", "valid_from", "retired_on"}


def read_keys(path: Path) -> Keys:
    content = read_document(path)
    try:
        if not isinstance(content, dict) or len(content) > MOST_KEYS:
            raise ValueError("it is no list of names and keys")
        return {str(name): tuple(_pinned(each) for each in _records(given)) for name, given in content.items()}
    except (ValueError, OverflowError, CryptoError) as error:
        raise InputError(
            f"{path} must hold NAME: PUBLIC KEY lines, as under 'peers' in party.yaml, or a list of keys with their "
            f"dates ({error})."
        ) from None


def with_retired(before: Path, present: Mapping[str, str], now: dt.datetime) -> dict[str, Any]:
    """The content of keys.yaml for these present keys (name → public key), what was rotated away since being kept."""
    known = read_document(before) if before.exists() else {}
    moment = now.isoformat(timespec="seconds")
    content: dict[str, Any] = {}
    for name in dict.fromkeys([*present, *known]):
        records = [dict(each) for each in _records(known[name])] if name in known else []
        key = present.get(name)
        for each in records:
            if each["key"] != key and "retired_on" not in each:
                each["retired_on"] = moment
        if key is not None and not any(each["key"] == key and "retired_on" not in each for each in records):
            records.append({"key": key} | ({"valid_from": moment} if records else {}))
        content[name] = key if records == [{"key": key}] else records
    return content


def present_keys(content: Mapping[str, Any]) -> dict[str, str]:
    """Of a keys.yaml, the key that each name has now; names whose keys are all retired have none."""
    found = {
        name: [each["key"] for each in _records(given) if "retired_on" not in each] for name, given in content.items()
    }
    return {name: str(keys[-1]) for name, keys in found.items() if keys}


def _records(given: Any) -> list[dict[str, Any]]:
    records = [{"key": given}] if isinstance(given, str) else given
    if not isinstance(records, list) or not all(isinstance(each, dict) and "key" in each for each in records):
        raise ValueError("a name needs a public key, or a list of {key, valid_from, retired_on}")
    if any(set(each) - FIELDS for each in records):
        raise ValueError("beside a key there can be valid_from and retired_on, nothing else")
    return records


def _pinned(record: dict[str, Any]) -> PinnedKey:
    public = Identity.from_text(str(record["key"])).public.hex()
    return PinnedKey(public, _moment(record, "valid_from"), _moment(record, "retired_on"))


def _moment(record: dict[str, Any], name: str) -> dt.datetime | None:
    """A time with its zone; a day alone counts whole: from its beginning, or to its end."""
    if (value := record.get(name)) is None:
        return None
    if isinstance(value, str):
        value = dt.date.fromisoformat(value) if len(value) == len("2026-03-01") else dt.datetime.fromisoformat(value)
    if isinstance(value, dt.datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    if not isinstance(value, dt.date):
        raise ValueError(f"{name} is no time")
    day = dt.datetime.combine(value, dt.time(), dt.UTC)
    return day + dt.timedelta(days=1) if name == "retired_on" else day
