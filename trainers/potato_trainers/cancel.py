"""Signals: SIGTERM and SIGINT end the run as cancelled; SIGUSR1 says that the scheduler will soon, and asks to save.

The signal is raised in the main thread as Cancelled, so that files are closed and temporary ones removed. Long
computations in C never come back to the interpreter, and a trainer may swallow the exception; therefore a thread waits
on the signal's own pipe and ends the process itself when the main thread has not done so shortly after.
"""

import os
import signal
import threading

PATIENCE_S = 1.5


class Cancelled(BaseException):
    """The run was asked to stop. Not an Exception: `except Exception` in a trainer must not hold it up."""


class Cancellation:
    """Listens for the signals of one run."""

    def __init__(self, last_words, runs_out):
        self._last_words = last_words  # called from the thread when the main one did not get to it; must not raise
        self._runs_out = runs_out  # called in the main thread, between any two steps
        self._over = threading.Event()

    def listen(self):
        """Installs the handlers; the main thread's to call."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._raise)
        signal.signal(signal.SIGUSR1, lambda number, frame: self._runs_out())
        threading.Thread(target=self._watch, args=(reader,), name="cancel", daemon=True).start()

    def over(self):
        """The run has its end; signals are ignored from now on."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        self._over.set()

    def _raise(self, number, frame):
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)  # the cleanup is not to be interrupted by an impatient second signal
        raise Cancelled()

    def _watch(self, reader):
        while True:
            got = os.read(reader, 64)
            if any(byte in (signal.SIGTERM, signal.SIGINT) for byte in got):
                break
        if not self._over.wait(PATIENCE_S):
            self._last_words()
