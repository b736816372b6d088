"""When a long run should end: a time limit or a signal. Loops ask between two results; nothing is torn."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Says whether it is time to end."""

    def __init__(self, minutes: float | None = None) -> None:
        self._end = None if minutes is None else time.monotonic() + 60 * minutes
        self.signal: str | None = None
        """Name of the signal that asked for the end."""

    @property
    def reached(self) -> bool:
        return self.signal is not None or (self._end is not None and time.monotonic() >= self._end)

    def __str__(self) -> str:
        return f"stopped by {self.signal}" if self.signal else "the time is over"


@contextmanager
def stopping(minutes: float | None = None) -> Iterator[Stop]:
    """A `Stop` that SIGTERM and SIGINT also reach; the same signal once more ends the process as usual.

    Outside of the main thread, where Python takes no signals, only the time counts.
    """
    stop = Stop(minutes)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def reached(number: int, frame: FrameType | None) -> None:
        stop.signal = signal.Signals(number).name
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, reached)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
