"""A Hub on loopback with what huggingface_hub asks for: revision information, file tree, HEAD and GET of files."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


def blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class HubDouble:
    """One repository at one revision, of a model or of data (`space` "datasets"). `served` replaces content on the
    wire; `sha` is what the revision resolves to.
    """

    repo: str
    revision: str
    files: dict[str, bytes]
    gated_token: str | None = None
    sha: str | None = None
    endpoint: str = ""
    served: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    space: str = "models"

    def start(self) -> None:
        """Serve at `endpoint` until `stop`."""
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: object) -> None:
                pass

            def do_HEAD(self) -> None:
                double.answer(self, with_body=False)

            def do_GET(self) -> None:
                double.answer(self, with_body=True)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, with_body: bool) -> None:
        path = unquote(urlsplit(request.path).path)
        self.requests.append(f"{request.command} {path}")
        status, headers, body = self.respond(path, request.headers.get("authorization"))
        request.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        if with_body:
            request.wfile.write(body)

    def respond(self, path: str, authorization: str | None) -> tuple[int, dict[str, str], bytes]:
        place = "" if self.space == "models" else f"/{self.space}"
        api, files = f"/api/{self.space}/{self.repo}/", f"{place}/{self.repo}/resolve/"
        if not path.startswith((api, files)):
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        sha = self.sha or self.revision
        if path.startswith(api):
            what, _, revision = path.removeprefix(api).partition("/")
            if revision.split("/")[0] not in (self.revision, sha):
                return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
            body: Any = {"id": self.repo, "sha": sha, "siblings": [self.sibling(name) for name in self.files]}
            if what == "tree":
                body = [self.entry(name) for name in self.files]
            return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()
        if self.gated_token is not None and authorization != f"Bearer {self.gated_token}":
            return 401, {"X-Error-Code": "GatedRepo"}, b"{}"
        revision, _, name = path.removeprefix(files).partition("/")
        if revision != self.revision:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        if name not in self.files:
            return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"
        etag = self.sha256(name) if self.large(name) else blob_id(self.files[name])
        return 200, {"ETag": f'"{etag}"', "X-Repo-Commit": sha}, self.served.get(name, self.files[name])

    def large(self, name: str) -> bool:
        return name.endswith((".safetensors", ".parquet"))

    def sha256(self, name: str) -> str:
        return hashlib.sha256(self.files[name]).hexdigest()

    def lfs(self, name: str) -> dict[str, Any]:
        content = self.files[name]
        return {
            "lfs": {"sha256": self.sha256(name), "oid": self.sha256(name), "size": len(content), "pointerSize": 130}
        }

    def sibling(self, name: str) -> dict[str, Any]:
        content = self.files[name]
        entry = {"rfilename": name, "size": len(content), "blobId": blob_id(content)}
        return {**entry, **(self.lfs(name) if self.large(name) else {})}

    def entry(self, name: str) -> dict[str, Any]:
        content = self.files[name]
        entry = {"type": "file", "path": name, "size": len(content), "oid": blob_id(content)}
        return {**entry, **(self.lfs(name) if self.large(name) else {})}
