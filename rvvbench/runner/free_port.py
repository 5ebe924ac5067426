"""A TCP port of the loopback that nobody listens on."""

from __future__ import annotations

import errno
import socket

from .failure import ServingFailed
from .server_arguments import HOST


def free_port(wanted: int | None) -> int:
    """`wanted`, or one that the kernel chooses. Raises ServingFailed when it is in use.

    Between this and the server's own bind somebody could take it; in a network of its own nobody is there to do so.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted or 0))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise ServingFailed("port-in-use", f"port {wanted} of {HOST} is in use") from error
        port: int = probe.getsockname()[1]
    return port
