"""A process that shows the metrics that a test gives it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def metrics_process() -> Iterator[list[str]]:
    """Texts that the process shows, one after the other and the last again; its address is the first item,
    until then.
    """
    texts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write((texts.pop(0) if len(texts) > 1 else texts[0]).encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    texts.append(f"127.0.0.1:{server.server_port}")
    try:
        yield texts
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
