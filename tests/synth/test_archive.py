"""Files of arrays: what comes back is what went in, damage is noticed, a failed write replaces nothing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from synth.errors import InputError, OutputError
from synth.messages import archive

ARRAYS = {"a/b": np.arange(6.0).reshape(2, 3), "empty": np.zeros((0, 4), np.int64)}


def test_arrays_and_meta_come_back() -> None:
    arrays, meta = archive.unpack(archive.pack(ARRAYS, {"x": [1, "two"]}), "test")
    assert meta == {"x": [1, "two"]}
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)


def test_any_flipped_or_missing_byte_is_noticed() -> None:
    content = archive.pack(ARRAYS, {})
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 50):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(InputError, match="damaged"):
            archive.unpack(bytes(damaged), "model.npz")
    for length in (0, 5, 31, 32, len(content) - 1):
        with pytest.raises(InputError, match="damaged"):
            archive.unpack(content[:length], "model.npz")


def test_objects_are_never_unpickled() -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        archive.pack({"x": np.array([{"a": 1}], dtype=object)}, {})


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    archive.write_durably(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        archive.write_durably(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
