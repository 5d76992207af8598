"""A trainer for tests: counts aloud for a while and predicts what it was told, so that what is lost or doubled shows."""

import time

from potato_trainers.events import artifact, done, log, progress, status

TRAINER = {
    "name": "counting",
    "description": "Counts.",
    "licence": "Apache-2.0",
    "licence_url": "",
    "commercial_use": True,
    "kinds": ["nominal", "ordinal", "multilabel"],
    "modalities": ["text"],
    "packages": [],
    "imports": [],
    "install_hint": "",
    "params": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "steps": {"type": "integer", "minimum": 0, "maximum": 100000, "default": 40},
            "step_s": {"type": "number", "minimum": 0, "maximum": 60, "default": 0.05},
        },
    },
}


def train(job):
    yield status("counting")
    for i in range(job.params["steps"]):
        yield log("count %d" % i)
        yield progress("count", i + 1, job.params["steps"])
        time.sleep(job.params["step_s"])
    schema = job.schemas[0]
    labels = schema.labels if hasattr(schema, "labels") else schema["labels"]
    name = schema.name if hasattr(schema, "name") else schema["name"]
    with job.predictions() as out:
        for split in job.bundle.predicted():
            for row in job.bundle.rows(split.name):
                out.write(row.instance_id, name, {"label": labels[0], "confidence": 0.75, "scores": {labels[0]: 0.75}})
    with open(job.path("model.txt"), "w") as file:
        file.write("counted")
    yield artifact("model.txt")
    yield done(metrics={"train_accuracy": 0.5})
