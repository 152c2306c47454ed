"""Flower's SuperLink with its log as JSON lines: `python -m aggregator.server.superlink`, with Flower's own flags."""

from __future__ import annotations

import logging
import sys

from flwr.superlink.cli.flower_superlink import flower_superlink

from synth.json_logs import log_as_json


def main() -> None:
    log_as_json()
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)  # the edge's log has the requests
    unchanged = {"version": 1, "disable_existing_loggers": False, "incremental": True}
    vars(sys.modules[flower_superlink.__module__])["get_uvicorn_log_config"] = lambda _: unchanged
    flower_superlink()


if __name__ == "__main__":
    main()
