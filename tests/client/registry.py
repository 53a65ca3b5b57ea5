"""A schema registry over HTTP, which the test may have fail."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeRegistry:
    """Serves schemas by id, and by subject and version, and registers them, as Confluent's registry does.

    A second schema of a subject is incompatible with the first.
    """

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, int] = {}
        self.asked: list[str] = []
        #: Status of all responses, if it is not 0.
        self.status = 0
        #: Responses wait for it.
        self.answers = threading.Event()
        self.answers.set()
        registry = self

        class Requests(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.respond(None)

            def do_POST(self) -> None:
                self.respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def respond(self, given: Any) -> None:
                path = self.path.split("?")[0]
                registry.asked.append(path)
                registry.answers.wait(60)
                status, body = registry.response(path.strip("/").split("/"), given)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def add(self, schema: str, kind: str = "AVRO", *, subject: str = "", refers: Any = ()) -> int:
        """The id of a new schema; ``refers`` to (name, subject) of others."""
        schema_id = 100 + len(self.schemas)
        references = [{"name": name, "subject": of, "version": 1} for name, of in refers]
        self.schemas[schema_id] = {"schema": schema, "schemaType": kind, "references": references}
        if subject:
            self.subjects[subject] = schema_id
        return schema_id

    def response(self, path: list[str], given: Any) -> tuple[int, Any]:
        if self.status:
            return self.status, {"error_code": self.status, "message": "told to fail"}
        match path:
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return 200, self.schemas[int(number)]
            case ["subjects", subject, "versions"] if given is not None:
                if subject not in self.subjects:
                    self.add(given["schema"], given.get("schemaType", "AVRO"), subject=subject)
                elif self.schemas[self.subjects[subject]]["schema"] != given["schema"]:
                    return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
                return 200, {"id": self.subjects[subject]}
            case ["subjects", subject] if given is not None and subject in self.subjects:
                if (own := self.schemas[self.subjects[subject]])["schema"] == given["schema"]:
                    return 200, {"subject": subject, "version": 1, "id": self.subjects[subject], **own}
            case ["subjects", subject, "versions", "1" | "latest"] if subject in self.subjects:
                schema_id = self.subjects[subject]
                return 200, {"subject": subject, "version": 1, "id": schema_id, **self.schemas[schema_id]}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def close(self) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()


def framed(schema_id: int, content: bytes) -> bytes:
    """Bytes as Confluent's serializers write them."""
    return b"\0" + schema_id.to_bytes(4, "big") + content
