"""Archives are unpacked below their folder and nowhere else, on every Python that we run on."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from synth.messages.folder_archive import unpack


def archive(*members: tarfile.TarInfo) -> tarfile.TarFile:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    buffer.seek(0)
    return tarfile.open(fileobj=buffer)


def entry(name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o777) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.linkname = kind, mode, 3 if kind == tarfile.REGTYPE else 0, "/etc/passwd"
    return info


def test_files_and_folders_without_rights_of_their_own(tmp_path: Path) -> None:
    with archive(entry("runs", tarfile.DIRTYPE), entry("runs/a"), entry("b", mode=0o4600)) as tar:
        assert unpack(tar, tmp_path) == [tmp_path / "runs", tmp_path / "runs" / "a", tmp_path / "b"]
    assert (tmp_path / "runs" / "a").read_bytes() == bytes(3)
    assert oct((tmp_path / "runs" / "a").stat().st_mode & 0o7777) == "0o644"
    assert oct((tmp_path / "b").stat().st_mode & 0o7777) == "0o600"


@pytest.mark.parametrize(
    "bad",
    [
        entry("/etc/evil"), entry("../evil"), entry("a/../../evil"), entry("link", tarfile.SYMTYPE),
        entry("hard", tarfile.LNKTYPE), entry("pipe", tarfile.FIFOTYPE), entry("disk", tarfile.BLKTYPE),
    ],
    ids=lambda each: each.name,
)  # fmt: skip
def test_anything_else_is_refused_before_anything_is_written(bad: tarfile.TarInfo, tmp_path: Path) -> None:
    with archive(entry("good"), bad) as tar, pytest.raises(tarfile.TarError):
        unpack(tar, tmp_path / "here")
    assert list(tmp_path.rglob("*")) == []
