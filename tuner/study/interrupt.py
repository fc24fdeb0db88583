"""Ctrl-C and SIGTERM: the first ends a run cleanly, the second at once."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
JOIN_TIMEOUT_S = 1.0


@contextmanager
def interruptible(
    stop: Callable[[], None], say: Callable[[str], None], *, grace_s: float
) -> Iterator[None]:
    """Call ``stop`` at the first signal, ``say`` with the signal's name, and let the block go on.

    A second signal, or ``grace_s`` seconds without the block's end, raises KeyboardInterrupt in it.
    ``stop`` is called between any two instructions of the block, so it may only set a flag;
    ``say`` is called in a thread of its own. Python allows handlers in the main thread only;
    elsewhere this does nothing. A signal that is ignored stays ignored: who starts a run by a
    script's ``&`` means it. The handlers that were there before come back at the end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    has_ended = threading.Event()
    seen: list[int] = []

    reminders: list[threading.Thread] = []

    def remind(number: int) -> None:
        try:
            say(signal.Signals(number).name)
        finally:
            if not has_ended.wait(grace_s):
                _wake_main_thread(number)

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # a handler's form
        if has_ended.is_set():
            return
        seen.append(number)
        if len(seen) > 1:
            raise KeyboardInterrupt
        stop()
        reminder = threading.Thread(target=remind, args=(number,), name="interrupt", daemon=True)
        reminders.append(reminder)
        reminder.start()

    taken = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in taken}
    try:
        yield
    finally:
        has_ended.set()
        for reminder in reminders:
            reminder.join(JOIN_TIMEOUT_S)  # its signal must not meet the handlers of before
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _wake_main_thread(number: int) -> None:
    """Send the signal to the main thread itself: one to another thread does not end its wait."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:
        _thread.interrupt_main(signal.Signals(number))
