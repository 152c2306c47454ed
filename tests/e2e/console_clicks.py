"""A whole run clicked through in Chromium: looked at, approved at every party, watched until it is released.

Needs Chromium and its driver, so it is named in the Makefile and not collected by itself. Pictures are left in
runs/console-shots for people to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.browser import ENTER, TAB, Browser, browser
from fedsynth.documents import read_plan
from fedsynth.sandbox.layout import AGGREGATOR
from fedsynth.sandbox.making import make
from fedsynth.sandbox.operator import SandboxAggregator
from fedsynth.sandbox.running import Sandbox

SHOTS = Path("runs/console-shots")
TELEPHONE = "--window-size=500,900"  # as narrow as Chromium's own windows get


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    found = Sandbox(tmp_path_factory.mktemp("place") / "sandbox")
    make(found.layout, None, None, None)
    SHOTS.mkdir(parents=True, exist_ok=True)
    try:
        found.up()
        yield found
    finally:
        found.down()


def test_a_run_from_first_look_to_certificate(sandbox: Sandbox, tmp_path: Path) -> None:
    plan, pages = read_plan(sandbox.layout.plan), sandbox.addresses()
    operator = SandboxAggregator(sandbox.layout.folder)
    with browser(tmp_path / "profile", "--window-size=1240,1000") as window:
        window.open(pages[AGGREGATOR])
        window.wait("every party to be shown as connected", lambda: window.text().count("connected") >= 3)
        assert "token" not in window.run("return location.href")
        operator.submit(plan)  # nobody has approved it yet
        for party in sandbox.layout.parties:
            window.open(pages[party])
            window.wait("the plan to be offered", lambda: plan.name in window.text())
            _approve(window, plan.name, plan.digest())
            window.picture(SHOTS / f"approved-{party}.png")
        operator.submit(plan)
        window.open(pages[AGGREGATOR])
        window.link(plan.name)
        # No click and no reload from here on: the page hears of news by itself.
        window.wait("the release", lambda: window.find("#standing") and "released" in window.text())
        window.wait("its certificate", lambda: "Certificate, for people" in window.text())
        window.picture(SHOTS / "run.png")
        window.link("Certificate, for people")
        assert plan.name in window.text()
        window.picture(SHOTS / "certificate.png")
        window.open(pages["north"])
        window.link("Ledger")
        assert "ε so far, at most" in window.text()
        window.picture(SHOTS / "ledger.png")


def _approve(window: Browser, name: str, digest: str) -> None:
    """First wrongly, then by the keyboard alone: link, field and button are reached, named and used."""
    window.link(name)
    assert "What leaves this party" in window.text()
    assert "type its last" in window.name_of("#typed")
    window.type("#typed", "00000000" + ENTER)
    window.wait(
        "a refusal", lambda: bool(window.run("return document.querySelector('.alarm, [role=alert] p') !== null"))
    )
    assert "This plan is approved" not in window.text()
    window.run("history.back()")
    window.wait("the form", lambda: bool(window.run("return document.querySelector('#typed') !== null")))
    window.run("document.querySelector('#typed').value = ''")
    window.type("#typed", digest[-8:])
    window.press(TAB)
    assert window.run("return document.activeElement.innerText") == "Approve this plan"
    window.press(ENTER)
    window.wait("the approval", lambda: "This plan is approved" in window.text())


@pytest.mark.parametrize("flags", [(), ("--blink-settings=preferredColorScheme=0",), (TELEPHONE,)])
def test_pages_fit_their_window_and_everything_has_a_name(
    sandbox: Sandbox, flags: tuple[str, ...], tmp_path: Path
) -> None:
    names = {(): "light", (TELEPHONE,): "telephone"}
    with browser(tmp_path / "profile", *flags) as window:
        for who in (AGGREGATOR, "north"):
            window.open(sandbox.addresses()[who])
            for path in window.run("return [...document.querySelectorAll('nav a')].map(each => each.pathname)"):
                window.run(f"location.href = {path!r}")
                window.wait(path, lambda path=path: window.run("return location.pathname") == path)
                assert window.run("return document.documentElement.scrollWidth - innerWidth") <= 0, (who, path)
                controls = (
                    "return document.querySelectorAll('input:not([type=hidden]), textarea, button, meter').length"
                )
                assert not window.run(controls) or window.name_of("main textarea, main meter, main button, main input")
                shot = f"{who}-{path.strip('/') or 'first'}-{names.get(flags, 'dark')}.png"
                window.picture(SHOTS / shot)
