"""Scores of cases as scikit-learn computes them: cases as a JSON list on stdin, scores as a JSON list on stdout."""

import json
import sys

import numpy
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, mean_absolute_error, precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer


def calibration_error(confidence, correct):
    """Fifteen bins of equal width, closed on the right."""
    confidence, correct = numpy.array(confidence), numpy.array(correct, dtype=float)
    place = numpy.clip(numpy.digitize(confidence, numpy.linspace(0, 1, 16), right=True) - 1, 0, 14)
    error = 0.0
    for b in range(15):
        inside = place == b
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - correct[inside].mean())
    return error


def score(case):
    truth, guess, probability = case["truth"], case["guess"], case["probability"]
    if case["kind"] == "multilabel":
        occurring = sorted({label for labels in truth + guess for label in labels})
        binarizer = MultiLabelBinarizer(classes=occurring)
        truth, guess = binarizer.fit_transform(truth), binarizer.transform(guess)
        out = {"accuracy": accuracy_score(truth, guess), "macro_f1": f1_score(truth, guess, average="macro", zero_division=0),
               "micro_f1": f1_score(truth, guess, average="micro", zero_division=0)}
    else:
        occurring = sorted(set(truth) | set(guess))
        out = {"accuracy": accuracy_score(truth, guess), "macro_f1": f1_score(truth, guess, average="macro", zero_division=0),
               "ece": calibration_error(probability, [t == g for t, g in zip(truth, guess)])}
    if case["kind"] == "ordinal":
        points, said = [int(t) for t in truth], [int(g) for g in guess]
        out["mae"] = mean_absolute_error(points, said)
        out["quadratic_kappa"] = cohen_kappa_score(points, said, labels=[1, 2, 3, 4, 5], weights="quadratic")
    precision, recall, f1, support = precision_recall_fscore_support(truth, guess, labels=None if case["kind"] == "multilabel" else occurring, zero_division=0)
    out["labels"] = {label: [precision[i], recall[i], f1[i], int(support[i])] for i, label in enumerate(occurring)}
    return out


json.dump([score(case) for case in json.load(sys.stdin)], sys.stdout, indent=1)
print()
