"""Documents that cannot be read are told of in our words, not in the operating system's."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedsynth.documents import read_schema
from synth.errors import InputError


def refused(path: Path) -> str:
    with pytest.raises(InputError) as error:
        read_schema(path)
    assert "Errno" not in str(error.value)
    assert "codec" not in str(error.value)
    return str(error.value)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    assert "there is no file" in refused(path)
    assert "is a folder; give the path of a YAML or JSON file" in refused(tmp_path)
    path.write_bytes("columns: {Größe: {kind: boolean}}".encode("latin-1"))
    assert "is not UTF-8 text; save it as UTF-8" in refused(path)
    assert "Not a directory" in refused(path / "below")
    path.write_text("columns: {")
    assert "not valid YAML or JSON" in refused(path)
