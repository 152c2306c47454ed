"""The operator's page: runs, who is connected, whom a run waits for, releases, the audit log. It only looks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from fedsynth.certificate.checking import Checked, checked
from fedsynth.certificate.html import as_html
from fedsynth.console.guarding import DOCUMENT_POLICY, Guard
from fedsynth.console.runs import Runs, RunView
from fedsynth.console.site import Pages, application
from fedsynth.documents import read_plan
from fedsynth.report.assessed import assessed
from fedsynth.report.markup import Markup, element
from fedsynth.report.style import STYLE
from synth.audit_log import FILE, AuditLog
from synth.errors import InputError, NotVerified

LINKS = {"/": "Runs", "/audit": "Audit log"}
MOST_LINES = 300  # of the audit log on one page
DIGEST = re.compile(r"[0-9a-f]{64}")


def aggregator_console(state: Path, metrics: Path | None, token: str) -> Guard:
    console = AggregatorConsole(state, metrics)
    routes = [
        Route("/", console.overview),
        Route("/runs/{digest}", console.run),
        Route("/runs/{digest}/certificate", console.certificate),
        Route("/runs/{digest}/assessment", console.assessment),
        Route("/audit", console.audit),
    ]
    return application(console.pages, [*routes], console.runs.news, token)


class AggregatorConsole:
    """Handlers are plain functions: Starlette runs them in threads, where reading files may take its time."""

    def __init__(self, state: Path, metrics: Path | None) -> None:
        self.state, self.runs = state, Runs(state, metrics)
        self.pages = Pages("Aggregator", LINKS)
        self.runs.all()  # read once before anybody waits for it

    def overview(self, request: Request) -> Response:
        runs, connected = self.runs.all(), self.runs.connected()
        going = [run for run in runs if not run.is_ended]
        return self.pages.show("runs.html", request, runs=runs, connected=connected, going=going)

    def run(self, request: Request) -> Response:
        view = self._run(request)
        folder = self.runs.folder(view.standing.digest)
        plan = json.loads((folder / "plan.json").read_bytes()) if (folder / "plan.json").exists() else {}
        privacy = plan.get("privacy")
        planned = privacy.get("epsilon") if isinstance(privacy, dict) else None
        found = self._checked(view)
        return self.pages.show(
            "run.html",
            request,
            view=view,
            run=view.standing,
            planned=planned,
            family=plan.get("synthesizer", {}).get("name", ""),
            connected=self.runs.connected(),
            verdict=found.page if found else None,
            has_assessment=bool(found and found.certificate.assessment),
        )

    def certificate(self, request: Request) -> Response:
        if (found := self._checked(self._run(request))) is None:
            raise InputError("this run has no certificate yet; it gets one when it is released.")
        return _document(as_html(found.page))

    def assessment(self, request: Request) -> Response:
        found = self._checked(self._run(request))
        if found is None or found.certificate.assessment is None:
            raise InputError("this run has no assessment: its plan asks for none, or it is not finished.")
        head = element("head", element("meta", charset="utf-8"), element("style", Markup(STYLE)))
        main = element("main", element("h1", "Assessment"), *assessed(found.certificate.assessment))
        return _document("<!doctype html>\n" + element("html", head, element("body", main), lang="en"))

    def audit(self, request: Request) -> Response:
        return self.pages.show("audit.html", request, **audit_facts(self.state / FILE))

    def _run(self, request: Request) -> RunView:
        digest = request.path_params["digest"]
        view = self.runs.get(digest) if DIGEST.fullmatch(digest) else None
        if view is None:
            raise InputError("there is no such run here; the list of runs has them all.")
        return view

    def _checked(self, view: RunView) -> Checked | None:
        """The release's certificate, held against what lies beside it. Nobody compared keys here, and it says so."""
        release = self.runs.folder(view.standing.digest) / "release"
        if not (release / "certificate.json").exists():
            return None
        return checked(release / "certificate.json", read_plan(release / "plan.json"), unsigned=True)


def audit_facts(file: Path) -> dict[str, Any]:
    """The lines of an audit log, the newest first, and whether its chain holds."""
    log = AuditLog(file, "")
    try:
        lines, trouble = log.read(), ""
    except NotVerified as error:
        lines, trouble = [], str(error)
    frame = ("number", "time", "side", "who", "action", "previous", "hash")
    rows = [
        line | {"facts": {name: value for name, value in line.items() if name not in frame}}
        for line in reversed(lines[-MOST_LINES:])
    ]
    return {"lines": rows, "trouble": trouble, "total": len(lines)}


def _document(html: str) -> HTMLResponse:
    """A whole page of its own, in which nothing may run."""
    return HTMLResponse(html, headers={"Content-Security-Policy": DOCUMENT_POLICY})
