"""A server that looks like SGLang's from outside: /health, /server_info and /generate, and the ways in which one fails.

`FAKE` in its environment is what it does: see the tests. Prompts that start with 13, or words that start with a
carriage return, are answered by a failure. The answer to words is " 1 2 3", as long as it may be.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UNLUCKY = 13
BEHAVIOUR = os.environ.get("FAKE", "")
LOCK = threading.Lock()
calls = {"qkv_proj": 0}


def arguments(line: list[str]) -> dict[str, object]:
    """What /server_info tells: every flag as SGLang would read it."""
    given: dict[str, object] = {}
    for index, text in enumerate(line):
        if text.startswith("--"):
            value = line[index + 1] if index + 1 < len(line) else "--"
            if value.startswith("--"):
                given[text[2:].replace("-", "_")] = True
            else:
                given[text[2:].replace("-", "_")] = int(value) if value.isdigit() else value
    return {"absent": None, "off": False, **given}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        if self.path == "/health":
            self.answer(503 if BEHAVIOUR == "unready" else 200, b"")
            return
        told = {"pid": SCHEDULER, "platform_class": "sglang_rvv.platform.RvvPlatform", "torch_threads": 1}
        if BEHAVIOUR == "another platform":
            told["platform_class"] = "sglang.srt.platforms.cpu.CpuPlatform"
        if BEHAVIOUR == "more threads":
            told["torch_threads"] = 2
        with LOCK:
            routing = [{"projection": name, "m": 1, "path": "torch", "calls": n} for name, n in calls.items()]
        state = {"rvv": {**told, "library_sha256": None, "ops": {}, "routing": routing}}
        if BEHAVIOUR == "compiles":
            report = {"graphs": 2, "inductor": {"fxgraph_cache_hit": 2}, "aot_autograd": {"autograd_cache_hit": 2}}
            state["rvv"]["compiled"] = {**report, "compile_seconds": 1.5, "artifacts": []}
        if BEHAVIOUR == "no plugin":
            del state["rvv"]
        info = {**arguments(sys.argv[1:]), "internal_states": [state]}
        if BEHAVIOUR == "other arguments":
            info |= {"random_seed": 1, "disable_radix_cache": False}
        if BEHAVIOUR == "another server":
            info |= {"port": 1}
        self.answer(200, json.dumps(info).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = "text" in body
        asked = list(body["text"].encode()) if words else body["input_ids"]
        unlucky = asked[0] == UNLUCKY
        if BEHAVIOUR == "never generates":
            threading.Event().wait()
        if unlucky and BEHAVIOUR == "dies":
            print("out of memory, perhaps", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if unlucky and BEHAVIOUR == "worker dies":
            WORKER.kill()
        if (unlucky and BEHAVIOUR == "refuses") or BEHAVIOUR == "refuses all":
            self.answer(400, b"no")
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        wanted = body["sampling_params"]["max_new_tokens"]
        for count in range(1, wanted + 1):
            with LOCK:
                calls["qkv_proj"] += 1
            meta = {"prompt_tokens": len(asked), "completion_tokens": count, "cached_tokens": 0}
            finish = {"type": "length", "length": wanted} if count == wanted else None
            first = count - 1 if "--incremental-streaming-output" in sys.argv else 0
            text = {"text": "".join(f" {one + 1}" for one in range(first, count))} if words else {}
            ids = list(range(first, count))
            self.event({**text, "output_ids": ids, "meta_info": {**meta, "finish_reason": finish}})
            if unlucky and BEHAVIOUR in ("hangs", "hangs, stubborn", "worker dies"):
                print("hanging", flush=True)
                threading.Event().wait()
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def event(self, document: object) -> None:
        self.chunk(b"data: " + json.dumps(document).encode() + b"\n\n")

    def chunk(self, body: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
        self.wfile.flush()

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


print("starting", flush=True)
if BEHAVIOUR == "dies at start":
    print("no such model", flush=True)
    sys.exit(7)
if BEHAVIOUR == "port taken":
    at = ("127.0.0.1", int(str(arguments(sys.argv[1:])["port"])))
    print(f"[Errno 98] error while attempting to bind on address {at!r}: address already in use", flush=True)
    sys.exit(1)
if BEHAVIOUR in ("stubborn", "hangs, stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
if BEHAVIOUR == "never listens":
    while True:
        time.sleep(1)
# A worker, which a server leaves behind when it is killed; its name is what SGLang gives to its own.
NAMED = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'sglang::scheduler'); print(1, flush=True); time.sleep(60)"
WORKER = subprocess.Popen([sys.executable, "-c", NAMED], stdout=subprocess.PIPE)
assert WORKER.stdout is not None
WORKER.stdout.readline()
SCHEDULER = WORKER.pid
server = ThreadingHTTPServer(("127.0.0.1", int(str(arguments(sys.argv[1:])["port"]))), Handler)
server.daemon_threads = True
server.serve_forever()
