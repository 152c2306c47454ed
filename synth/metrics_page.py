"""One page for Prometheus, GET /metrics, and nothing else: for processes that have no web server of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve_metrics(text: Callable[[], str], port: int) -> ThreadingHTTPServer:
    """Answer with what `text` says at that moment, in threads of its own, until `shutdown`."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            content = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Scrapes are not worth a line each."""

    server = ThreadingHTTPServer(("", port), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
