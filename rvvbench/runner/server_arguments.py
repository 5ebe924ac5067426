"""The command line of SGLang's server, from fields of its ServerArgs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

HOST = "127.0.0.1"


def flags(server_args: Mapping[str, Any], port: int) -> list[str]:
    """`a_b` becomes `--a-b`: true stands alone, false and null are left out, a list gives its members, an object its
    JSON. Host and port come last.
    """
    line: list[str] = []
    for field, value in server_args.items():
        if value is None or value is False:
            continue
        line.append("--" + field.replace("_", "-"))
        if isinstance(value, list | tuple):
            line += [str(member) for member in value]
        elif value is not True:
            line.append(json.dumps(value) if isinstance(value, dict) else str(value))
    return [*line, "--host", HOST, "--port", str(port)]
