"""The budget, as a party's own monitoring reads it."""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from fed_node.ledger.ledger import Budget, Ledger
from fed_node.process.prometheus import BudgetMetrics
from synth.metrics_page import serve_metrics


def test_the_budget_is_served_and_nothing_else(tmp_path: Path) -> None:
    metrics = BudgetMetrics("north", tmp_path / "ledger.sqlite")
    server = serve_metrics(metrics.text, 0)
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        assert "fedsynth_ledger_readable 0" in urllib.request.urlopen(f"{url}/metrics").read().decode()
        with closing(Ledger(tmp_path / "ledger.sqlite", "default", Budget(3.0, 1e-6))):
            page = urllib.request.urlopen(f"{url}/metrics").read().decode()
        assert 'fedsynth_epsilon_budget{party="north",dataset="default"} 3.0\n' in page
        assert 'fedsynth_epsilon_spent{party="north",dataset="default"} 0.0\n' in page
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}/")
    finally:
        server.shutdown()
        server.server_close()
