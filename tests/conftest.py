"""What holds for all tests."""

from __future__ import annotations

import signal

# A job in the background of a shell has SIGINT ignored, which children inherit: tests that interrupt need it back.
signal.signal(signal.SIGINT, signal.default_int_handler)
