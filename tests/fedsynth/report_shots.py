"""report.html as a browser draws it: on a desk, in the dark, on a telephone and on paper (`make report-shots`).

Needs Chromium, so it is not collected by `make test`; without a browser it fails. The pictures are left in
runs/report-shots/ for people to look at.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fedsynth.evaluation.quick import quick_evaluation
from fedsynth.report.page import POLICY, page
from fedsynth.report.subject import Subject, TableFile, provenance
from synth.metrics.evaluate import evaluate
from synth.schema import Schema
from tests.fedsynth.test_report_drawings import wide
from tests.fedsynth.test_report_verdicts import certificate_for, closed_gate
from tests.small import SCHEMA, table

SHOTS = Path("runs/report-shots")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
)
DESK, TELEPHONE = 1240, 390  # pixels
UNBROKEN, LONGEST_LABEL = "W" * 45, "W" * 40
LONG = {
    "a column with a very long name, longer than any card is wide": {"kind": "integer", "min": 0, "max": 100},
    UNBROKEN: {"kind": "categorical", "categories": [LONGEST_LABEL, "7"]},
}

# Runs inside the page: what sticks out of the window, which words their drawing cuts off, what must be scrolled.
PROBE = """
const sticking = document.documentElement.scrollWidth - window.innerWidth;
const cut = [...document.querySelectorAll('svg text')].filter(words => {
  const box = words.getBoundingClientRect(), drawing = words.ownerSVGElement.getBoundingClientRect();
  return box.left < drawing.left - 1 || box.right > drawing.right + 1 || box.top < drawing.top - 1
    || box.bottom > drawing.bottom + 1;
}).map(words => words.textContent);
const scrolled = [...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1)
  .map(box => box.textContent.slice(0, 60));
parent.document.body.dataset.found = JSON.stringify({width: window.innerWidth, sticking, cut, scrolled});
"""


@pytest.fixture(scope="module")
def report() -> str:
    """Every kind of column, two with names that are too long for any card."""
    schema = Schema.model_validate(SCHEMA | {"columns": SCHEMA["columns"] | LONG})
    rows = [table(150, seed).assign(**dict.fromkeys(LONG, 7)) for seed in (1, 2, 3)]
    synthetic = rows[1].assign(**{UNBROKEN: LONGEST_LABEL})  # farthest off, so that sentences name it
    found = evaluate(rows[0], synthetic, schema, rows[2])
    files = [TableFile(role=role, name=f"{role}.csv", sha256="0" * 64, rows=150) for role in ("real", "synthetic")]
    withheld = certificate_for("0" * 64).model_copy(update={"assessment": closed_gate()})
    return kept("report", page(Subject(found, schema, provenance(files, "of this test", schema), withheld)))


@pytest.fixture(scope="module")
def report_of_many_columns() -> str:
    schema, rows = wide(60)
    found = quick_evaluation(rows, rows.sample(frac=1.0, random_state=1).assign(measurement_number_7=0), schema, None)
    return kept("columns", page(Subject(found, schema, provenance([], "of this test", schema))))


def kept(name: str, content: str) -> str:
    SHOTS.mkdir(parents=True, exist_ok=True)
    (SHOTS / f"{name}.html").write_text(content)
    return content


def browse(profile: Path, content: str, *arguments: str) -> str:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser is not None, "no Chromium found; `make report-shots` installs it"
    source = profile / "page.html"
    source.write_text(content)
    command = [browser, *QUIET, f"--user-data-dir={profile / 'profile'}", *arguments, source.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def framed(report: str, width: int, height: int) -> str:
    """The page in a window of this width: Chromium's own windows cannot be as narrow as a telephone."""
    inside = html.escape(report)
    style = f"border:0;width:{width}px;height:{height}px"
    return f'<!doctype html><body style="margin:0"><iframe srcdoc="{inside}" style="{style}"></iframe></body>'


def probed(report: str, width: int, profile: Path) -> dict[str, Any]:
    """With the page's policy lifted, so that the probe can run."""
    content = report.replace(html.escape(POLICY), "").replace("</body>", f"<script>{PROBE}</script></body>")
    answer = re.search(r'data-found="([^"]*)"', browse(profile, framed(content, width, 3000), "--dump-dom"))
    assert answer is not None, "the probe did not run"
    found: dict[str, Any] = json.loads(html.unescape(answer[1]))
    return found


@pytest.mark.parametrize("width", [DESK, 768, TELEPHONE, 320])
def test_nothing_sticks_out_and_no_word_is_cut(report: str, width: int, tmp_path: Path) -> None:
    assert probed(report, width, tmp_path) == {"width": width, "sticking": 0, "cut": [], "scrolled": []}


@pytest.mark.parametrize("width", [1280, 768])
def test_maps_of_many_columns_need_no_scrolling(report_of_many_columns: str, width: int, tmp_path: Path) -> None:
    found = probed(report_of_many_columns, width, tmp_path)
    assert found == {"width": width, "sticking": 0, "cut": [], "scrolled": []}


def test_light_dark_and_telephone_are_drawn(report: str, tmp_path: Path) -> None:
    shots = {
        "light": (report, DESK, 6000, "preferredColorScheme=1"),
        "dark": (report, DESK, 6000, "preferredColorScheme=0"),
        "telephone": (framed(report, TELEPHONE, 14000), 500, 14000, "preferredColorScheme=1"),
    }
    for name, (content, width, height, scheme) in shots.items():
        size = f"--window-size={width},{height}"
        target = f"--screenshot={(SHOTS / f'{name}.png').resolve()}"
        browse(tmp_path, content, f"--blink-settings={scheme}", size, target)
    pictures = {name: (SHOTS / f"{name}.png").read_bytes() for name in shots}
    assert all(len(picture) > 100_000 for picture in pictures.values())  # a blank page of that size has about 40 kB
    assert pictures["light"] != pictures["dark"]


def test_it_prints_on_a4(report: str, tmp_path: Path) -> None:
    target = SHOTS / "report.pdf"
    browse(tmp_path, report, "--no-pdf-header-footer", f"--print-to-pdf={target.resolve()}")
    sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", target.read_bytes())
    assert len(sizes) > 3
    assert all((round(float(width)), round(float(height))) == (595, 842) for width, height in sizes)
