"""A server that looks like SGLang's from outside and answers words by a script: for each text that a prompt ends with,
the answer. It runs with all that its spec gives it, counts what its passes would compute, and keeps the words that all
prompts begin with in a cache.

`SPEC` and `SCRIPT` in its environment are files of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SPEC = json.loads(Path(os.environ["SPEC"]).read_text())
SCRIPT = json.loads(Path(os.environ["SCRIPT"]).read_text())
LAYERS = 2
PORT = int(sys.argv[sys.argv.index("--port") + 1])
LOCK = threading.Lock()
routed: Counter[tuple[str, int]] = Counter()
seen: list[list[str]] = []


def passed(rows: int, attention: str) -> None:
    """A pass over so many rows."""
    of_layers = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj", attention, "gated_activation", "rotary_embedding")
    for name in of_layers:
        routed[name, rows] += LAYERS
    routed["norm", rows] += 2 * LAYERS + 1
    routed["lm_head", 1] += 1


def cached(words: list[str]) -> int:
    """How many of the words a prompt of before began with too; the last is always computed."""
    common = 0
    for before in seen:
        same = next((i for i, pair in enumerate(zip(words, before, strict=False)) if len(set(pair)) > 1), len(before))
        common = max(common, min(same, len(words) - 1))
    seen.append(words)
    return common


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        if self.path == "/health":
            self.answer(b"")
            return
        told = {"pid": os.getpid(), "platform_class": "sglang_rvv.platform.RvvPlatform", "torch_threads": 1}
        with LOCK:
            routing = [{"projection": p, "m": m, "path": "torch", "calls": n} for (p, m), n in routed.items()]
        state = {"rvv": {**told, "library_sha256": None, "ops": {}, "routing": routing}}
        info = {**SPEC["server_args"], "host": "127.0.0.1", "port": PORT, "internal_states": [state]}
        self.answer(json.dumps(info).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = next((text for end, text in SCRIPT.items() if body["text"].endswith(end)), "")
        stop, most = body["sampling_params"]["stop"], body["sampling_params"]["max_new_tokens"]
        prompt, words = body["text"].split(), said.split(" ")[:most]
        finish = {"type": "length", "length": most} if len(words) == most else {"type": "stop", "matched": stop[0]}
        with LOCK:
            meta = {"prompt_tokens": len(prompt), "cached_tokens": cached(prompt)}
            passed(meta["prompt_tokens"] - meta["cached_tokens"], "extend_attention")
            for _ in words[1:]:
                passed(1, "decode_attention")
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for count in sorted({1, len(words)}):
            ended = {"completion_tokens": count, "finish_reason": finish if count == len(words) else None}
            text = " ".join(words[:count])
            self.event({"text": text, "output_ids": list(range(count)), "meta_info": {**meta, **ended}})
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def event(self, document: object) -> None:
        self.chunk(b"data: " + json.dumps(document).encode() + b"\n\n")

    def chunk(self, body: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
        self.wfile.flush()

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
server.daemon_threads = True
server.serve_forever()
