"""What all tests share."""

from __future__ import annotations

import contextlib
import signal

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # Started in the background a shell makes its children deaf to Ctrl-C, and theirs; the
    # tests of interrupts need it heard.
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.default_int_handler)
