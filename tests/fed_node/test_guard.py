"""Whatever breaks at a party, the aggregator sees a fixed code: no cell, no path, no exception text."""

from __future__ import annotations

import logging

import pandas as pd
import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.task_identity import TaskIdentity

from fed_node.guard import REFUSED, guard
from synth.errors import BudgetError

SECRET = "secret-diagnosis-F20.0"


def reply_of(failure: Exception | None) -> Message:
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 0
    app = ClientApp(mods=[guard])

    @app.query("ask")
    def ask(message: Message, context: Context) -> Message:
        if failure is not None:
            raise failure
        pd.Series([SECRET]).astype("float64")  # the error text of pandas carries the cell
        raise AssertionError

    message = Message(RecordDict({"options": ConfigRecord()}), dst_node_id=7, message_type="query.ask")
    context = Context(1, 7, node_config={"party": "north"}, state=RecordDict(), run_config={})
    return app(message, context)


def test_a_pandas_error_crosses_as_a_code_only(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("fed_node").propagate = True
    with pytest.raises(ValueError, match=SECRET):  # the danger is real
        pd.Series([SECRET]).astype("float64")
    reply = reply_of(None)
    assert reply.has_error()
    assert reply.error.code == REFUSED
    assert reply.error.reason == "north/internal"
    assert SECRET not in repr(vars(reply.error))


def test_our_own_errors_cross_as_their_code(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("fed_node").propagate = True
    reply = reply_of(BudgetError(f"row 17 holds {SECRET}"))
    assert reply.error.reason == "north/budget-exceeded"
    assert "budget-exceeded" in caplog.text
