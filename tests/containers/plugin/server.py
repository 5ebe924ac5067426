"""A stock server of SGLang in this container, on loopback, and its client from the standard library."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEADLINE_S = 1800.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """`python -m sglang.launch_server --model-path MODEL FLAGS...`"""

    def __init__(self, name: str, model: str, *flags: str) -> None:
        self.port = free_port()
        self.log = Path(f"/tmp/{name}.log")
        command = ("-m", "sglang.launch_server", "--model-path", model, "--device", "cpu", "--port", str(self.port))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command, *flags], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def ready(self) -> Server:
        """Wait until it answers."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.log.read_text()[-3000:]}")
            try:
                if self.request("GET", "/health")[0] == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.2)
        raise RuntimeError(f"the server was not ready: {self.log.read_text()[-3000:]}")

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), JSON)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def info(self) -> dict[str, Any]:
        status, body = self.request("GET", "/server_info")
        assert status == 200, body
        answer: dict[str, Any] = json.loads(body)
        return answer

    def generate(self, ids: list[int], tokens: int, **more: Any) -> dict[str, Any]:
        """The whole answer to one request."""
        status, body = self.request("POST", "/generate", asked(ids, tokens) | more)
        assert status == 200, body
        answer: dict[str, Any] = json.loads(body)
        return answer

    def stream(self, ids: list[int], tokens: int) -> Iterator[dict[str, Any]]:
        """The answer as it comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("POST", "/generate", json.dumps(asked(ids, tokens) | {"stream": True}), JSON)
        for line in connection.getresponse():
            text = line.decode().strip().removeprefix("data: ")
            if text and text != "[DONE]":
                yield json.loads(text)
        connection.close()

    def flush(self) -> None:
        """Empty the radix cache."""
        status, body = self.request("POST", "/flush_cache")
        assert status == 200, body

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


JSON = {"Content-Type": "application/json"}


def asked(ids: list[int], tokens: int) -> dict[str, Any]:
    sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
    return {"input_ids": ids, "sampling_params": sampling}
