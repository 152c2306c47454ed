"""Every code that a party can send is on docs/refusals.md, with why no row decides about it; and no other code is."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import crypto
import fed_node
import synth
from crypto.errors import CryptoError
from fed_node.guard import Refused, attempt
from synth.errors import FedsynthError

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "refusals.md").read_text()
ELSEWHERE = ("aggregator", "fedsynth", "tests", "benchmarks")  # errors that no party raises


def codes(error: type[Exception]) -> Iterator[str]:
    if not error.__module__.startswith(ELSEWHERE):
        yield from [vars(error)["code"]] if isinstance(vars(error).get("code"), str) else []
    for child in error.__subclasses__():
        yield from codes(child)


def test_the_page_lists_every_code_and_no_other() -> None:
    for package in (crypto, fed_node, synth):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.startswith("synth.synthesizers."):
                importlib.import_module(module.name)
    listed = PAGE.split("## The codes")[1]
    named = set(re.findall(r"`([a-z]+(?:[.-][a-z]+)*)`", listed)) - {"crypto.vector."}
    assert named == set(codes(FedsynthError)) | set(codes(CryptoError))


def test_whatever_goes_wrong_a_code_of_the_page_leaves() -> None:
    def stumble() -> None:
        raise ValueError("some cell")

    assert attempt("ask", stumble) == Refused("internal")
    assert "`internal`" in PAGE
