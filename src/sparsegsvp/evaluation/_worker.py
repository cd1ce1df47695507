"""A process that computes what it is sent, and can be stopped at any moment.

Run by :mod:`._workers`, never by hand. Messages are a length and a pickle, over pipes that
only parent and child hold. The computation runs in the main thread; a second thread reads
the requests, and ends the process when the parent is gone, however it went.
"""

from __future__ import annotations

import os
import queue
import struct
import sys
import threading
import traceback
from typing import Any, BinaryIO

try:  # joblib brings it: as a dependency since 1.6, as a part of itself before
    import cloudpickle
except ImportError:  # pragma: no cover
    from joblib.externals import cloudpickle

_HEADER = struct.Struct("<Q")


def write_message(stream: BinaryIO, payload: bytes) -> None:
    """Write one message."""
    stream.write(_HEADER.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def read_message(stream: BinaryIO) -> bytes | None:
    """Read one message; None at the end of the stream."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    (size,) = _HEADER.unpack(header)
    payload = stream.read(size)
    return payload if len(payload) == size else None


def _read_requests(stream: BinaryIO, requests: queue.Queue[bytes]) -> None:
    while (payload := read_message(stream)) is not None:
        requests.put(payload)
    os._exit(0)


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    # what estimators print must not reach the pipe
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True).start()
    shared: Any = None
    while True:
        try:
            kind, content = cloudpickle.loads(requests.get())
            if kind == "shared":
                shared = content
                continue
            function, arguments = content
            for part in function(shared, *arguments):
                write_message(answers, cloudpickle.dumps(("part", part)))
            answer: tuple[str, str | None] = ("done", None)
        except Exception as error:
            lines = traceback.format_exception_only(error)
            answer = ("error", lines[-1].strip())
        write_message(answers, cloudpickle.dumps(answer))


if __name__ == "__main__":
    main()
