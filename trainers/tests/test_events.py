"""The stream of events: what a follower of the file may count on."""

import json
import os

from potato_trainers.events import EventStream, log


def counted(monkeypatch, name):
    calls = []
    real = getattr(os, name)
    monkeypatch.setattr(os, name, lambda *args: calls.append(args) or real(*args))
    return calls


def test_a_line_is_one_write_and_syncs_are_rare(tmp_path, monkeypatch):
    path = str(tmp_path / "events.jsonl")
    stream = EventStream.to_file(path)
    writes, syncs = counted(monkeypatch, "write"), counted(monkeypatch, "fsync")
    for i in range(500):
        stream.emit(log("line %d" % i))
    assert len(writes) == 500 and all(data.endswith(b"\n") and data.count(b"\n") == 1 for _, data in writes)
    assert len(syncs) <= 3  # the first, and one a second
    before = len(syncs)
    stream.emit({"event": "result", "status": "success"})
    stream.emit({"event": "error", "code": "x", "message": "y"})
    assert len(syncs) == before + 2
    assert len(open(path).read().splitlines()) == 502


def test_a_write_that_takes_only_a_part(tmp_path, monkeypatch):
    path = str(tmp_path / "events.jsonl")
    stream = EventStream.to_file(path)
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
    stream.emit(log("a line of more than seven bytes"))
    assert json.loads(open(path).read())["msg"] == "a line of more than seven bytes"


def test_a_line_that_was_interrupted_does_not_spoil_the_next(tmp_path, monkeypatch):
    """A cancel may raise in the middle of a line."""
    path = str(tmp_path / "events.jsonl")
    stream = EventStream.to_file(path)
    real = os.write

    def interrupted(fd, data):
        real(fd, data[:20])
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupted)
    try:
        stream.emit(log("first"))
    except KeyboardInterrupt:
        pass
    monkeypatch.setattr(os, "write", real)
    stream.emit(log("second"))
    lines = open(path).read().splitlines()
    assert len(lines) == 2 and json.loads(lines[1])["msg"] == "second"
