"""The events of the worker protocol, version 1: the constructors that trainers yield, and the stream that writes them.

A line is written whole by one write(2), so whoever follows the file sees lines and never halves of two.
"""

import json
import math
import os
import stat
import threading
import time

PROTOCOL = 1
MAX_TEXT = 8192  # characters of one log line or message; a trainer that logs its data must not flood the server
PROGRESS_EVERY_S = 0.25
SYNC_EVERY_S = 1.0


def status(step, state="running"):
    """The step line: what the run is doing now, as a few words."""
    return {"event": "status", "state": state, "step": step}


def progress(phase, current, total, eta_s=None):
    """How far a phase (`fit`, `predict`) has come. Yield as often as you like: what comes too fast is dropped."""
    return {"event": "progress", "phase": phase, "current": current, "total": total, "eta_s": eta_s}


def metric(split, name, value, step=None, schema=None):
    """One figure of a curve. Held-out scores of the result are the server's; these are for watching."""
    event = {"event": "metric", "split": split, "name": name, "value": value, "step": step}
    if schema is not None:
        event["schema"] = schema
    return event


def log(msg, level="info"):
    """A line for the run's log; level is info, warning or error."""
    return {"event": "log", "level": level, "msg": msg}


def artifact(path):
    """A file of the model is complete; path is relative to the working directory. Its size is filled in."""
    return {"event": "artifact", "path": path}


def done(metrics=None, label_order=(), notes=(), model_version="", metrics_by_schema=None):
    """The trainer's last word. metrics are of training alone and flat: n_train, train_accuracy, train_seconds."""
    return {
        "event": "done",
        "metrics": metrics or {},
        "label_order": list(label_order),
        "notes": list(notes),
        "model_version": model_version,
        "metrics_by_schema": metrics_by_schema,
    }


class EventStream:
    """Writes events to a file descriptor, one line each."""

    def __init__(self, fd, durable):
        self._fd = fd
        self._durable = durable  # a file that others follow is synced, a pipe cannot be
        self._lock = threading.RLock()
        self._torn = False
        self._synced_at = 0.0
        self._progress = {}

    @classmethod
    def to_file(cls, path):
        """Appends to a file; a line that an earlier writer left half written is ended first."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        about = os.fstat(fd)
        stream = cls(fd, durable=stat.S_ISREG(about.st_mode))
        size = about.st_size
        stream._torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        return stream

    @classmethod
    def to_stdout(cls):
        """Takes standard output for the events alone; what anything else prints goes to standard error from now on."""
        fd = os.dup(1)
        os.dup2(2, 1)
        return cls(fd, durable=False)

    def emit(self, event):
        """Writes one event, unless it is a progress that comes too soon after the last one."""
        now = time.time()
        kind = event["event"]
        if kind == "progress" and not self._due(event):
            return
        line = {"v": PROTOCOL, "event": kind, "t": now}
        line.update(_plain(event))
        data = (json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n").encode("ascii")
        # A signal may raise between any two steps here, hence the mark of a torn line and the re-entrant lock.
        with self._lock:
            if self._torn:
                data = b"\n" + data
            self._torn = True
            while data:
                data = data[os.write(self._fd, data) :]
            self._torn = False
            self._sync(kind)

    def _sync(self, kind):
        if not self._durable:
            return
        now = time.monotonic()
        if kind in ("result", "error") or now - self._synced_at >= SYNC_EVERY_S:
            os.fsync(self._fd)
            self._synced_at = now

    def _due(self, event):
        """Throttles progress within a phase, and estimates what is left when the trainer did not."""
        now = time.monotonic()
        phase, current, total = event["phase"], event["current"], event["total"]
        last = self._progress
        if last.get("phase") != phase or current < last["current"]:
            last = self._progress = {"phase": phase, "began": now, "first": current, "sent": 0.0}
        last["current"] = current
        if now - last["sent"] < PROGRESS_EVERY_S and current < total:
            return False
        last["sent"] = now
        made = current - last["first"]
        if event["eta_s"] is None and made > 0:
            event["eta_s"] = round((now - last["began"]) / made * (total - current), 1)
        return True


def _plain(value):
    """Makes a value JSON: numbers of numpy become Python's, what is not a number becomes null, long texts are cut."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else value[:MAX_TEXT] + " … (cut)"
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if not isinstance(value, float) and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (bool, int, str)) else str(value)
