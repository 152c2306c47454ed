"""What strangers can send us, each with valid examples and the code that reads it. A new target is one line of TARGETS.

`make` turns chance into bytes or values; `use` reads them as the product does and may refuse with our own errors only.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, RecordDict

from crypto.errors import CryptoError
from fed_node.consent.approvals import sent_plan
from fedsynth.documents import read_document, read_plan, read_schema
from fedsynth.drawing import draw_rows
from fedsynth.keyring import read_keys
from fedsynth.model_file import model_of
from synth.certificate.certificate import parse_certificate
from synth.certificate.evidence import Evidence
from synth.certificate.promise import promise
from synth.certificate.verification import check_certificate
from synth.errors import FedsynthError
from synth.messages import archive, wire
from synth.messages.fields import blobs, number, text
from synth.messages.sums import Layout
from synth.messages.wire import Envelope
from synth.programme import programme
from tests.fuzz.kits import make_kit, use_kit
from tests.fuzz.mutations import as_text, changed_bytes, changed_values

ROOT = Path(__file__).resolve().parents[2]
OLD = ROOT / "tests" / "compatibility" / "version-0.1.0"
REFUSALS = (FedsynthError, CryptoError)
FAMILIES = ("bayes", "marginals", "ctgan")


@dataclass(frozen=True)
class Target:
    """`share`: how many of a thousand cases are about it; those that compute get fewer."""

    share: int
    make: Callable[[random.Random], Any]
    use: Callable[[Any], object]


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-"))


def _file(content: bytes) -> Path:
    path = _folder() / "document"
    path.write_bytes(content)
    return path


@cache
def _plans() -> list[Any]:
    plans = [json.loads((OLD / family / "plan.json").read_bytes()) for family in FAMILIES]
    assessed = read_plan(ROOT / "examples" / "adult-assessed.yaml").model_dump(mode="json", by_alias=True)
    return [*plans, assessed]


@cache
def _schemas() -> list[Any]:
    return [read_document(path) for path in sorted((ROOT / "examples").glob("*.schema.yaml"))]


@cache
def _certificates() -> list[Any]:
    from tests.synth.test_verification import CERTIFICATE

    old = [json.loads((OLD / family / "certificate.json").read_bytes()) for family in FAMILIES]
    return [json.loads(CERTIFICATE.model_dump_json()), *old]


@cache
def _models() -> list[bytes]:
    return [(OLD / family / "model.npz").read_bytes() for family in FAMILIES]


def document(examples: Callable[[], list[Any]]) -> Callable[[random.Random], bytes]:
    """An example with changed values, sometimes with changed bytes as well."""

    def make(chance: random.Random) -> bytes:
        content = as_text(changed_values(chance.choice(examples()), chance))
        return changed_bytes(content, chance) if chance.random() < 0.2 else content

    return make


# ── documents ──


def use_plan(content: bytes) -> None:
    plan = read_plan(_file(content))
    assert programme(plan).asks
    assert len(plan.digest()) == 64


def use_sent_plan(content: bytes) -> None:
    sent_plan("0" * 64, content.decode("utf-8", "replace"))


def use_schema(content: bytes) -> None:
    assert read_schema(_file(content)).digest()


def make_yaml(chance: random.Random) -> bytes:
    levels = chance.randrange(2, 40)
    bomb = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * chance.randrange(1, 12))}]" for n in range(1, levels))
    example = (ROOT / "examples" / "adult.schema.yaml").read_bytes()
    laughs = b"a0: &a0 [x, x]\n" + bomb.encode()
    return chance.choice((changed_bytes(example, chance), laughs, changed_bytes(laughs, chance)))


def make_keys(chance: random.Random) -> bytes:
    key = "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    rotated = [{"key": key, "retired_on": "2026-01-01"}, {"key": key, "valid_from": "2026-01-01T00:00:00+00:00"}]
    return document(lambda: [{"north": key, "south": rotated}])(chance)


def make_certificate(chance: random.Random) -> bytes:
    """Also what a party signed is changed: its text is JSON inside JSON."""
    content = chance.choice(_certificates())
    if chance.random() < 0.5:
        content = json.loads(json.dumps(content))
        place = chance.choice(content["statements"])
        told = json.loads(place["text"])
        place["text"] = as_text(changed_values(told, chance)).decode("utf-8", "replace")
        return as_text(content)
    return document(_certificates)(chance)


def use_certificate(content: bytes) -> None:
    certificate = parse_certificate(content, "a certificate")
    assert check_certificate(certificate, Evidence(lambda *_: True))
    assert promise(certificate)


# ── archives ──


def make_archive(chance: random.Random) -> bytes:
    """Damaged, with a checksum that fits all the same: whoever attacks can compute it."""
    body = changed_bytes(chance.choice(_models())[:-32], chance)
    return body + sha256(body).digest() if chance.random() < 0.9 else body


def make_model(chance: random.Random) -> bytes:
    """Arrays of other sizes, types and contents, or another plan, in a file that is whole."""
    arrays, meta = archive.unpack(chance.choice(_models()), "an example")
    if chance.random() < 0.5:
        meta["plan"] = changed_values(meta["plan"], chance)
    for name in chance.sample(sorted(arrays), chance.choice((0, 1, 1, 3))):
        match chance.randrange(6):
            case 0:
                del arrays[name]
            case 1:
                arrays[name] = arrays[name].ravel()[:-1]
            case 2:
                arrays[name] = arrays[name].astype(chance.choice((np.int8, np.float32, np.uint64, np.bool_)))
            case 3:
                arrays[name] = np.full_like(arrays[name], chance.choice((-1, 0, 2**31)))
            case 4:
                arrays[name] = np.full(arrays[name].shape, chance.choice((np.nan, np.inf, 1e300)))
            case _:
                arrays[name] = np.array(["text"])
    try:
        return archive.pack(arrays, meta)
    except ValueError:  # values that no JSON writes
        return archive.pack(arrays, {})


def use_model(content: bytes) -> None:
    model = model_of(content, "a model")
    model.require_no_formulas()
    draw_rows(model, 5, seed=0)


# ── messages ──


MESSAGES = (
    Envelope({"ask/x": np.arange(6.0).reshape(2, 3)}, {"combine": "sum", "option/phase": "training", "run": "r"}),
    Envelope({"sealed": np.zeros(40, np.uint8), "voucher": np.ones(8, np.uint8)}, {"layout": '[["x","count",[2]]]'}),
    Envelope({"counts": np.arange(5), "reals": np.ones(2)}, {"weight": 1.0, "sequence": 3, "epoch": 0}),
)
READERS: tuple[Callable[[Envelope], object], ...] = (
    wire.unpack_ask,
    wire.unpack_answer,
    wire.digest,
    lambda envelope: blobs(envelope, "ask"),
    lambda envelope: number(envelope, "epoch"),
    lambda envelope: Layout.from_text(text(envelope, "layout")),
)


def make_message(chance: random.Random) -> Any:
    envelope = chance.choice(MESSAGES)
    records = wire.to_records(envelope)
    first = dict(records.config_records["000000"])
    block = first.pop("block")
    layout = {name: value for name, value in first.items() if name.startswith("layout/")}
    options = {name: value for name, value in first.items() if name not in layout}
    match chance.randrange(4):
        case 0:
            block = changed_bytes(block, chance)
        case 1:
            layout = changed_values(layout, chance)
        case 2:
            options = changed_values(options, chance)
        case _:
            name = chance.choice(list(layout))
            layout[name] = changed_bytes(str(layout[name]).encode(), chance).decode("latin-1")
    return layout, options, block


def use_message(content: Any) -> None:
    layout, options, block = content
    try:
        records = RecordDict({"000000": ConfigRecord({"block": block, **layout, **options})})
    except (TypeError, ValueError, AttributeError):
        return  # no message of Flower's can hold it
    envelope = wire.from_records(records)
    for read in READERS:
        try:
            read(envelope)
        except REFUSALS:
            continue


TARGETS: dict[str, Target] = {
    "wire": Target(420, make_message, use_message),
    "plan": Target(40, document(_plans), use_plan),
    "plan as sent": Target(130, document(_plans), use_sent_plan),
    "schema": Target(50, document(_schemas), use_schema),
    "yaml": Target(40, make_yaml, lambda content: read_document(_file(content))),
    "keys": Target(40, make_keys, lambda content: read_keys(_file(content))),
    "certificate": Target(8, make_certificate, use_certificate),
    "archive": Target(240, make_archive, lambda content: archive.unpack(content, "an archive")),
    "model": Target(2, make_model, use_model),
    "kit": Target(30, make_kit, use_kit),
}
