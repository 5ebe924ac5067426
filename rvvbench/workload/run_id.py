"""Names of runs: when, what, and enough chance to be unique."""

from __future__ import annotations

import datetime
import secrets


def new_run_id(experiment: str, now: datetime.datetime, suffix: str | None = None) -> str:
    """E.g. `20261130T221500Z-llama-one-batch-1a2b3c`; sorts by time. `now` must be in UTC."""
    if now.utcoffset() != datetime.timedelta(0):
        raise ValueError("run ids bear UTC times")
    return f"{now:%Y%m%dT%H%M%SZ}-{experiment}-{suffix or secrets.token_hex(3)}"
