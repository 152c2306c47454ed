"""Certificates that were made to be believed, or never to be finished with: each ends in a sentence, within seconds."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from aggregator.publish import signed
from crypto.keys import IdentityKey
from fedsynth.certificate.checking import read_certificate
from fedsynth.keyring import read_keys, with_retired
from synth.certificate.certificate import Certificate
from synth.certificate.evidence import PinnedKey
from synth.errors import InputError
from synth.privacy.events import Event, SampledGaussian
from tests.synth.test_verification import CERTIFICATE, KEYS, PINNED, PLAN, changed, failures, statement

SLOWEST_SECONDS = 20.0  # a hang, not a busy machine
NOW = dt.datetime(2026, 3, 1, 9, tzinfo=dt.UTC)


def at(moment: dt.datetime | None) -> Certificate:
    """The certificate as if it was issued at that time, or by a version that did not say."""
    issued = moment and moment.isoformat()
    return signed(CERTIFICATE.model_copy(update={"issued": issued}), KEYS["aggregator"])


# ── what is missing ──


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda c: c.update(signature=None), "aggregator's signature"),
        (lambda c: c.update(signature=None, table_sha256={"synthetic.csv": "cd" * 32}), "aggregator's signature"),
        (lambda c: c.update(participation=[]), "participation"),
        (lambda c: c["statements"].pop(), "participation"),
    ],
    ids=["signature taken off", "and the table swapped", "participation stripped", "a party taken out"],
)
def test_what_was_taken_off_fails(change: Callable[[dict[str, Any]], object], what: str) -> None:
    assert what in failures(changed(change))


def test_a_party_that_is_taken_out_of_everything_is_missed_by_the_plan() -> None:
    """Statement, sums and signature of one party gone, and a dishonest aggregator's signature under the rest."""

    def without(content: dict[str, Any]) -> None:
        content["statements"].pop()
        content["secure_sum"]["minimum_parties"] = 2
        for span in content["participation"]:
            span["parties"] = span["parties"][:2]

    certificate = changed(without, sign=True)
    assert "plan" in failures(certificate)
    assert {"plan", "cost"} <= set(failures(certificate, plan=None))
    assert failures(certificate, plan=None, unsigned=True) == []


def test_signers_that_nobody_compared_fail_unless_that_is_said() -> None:
    assert len(failures(CERTIFICATE, keys=None)) == 4  # three parties and the aggregator
    assert failures(CERTIFICATE, keys=None, unsigned=True) == []
    assert "statement of 'party-2'" in failures(CERTIFICATE, keys={k: v for k, v in PINNED.items() if k != "party-2"})


# ── time and rotated keys ──


def test_the_time_is_signed_and_an_old_certificate_says_that_it_has_none() -> None:
    assert CERTIFICATE.issued is not None
    assert "aggregator's signature" in failures(CERTIFICATE.model_copy(update={"issued": "2020-01-01T00:00:00+00:00"}))
    assert "aggregator's signature" in failures(CERTIFICATE.model_copy(update={"issued": None}))
    assert failures(at(None)) == []
    assert failures(at(NOW + dt.timedelta(days=2)), now=NOW) == ["time"]
    assert failures(at(None).model_copy(update={"issued": "soon"})) == ["aggregator's signature", "time"]


@pytest.mark.parametrize("name", ["aggregator", "party-1"])
def test_a_retired_key_counts_for_what_it_signed_before(name: str) -> None:
    key, later = PINNED[name][0].public_key, IdentityKey.generate().identity.public.hex()
    rotated = PINNED | {name: [PinnedKey(key, None, NOW), PinnedKey(later, NOW)]}
    what = ["aggregator's signature" if name == "aggregator" else f"statement of '{name}'"]
    assert failures(at(NOW - dt.timedelta(seconds=1)), keys=rotated) == []
    assert failures(at(NOW), keys=rotated) == what
    assert failures(at(None), keys=rotated) == what  # no time says that it was before
    early = PINNED | {name: [PinnedKey(key, NOW)]}
    assert failures(at(NOW - dt.timedelta(seconds=1)), keys=early) == what


