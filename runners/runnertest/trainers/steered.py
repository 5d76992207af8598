"""A trainer that does what its parameters say. It needs nothing but Python."""

import os
import signal
import subprocess
import sys
import time

from potato_trainers import ValidationFailed, done, log, metric, progress, status

TEXT = {"type": "string", "default": ""}
FLAG = {"type": "boolean", "default": False}

TRAINER = {
    "name": "steered",
    "description": "Does what its parameters say.",
    "kinds": ["nominal", "ordinal", "multilabel"],
    "params": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "gate": {"type": "string", "default": "", "description": "Goes on once this file is there"},
            "stubborn": {"type": "boolean", "default": False, "description": "Ignores TERM"},
            "children": {"type": "boolean", "default": False, "description": "Leaves processes in sessions of their own that hold its output"},
            "silent": {"type": "boolean", "default": False, "description": "Says nothing while it waits"},
            "fail": {"type": "string", "default": "", "description": "Fails with this sentence"},
            "crash": {"type": "boolean", "default": False, "description": "Ends without a result"},
            "junk": {"type": "integer", "default": 0, "description": "Lines of junk on its outputs"},
            "predict": {
                "type": "string", "default": "majority", "description": "What it predicts",
                "enum": ["majority", "truth", "nan", "unlabelled-twice", "training", "unknown-label", "unknown-item", "nothing", "outside", "cut", "some"],
            },
        },
    },
}


def train(job):
    p = job.params
    if p["stubborn"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if p["children"]:
        for _ in range(2):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    for i in range(p["junk"]):
        print("junk \x1b[31m %d" % i)
        print("{\"event\":\"result\"} {", file=sys.stderr)
    schema = job.schemas[0]
    rows = list(job.bundle.rows("train"))
    yield log("read %d rows" % len(rows))
    yield status("fitting")
    waited = 0
    while p["gate"] and not os.path.exists(p["gate"]):
        time.sleep(0.02)
        waited += 1
        if not p["silent"]:
            yield progress("fit", waited % 100, 100)
    if p["fail"]:
        print("the last line of stderr", file=sys.stderr)
        raise ValidationFailed(p["fail"], "do something about it")
    if p["crash"]:
        print("Segmentation fault, so to say", file=sys.stderr)
        sys.stderr.flush()
        os._exit(7)
    for step in range(3):
        yield metric("train", "loss", 1.0 / (step + 1), step=step)
    label = rows[0].targets[schema.name]
    yield status("predicting on held-out items", state="evaluating")
    if p["predict"] == "nothing":
        yield done(metrics={"n_train": len(rows)})
        return
    with job.predictions() as out:
        for split in job.bundle.predicted():
            for n, row in enumerate(job.bundle.rows(split.name)):
                if p["predict"] == "some" and n == 3:
                    break
                said, confidence = label, 0.75
                if p["predict"] == "truth" and row.targets:
                    said = row.targets[schema.name]
                out.write(row.instance_id, schema.name, {"label": said, "confidence": confidence, "scores": {said: confidence}})
    _spoil(job, schema, rows)
    yield done(metrics={"n_train": len(rows), "train_accuracy": 1.0}, label_order=[label])


def _spoil(job, schema, rows):
    """Adds a line to the predictions that no library would let through."""
    path = job.path("predictions.jsonl")
    if job.params["predict"] == "cut":
        lines = open(path).readlines()
        with open(path, "w") as f:
            f.writelines(lines[:-1])
    first = next(iter(job.bundle.rows(next(iter(job.bundle.predicted())).name))).instance_id
    item, label, confidence = {
        "nan": (None, "positive", "NaN"),
        "outside": (None, "positive", "1.5"),
        "unlabelled-twice": (first, "positive", "0.5"),
        "training": (rows[0].instance_id, "positive", "0.5"),
        "unknown-label": (None, "purple", "0.5"),
        "unknown-item": ("nobody", "positive", "0.5"),
    }.get(job.params["predict"], (None, None, None))
    if label is None:
        return
    lines = open(path).read().splitlines()
    if item is None:
        item = first
        lines = lines[1:]
    lines.append('{"instance_id": "%s", "schema_name": "%s", "payload": {"label": "%s", "confidence": %s}, "confidence": %s}'
                 % (item, schema.name, label, confidence, confidence))
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
