"""YAML whose aliases repeat themselves: as much as a person would write is read, the rest refused at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from fedsynth import bounded_yaml
from fedsynth.documents import read_document
from synth.errors import InputError

LAUGHS = "a0: &a0 [x, x]\n" + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))
MERGES = "a0: &a0 {x: 1}\n" + "\n".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40))


@pytest.mark.parametrize(
    "text",
    [LAUGHS, MERGES, "&a [*a]", "&a {x: *a}", "[" * 5000, "x: " + "y" * (5 << 20), "{1: {[]: 2}}", "!!python/x {}"],
    ids=["laughs", "merges", "itself", "itself as a value", "deep", "5 MB", "a list as a key", "an object"],
)  # fmt: skip
def test_what_is_larger_than_it_looks_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    began = time.monotonic()
    with pytest.raises(InputError, match=r"plan\.yaml"):
        read_document(tmp_path / "plan.yaml")
    assert time.monotonic() - began < 10


def test_a_few_aliases_are_fine(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("yes: &answers [a, b]\nother: *answers\nday: 2020-01-01\n")
    assert read_document(tmp_path / "plan.yaml")["other"] == ["a", "b"]


@pytest.mark.parametrize("opened", ["[", "{a: ", "- ", "? "])
def test_a_very_deep_document_ends_no_process(opened: str) -> None:
    """libyaml's composer calls itself: 100,000 brackets were a segmentation fault."""
    with pytest.raises(yaml.YAMLError):
        bounded_yaml.load(opened * 100_000)
