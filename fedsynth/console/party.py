"""The party administrator's page: budget, ledger, plans that wait, and one decision, an approval by typed digest.

It reads the home and writes nothing there. An approval goes to the worker, over the administrator's socket, as that of
`fedsynth node approve` does, after the same screen and with the same characters typed.
"""

from __future__ import annotations

import io
import json
from contextlib import closing
from hmac import compare_digest
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from rich.console import Console
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fed_node.consent import administration
from fed_node.consent.approvals import LONGEST_PLAN, Approvals
from fed_node.consent.offers import OFFERED
from fed_node.errors import StoreError
from fed_node.ledger.ledger import LedgerView
from fed_node.settings import LEDGER, PartySettings, budget_of, policy_at
from fedsynth import bounded_yaml
from fedsynth.commands.approving import TYPED_CHARACTERS, is_typed, show_screen
from fedsynth.commands.ledger_tables import MEANING
from fedsynth.console.aggregator import audit_facts
from fedsynth.console.guarding import Guard, form_key
from fedsynth.console.refusals import in_words
from fedsynth.console.site import Pages, application
from synth.audit_log import FILE
from synth.errors import FedsynthError, InputError
from synth.plan import Plan, parse_plan

LINKS = {"/": "Budget and plans", "/ledger": "Ledger", "/audit": "Audit log"}
MOST_ENTRIES = 300  # of the ledger on one page
MOST_BYTES = 3 * LONGEST_PLAN  # of a form: a plan, each letter of it escaped


def party_console(home: Path, token: str) -> Guard:
    console = PartyConsole(home, token)
    routes = [
        Route("/", console.overview),
        Route("/ledger", console.ledger),
        Route("/audit", console.audit),
        Route("/plans/{digest}", console.plan),
        Route("/look", console.look, methods=["POST"]),
        Route("/approve", console.approve, methods=["POST"]),
    ]
    return application(console.pages, [*routes], console.news, token)


class PartyConsole:
    def __init__(self, home: Path, token: str) -> None:
        self.home, self.key = home, form_key(token)
        self.party = PartySettings.load(home).name
        self.offered, self.approved = Approvals(home / OFFERED), Approvals(home / "approved")
        self.pages = Pages(f"Party {self.party}", LINKS)

    def overview(self, request: Request) -> Response:
        approved = self.approved.digests()
        waiting = [plan for digest in self.offered.digests() if digest not in approved for plan in self._plan(digest)]
        facts: dict[str, Any] = {
            "waiting": waiting,
            "approved": [plan for digest in approved for plan in self._plan(digest)],
        }
        refused = [line for line in audit_facts(self.home / FILE)["lines"] if line["action"] == "refuse"][:10]
        refusals = [(line["time"], line["facts"]["code"], in_words(line["facts"]["code"])) for line in refused]
        return self.pages.show("party.html", request, **facts, **self._budget(), refusals=refusals, key=self.key)

    def ledger(self, request: Request) -> Response:
        entries: list[Any] = []
        if (self.home / LEDGER).exists():
            with closing(LedgerView(self.home / LEDGER)) as view:
                entries = view.history()[-MOST_ENTRIES:]
        return self.pages.show("ledger.html", request, entries=list(reversed(entries)), meaning=MEANING)

    def audit(self, request: Request) -> Response:
        return self.pages.show("audit.html", request, **audit_facts(self.home / FILE))

    def plan(self, request: Request) -> Response:
        found = self._plan(request.path_params["digest"])
        if not found:
            raise InputError("there is no such plan here; paste it on the first page.")
        return self._screen(request, found[0])

    async def look(self, request: Request) -> Response:
        """The screen of a plan that somebody pasted."""
        plan = _read((await self._form(request)).get("plan", ""))
        return await run_in_threadpool(self._screen, request, plan)

    async def approve(self, request: Request) -> Response:
        form = await self._form(request)
        plan = _read(form.get("plan", ""))
        return await run_in_threadpool(self._approve, request, plan, form.get("typed", ""))

    def news(self) -> str:
        files = [self.home / LEDGER, self.home / FILE, self.home / f"{LEDGER}-wal", self.home / OFFERED]
        return str([path.stat().st_mtime_ns if path.exists() else 0 for path in [*files, self.home / "approved"]])

    def _approve(self, request: Request, plan: Plan, typed: str) -> Response:
        if not is_typed(plan, typed):
            return self._screen(request, plan, "That is not the end of this plan's digest. Nothing was approved.")
        _screen_text(plan, self.home)  # refuses, in words, what the worker would refuse by a code
        administration.ask_to_approve(self.home, plan)
        return RedirectResponse(f"/plans/{plan.digest()}", 303)

    def _screen(self, request: Request, plan: Plan, trouble: str = "") -> Response:
        try:
            text, forbidden = _screen_text(plan, self.home), ""
        except FedsynthError as error:
            text, forbidden = "", str(error)
        return self.pages.show(
            "plan.html",
            request,
            422 if trouble else 200,
            plan=plan,
            text=text,
            forbidden=forbidden,
            trouble=trouble,
            is_approved=self.approved.has(plan.digest()),
            content=json.dumps(plan.model_dump(mode="json", by_alias=True)),
            characters=TYPED_CHARACTERS,
            key=self.key,
        )

    def _plan(self, digest: str) -> list[Plan]:
        """The plan of that digest, if it is here and can be read."""
        for place in (self.approved, self.offered):
            try:
                return [place.get(digest)]
            except FedsynthError:
                continue
        return []

    def _budget(self) -> dict[str, Any]:
        """What may be spent, what was, what is set aside; empty where the ledger cannot be read now."""
        budget = budget_of(PartySettings.load(self.home), policy_at(self.home))
        facts: dict[str, Any] = {"budget": budget, "spent": 0.0, "committed": 0.0, "reservations": [], "ledger": ""}
        if not (self.home / LEDGER).exists():
            return facts
        try:
            with closing(LedgerView(self.home / LEDGER)) as view:
                facts |= {"spent": view.spent().epsilon, "committed": view.committed().epsilon}
                facts |= {"reservations": view.reservations()}
        except StoreError as error:
            facts["ledger"] = str(error)
        return facts

    async def _form(self, request: Request) -> dict[str, str]:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BYTES:
                raise InputError("that is larger than any plan.")
        form = {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
        if not compare_digest(form.get("key", "").encode(), self.key.encode()):
            raise InputError("this form is not of this console, or it started again since; load the page again.")
        return form


def _screen_text(plan: Plan, home: Path) -> str:
    """What `fedsynth node approve` shows, letter by letter."""
    out = io.StringIO()
    show_screen(Console(file=out, width=80, highlight=False, no_color=True), plan, home)
    return out.getvalue()


def _read(text: str) -> Plan:
    """A plan as people paste it; its schema must be in it, as no file lies beside a form."""
    if not text.strip() or len(text) > LONGEST_PLAN:
        raise InputError("paste a whole plan, with its schema in it (`fedsynth plan` makes such a file).")
    try:
        content = bounded_yaml.load(text)
    except (ValueError, FedsynthError) as error:
        raise InputError(f"that is no YAML or JSON: {error}") from None
    if not isinstance(content, dict) or isinstance(content.get("schema"), str):
        raise InputError("that is no plan with its schema in it; the consortium's one file has both.")
    return parse_plan(content)
