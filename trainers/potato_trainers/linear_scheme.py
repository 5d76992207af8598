"""One scheme's linear model on given features: fitted, calibrated, checkpointed, described in a model card."""

import json
import pickle

import numpy as np

from potato_trainers import linear
from potato_trainers.calibration import Calibration, log_loss
from potato_trainers.events import log, metric, progress, status
from potato_trainers.files import load_pickle, save_pickle

LOSS_ROWS = 10000  # the loss curve needs no more rows than this


class SchemeModel:
    """The model of one scheme. `several` says that the run has other schemes, so that events must name this one."""

    def __init__(self, job, labelled, features, several, folder):
        self.labelled, self.name, self.folder = labelled, labelled.schema.name, folder
        self.metrics = {}
        self._job, self._features = job, features
        self._event_schema = self.name if several else None
        self._of = " %s" % self.name if several else ""
        self._seed = job.seed % 2**32
        self._problems = linear.problems_of(labelled)
        self._estimators, self._lines, self._calibrations = [], [], []
        self._checkpoint = _Checkpoint(job, folder)

    def fit(self, held_out=None):
        """Fits and calibrates; yields events. held_out is (features, codes) for the accuracy curve of sgd."""
        yield status("fitting" + self._of)
        if self._job.params["classifier"] == "sgd":
            yield from self._descend(held_out)
        else:
            yield from self._fit_logistic()
        self._calibrations = [Calibration(False, reason="calibrate is false")] * len(self._problems)
        if self._job.params["calibrate"]:
            yield from self._calibrate()
        self._answers = linear.Answers(self._lines, self._calibrations, self.labelled.multilabel)
        accuracy = self._accuracy(self.probabilities(self._features), self.labelled.codes)
        self.metrics = {"n_train": len(self.labelled), "train_accuracy": accuracy}
        yield metric("train", "accuracy", accuracy, schema=self._event_schema)

    def probabilities(self, features):
        """One row for each item, one column for each label."""
        return self._answers.probabilities(features)

    def _fit_logistic(self):
        total = len(self._problems)
        yield progress("fit", 0, total)
        for i, problem in enumerate(self._problems, 1):
            if problem.varies:
                estimator = linear.fit_logistic(self._features, problem.codes, problem, self._job.params, self._seed)
                if estimator.n_iter_.max() >= linear.MAX_ITERATIONS:
                    yield log(
                        "The fit%s stopped after %d iterations, short of its optimum; a smaller C converges sooner"
                        % (self._of, linear.MAX_ITERATIONS),
                        "warning",
                    )
                line = linear.Line.of(estimator, "softmax")
            else:
                estimator, line = None, linear.Line.constant(problem, self._features.shape[1])
            self._estimators.append(estimator)
            self._lines.append(line)
            yield progress("fit", i, total)

    def _descend(self, held_out):
        job, epochs, n_features = self._job, self._job.params["epochs"], self._features.shape[1]
        descent = linear.Descent(self._problems, job.params, self._seed)
        if self._checkpoint.restore(descent):
            yield log("Going on%s from the checkpoint after epoch %d of %d" % (self._of, descent.epoch, epochs))
        plain = [Calibration(False)] * len(self._problems)
        sample = np.arange(min(len(self.labelled), LOSS_ROWS))
        yield progress("fit", descent.epoch, epochs)
        while descent.epoch < epochs:
            descent.step(self._features)
            answers = linear.Answers(descent.lines(n_features), plain, self.labelled.multilabel)
            loss = self._loss(answers.probabilities(self._features[sample]), sample)
            yield metric("train", "loss", loss, descent.epoch, self._event_schema)
            if held_out is not None and len(held_out[1]):
                accuracy = self._accuracy(answers.probabilities(held_out[0]), held_out[1])
                yield metric("val", "accuracy", accuracy, descent.epoch, self._event_schema)
            self._checkpoint.save(descent)
            yield progress("fit", descent.epoch, epochs)
        self._estimators, self._lines = descent.estimators, descent.lines(n_features)

    def _calibrate(self):
        yield status("calibrating" + self._of)
        total = len(self._problems)
        for i, (problem, line) in enumerate(zip(self._problems, self._lines)):
            folds = linear.calibrate(self._features, problem, line.link, self._job.params, self._seed)
            while True:
                try:
                    share = next(folds)
                except StopIteration as end:
                    self._calibrations[i] = end.value
                    break
                yield progress("calibrate", i + share, total)
        yield log(self.calibration_note())

    def calibration_note(self):
        """What became of the calibration, as a sentence."""
        applied = [c for c in self._calibrations if c.applied]
        about = "Calibration" + (" of '%s'" % self.name if self._event_schema else "")
        if not applied:
            return "%s was not applied: %s" % (about, self._calibrations[0].reason)
        before, after = np.mean([c.before[0] for c in applied]), np.mean([c.after[0] for c in applied])
        which = " to %d of %d labels" % (len(applied), len(self._calibrations)) if self.labelled.multilabel else ""
        return "%s by %s scaling was applied%s: out-of-fold log loss %.4f before, %.4f after" % (
            about,
            applied[0].method,
            which,
            before,
            after,
        )

    def _loss(self, probabilities, rows):
        """Log loss on these training rows, of a multi-label scheme the mean over its labels."""
        if not self.labelled.multilabel:
            return log_loss(probabilities, self._problems[0].codes[rows])
        pairs = zip(probabilities.T, self._problems)
        return float(np.mean([log_loss(np.column_stack([1 - p, p]), problem.codes[rows]) for p, problem in pairs]))

    def _accuracy(self, probabilities, codes):
        """Share of right answers; of a multi-label scheme, of items with exactly the right labels."""
        if not self.labelled.multilabel:
            return float((probabilities.argmax(axis=1) == np.asarray(codes)).mean())
        truth = np.zeros(probabilities.shape, dtype=bool)
        for row, labels in enumerate(codes):
            truth[row, labels] = True
        return float(((probabilities >= 0.5) == truth).all(axis=1).mean())

    def pickled(self, **more):
        """The model for use elsewhere: plain scikit-learn objects in a dict, loadable without this package."""
        calibration = [
            {"applied": c.applied, "method": c.method, "scale": c.scale, "shift": c.shift} for c in self._calibrations
        ]
        model = {"kind": self.labelled.schema.kind, "labels": self.labelled.labels, "calibration": calibration}
        model["classifiers" if self.labelled.multilabel else "classifier"] = (
            self._estimators if self.labelled.multilabel else self._estimators[0]
        )
        return pickle.dumps(dict(model, **more), protocol=4)

    def card(self, **more):
        """The model card: where the model comes from and what it knows."""
        estimator = next(e for e in self._estimators if e is not None)
        card = {
            "trainer": self._job.trainer,
            "run_id": self._job.run_id,
            "schema": self.name,
            "kind": self.labelled.schema.kind,
            "classifier": "sklearn.linear_model." + type(estimator).__name__,
            "label_order": self.labelled.labels,
            "labels_at_fit": self.labelled.counts,
            "n_train": len(self.labelled),
            "metrics": self.metrics,
            "calibration": self._calibration_card(),
            "bundle_digest": self._job.bundle.digest,
            "params": self._job.params,
            "seed": self._job.seed,
        }
        card.update(more)
        return (json.dumps(card, indent=2) + "\n").encode("ascii")

    def _calibration_card(self):
        def one(c):
            figures = {"applied": c.applied, "method": c.method, "reason": c.reason}
            for when, pair in (("before", c.before), ("after", c.after)):
                figures["log_loss_" + when], figures["accuracy_" + when] = pair or (None, None)
            return figures

        if not self.labelled.multilabel:
            return one(self._calibrations[0])
        each = {label: one(c) for label, c in zip(self.labelled.labels, self._calibrations)}
        return {"applied": any(c.applied for c in self._calibrations), "method": "platt", "reason": "", "labels": each}


class _Checkpoint:
    """A descent that stopped in the middle, for the next attempt of the same run."""

    def __init__(self, job, folder):
        self._job, self._name = job, "scheme-" + folder

    def save(self, descent):
        state = {"epoch": descent.epoch, "estimators": descent.estimators}
        with self._job.saving(self._name) as folder:
            save_pickle(folder, state)

    def restore(self, descent):
        folder = self._job.checkpoint(self._name)
        if folder is None:
            return False
        state = load_pickle(folder)
        descent.epoch, descent.estimators = state["epoch"], state["estimators"]
        return True
