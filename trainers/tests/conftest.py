"""Runs the real worker in a real process, on bundles that the tests write."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
WORKER = os.path.join(ROOT, "potato_trainers", "worker.py")

sys.path.insert(0, ROOT)

MOOD = {"name": "mood", "annotation_type": "radio", "kind": "nominal", "labels": ["good", "bad"], "source_field": None}
STARS = {"name": "stars", "annotation_type": "likert", "kind": "ordinal", "labels": [], "source_field": None}
TOPICS = {
    "name": "topics",
    "annotation_type": "multiselect",
    "kind": "multilabel",
    "labels": ["food", "travel"],
    "source_field": None,
}


def pytest_configure(config):
    config.addinivalue_line("markers", "sklearn: needs scikit-learn")


def pytest_collection_modifyitems(items):
    if importlib.util.find_spec("sklearn") or os.environ.get("CI") == "true":
        return  # in CI a missing scikit-learn is a failure of these tests, not a reason to leave them out
    for item in items:
        if item.get_closest_marker("sklearn"):
            item.add_marker(pytest.mark.skip(reason="scikit-learn is not installed in %s" % sys.executable))


class Outcome:
    """What a worker left behind."""

    def __init__(self, code, stdout, stderr, run):
        self.code, self.stdout, self.stderr, self._run = code, stdout, stderr, run

    @property
    def events(self):
        path = self._run.events_file
        text = open(path, encoding="utf-8").read() if path else self.stdout
        assert text.endswith("\n")
        events = [json.loads(line) for line in text.splitlines()]
        assert all(e["v"] == 1 and e["event"] and e["t"] > 0 for e in events)
        return events

    def of(self, kind):
        return [e for e in self.events if e["event"] == kind]

    @property
    def result(self):
        assert self.code == 0, self.events[-1]
        assert self.events[-1]["event"] == "result"
        return self.events[-1]

    @property
    def error(self):
        """The error, after the rule that no person ever reads a trace."""
        error = self.events[-1]
        assert error["event"] == "error" and self.code != 0
        message = error["message"]
        assert message and "\n" not in message and "Traceback" not in message and 'File "' not in message, message
        assert not self.of("result")
        return error

    @property
    def predictions(self):
        with open(os.path.join(self._run.workdir, "predictions.jsonl"), encoding="ascii") as file:
            return [json.loads(line) for line in file]

    def artifact(self, *parts):
        return os.path.join(self._run.workdir, *parts)


class Run:
    """A run's folder: its bundle, its spec, and the worker on them."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.bundle_dir = os.path.join(self.folder, "bundle")
        self.workdir = os.path.join(self.folder, "artifacts")
        self.checkpoint_dir = os.path.join(self.folder, "checkpoints")
        self.events_file = os.path.join(self.folder, "events.jsonl")
        self.spec_file = os.path.join(self.folder, "spec.json")
        self.schemas = [MOOD]

    def bundle(self, schemas=(MOOD,), manifest=None, **splits):
        """Writes a bundle; each split is a list of (text, targets)."""
        os.makedirs(self.bundle_dir, exist_ok=True)
        self.schemas = list(schemas)
        fields = {
            "v": 1,
            "schemas": self.schemas,
            "splits": {},
            "labels": {},
            "media_dir": "media",
            "modality": "text",
            "digest": "0" * 64,
        }
        for name, rows in splits.items():
            path = name + ".jsonl"
            with open(os.path.join(self.bundle_dir, path), "w", encoding="ascii") as file:
                for i, (text, targets) in enumerate(rows):
                    row = {"instance_id": "%s-%d" % (name, i), "text": text}
                    if targets is not None:
                        row["targets"] = targets
                    file.write(json.dumps(row) + "\n")
            fields["splits"][name] = {"path": path, "format": "jsonl", "n": len(rows)}
            if name == "unlabeled":
                fields["splits"][name]["predict_only"] = True
        fields.update(manifest or {})
        self.write("bundle/manifest.json", json.dumps(fields))
        self.write("bundle/labels.json", json.dumps(fields["labels"]))
        return self

    def write(self, name, text):
        path = os.path.join(self.folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def spec(self, trainer="sklearn-text", **fields):
        spec = {
            "v": 1,
            "run_id": "20261129T192252-d3d870",
            "attempt": 1,
            "trainer": trainer,
            "schemas": self.schemas,
            "bundle_dir": self.bundle_dir,
            "workdir": self.workdir,
            "checkpoint_dir": self.checkpoint_dir,
            "params": {},
            "seed": 0,
            "limits": {"max_wall_s": None, "max_ram_mb": None, "device": "auto", "num_threads": None},
            "events_file": self.events_file,
            "trainers_dir": None,
        }
        spec.update(fields)
        self.events_file = spec["events_file"]
        self.write("spec.json", json.dumps({k: v for k, v in spec.items() if v is not None or k == "trainers_dir"}))
        return self.spec_file

    def start(self, *args, **popen):
        """Starts the worker; with no arguments, on the spec."""
        popen.setdefault("stdin", subprocess.DEVNULL)
        command = [sys.executable, WORKER] + list(args or ("--spec", self.spec_file))
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, universal_newlines=True, **popen
        )

    def finish(self, process, timeout=120):
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return Outcome(process.returncode, stdout, stderr, self)

    def train(self, trainer="sklearn-text", **fields):
        """Writes the spec and runs it to its end."""
        self.spec(trainer, **fields)
        return self.finish(self.start())

    def study_trainer(self, name, body):
        """Writes a trainer of the study's own; returns the folder it is in."""
        about = '{"name": "%s", "description": "A test.", "kinds": ["nominal"]}' % name
        indented = "".join("    %s\n" % line for line in body.splitlines())
        head = "import os, sys, time\nfrom potato_trainers import *\n\n"
        self.write(
            "trainers/%s.py" % name.replace("-", "_"), head + "TRAINER = %s\n\ndef train(job):\n%s" % (about, indented)
        )
        return os.path.join(self.folder, "trainers")


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def moods(n, rest=0):
    """n labelled texts that can be told apart, half good and half bad, as (text, targets)."""
    words = {"good": ["lovely", "bright", "kind"], "bad": ["awful", "dull", "cruel"]}
    rows = []
    for i in range(n):
        label = ("good", "bad")[i % 2]
        rows.append(
            (
                "the film number %d was %s and %s" % (rest + i, words[label][i % 3], words[label][(i // 2) % 3]),
                {"mood": label},
            )
        )
    return rows
