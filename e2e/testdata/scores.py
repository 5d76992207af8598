"""Print the scores of an export as anyone would compute them: `python scores.py predictions.ndjson BUNDLE`."""

import json
import pathlib
import sys

from sklearn.metrics import accuracy_score, f1_score

predictions = {}
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    assert row["instance_id"] not in predictions, "predicted twice: " + row["instance_id"]
    predictions[row["instance_id"]] = row["payload"]["label"]

for split in ("val", "test"):
    rows = [json.loads(line) for line in open(pathlib.Path(sys.argv[2]) / (split + ".jsonl"), encoding="utf-8")]
    truth = [row["targets"]["sentiment"] for row in rows]
    guess = [predictions[row["instance_id"]] for row in rows]
    print(split + "_accuracy", accuracy_score(truth, guess))
    print(split + "_macro_f1", f1_score(truth, guess, average="macro"))
