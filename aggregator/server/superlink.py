"""Flower's SuperLink with its log as JSON lines: `python -m aggregator.server.superlink`, with Flower's own flags."""

from __future__ import annotations

import logging

import uvicorn.config
from flwr.superlink.cli.flower_superlink import flower_superlink

from synth.json_logs import log_as_json


def main() -> None:
    log_as_json()
    for name in ("uvicorn", "uvicorn.access"):  # uvicorn configures logging anew when it starts
        uvicorn.config.LOGGING_CONFIG["loggers"].pop(name, None)
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)  # the edge's log has the requests
    flower_superlink()


if __name__ == "__main__":
    main()
