"""What holds for all tests."""

from __future__ import annotations

import signal

from hypothesis import settings

# A job in the background of a shell has SIGINT ignored, which children inherit: tests that interrupt need it back.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test is timed: on a busy machine a single example can take longer than hypothesis allows by default.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