def test_keys_yaml_keeps_what_was_rotated_away(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    first, second, third = (IdentityKey.generate().identity for _ in range(3))
    path.write_text(yaml.safe_dump(with_retired(path, {"north": first.to_text(), "south": third.to_text()}, NOW)))
    assert yaml.safe_load(path.read_text())["north"] == first.to_text()
    later = NOW + dt.timedelta(days=1)
    path.write_text(yaml.safe_dump(with_retired(path, {"north": second.to_text()}, later)))
    keys = read_keys(path)
    assert keys["north"] == (PinnedKey(first.public.hex(), None, later), PinnedKey(second.public.hex(), later))
    assert keys["south"] == (PinnedKey(third.public.hex(), None, later),)  # revoked: retired, not forgotten
    again = with_retired(path, {"north": second.to_text()}, later + dt.timedelta(days=1))
    assert again == yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    "content",
    ["[]", "3", "north: [1]", "north: [{key: 1}]", "north: [{key: x, since: 1}]", "north: {key: x}"],
)
def test_keys_that_cannot_be_read_are_said(content: str, tmp_path: Path) -> None:
    (tmp_path / "keys.yaml").write_text(content)
    with pytest.raises(InputError, match="PUBLIC KEY"):
        read_keys(tmp_path / "keys.yaml")


# ── work without end ──


def spans(content: dict[str, Any]) -> None:
    for span in content["participation"]:
        span["last"] = 2**31


def repeated(number: int) -> Callable[[dict[str, Any]], object]:
    """Statements that sign for all asks, again and again."""

    def change(content: dict[str, Any]) -> None:
        for each in content["statements"]:
            told = json.loads(each["text"])
            told["asks"] = [[0, 20]] * number
            each["text"] = json.dumps(told)

    return change


@pytest.mark.parametrize(
    "change", [spans, repeated(4000), lambda c: c["participation"].extend(c["participation"] * 500)],
    ids=["last 2^31", "asks repeated", "sums repeated"],
)  # fmt: skip
def test_long_lists_are_found_false_and_not_written_out(change: Callable[[dict[str, Any]], object]) -> None:
    certificate, began = changed(change, sign=True), time.monotonic()
    assert failures(certificate)
    assert time.monotonic() - began < SLOWEST_SECONDS


@pytest.mark.parametrize(
    "events",
    [
        [SampledGaussian(0.01, 1 + n / 1000, 10) for n in range(300)],
        [SampledGaussian(1e-6, 1e6, 10**9)],
        [SampledGaussian(0.5, 0.5, 10**30)],
    ],
    ids=["300 mechanisms", "noise without bounds", "steps without end"],
)
def test_events_that_nobody_could_compose_are_refused_in_a_sentence(events: list[Event]) -> None:
    certificate = changed(lambda _: None)
    statements = [statement(party.name, PLAN, events) for party in PLAN.parties]
    began = time.monotonic()
    assert "work" in failures(certificate.model_copy(update={"statements": statements}))
    assert time.monotonic() - began < SLOWEST_SECONDS


TEXT = CERTIFICATE.model_dump_json()
EPSILON = f'"epsilon":{CERTIFICATE.claim.epsilon}'


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(EPSILON, '"epsilon":Infinity'),
        TEXT.replace(EPSILON, '"epsilon":NaN'),
        TEXT.replace(EPSILON, '"epsilon":1' + "0" * 400),
        TEXT.replace(EPSILON, '"epsilon":1e999'),
        TEXT.replace('"run":"run-1"', '"run":"\\ud800"', 1),
        TEXT.replace('"secure_sum":{', '"secure_sum":{"x":' + "[" * 100_000, 1),
        TEXT.replace('"secure_sum":{', '"secure_sum":{"x":' + "[" * 100 + "]" * 100 + ",", 1),
        TEXT.replace('"run":"run-1"', '"run":"run-1","run":"run-2"', 1),
        "[" * 1_000_000,
        " " * (17 << 20),
        "\ud800",
    ],
    ids=["Infinity", "NaN", "10^400", "1e999", "half a character", "unclosed", "deep", "a key twice",
         "a million brackets", "17 MB", "no UTF-8"],
)  # fmt: skip
def test_what_is_no_certificate_is_said_in_a_sentence(text: str, tmp_path: Path) -> None:
    assert text != TEXT
    (tmp_path / "certificate.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    began = time.monotonic()
    with pytest.raises(InputError):
        read_certificate(tmp_path / "certificate.json")
    assert time.monotonic() - began < SLOWEST_SECONDS
