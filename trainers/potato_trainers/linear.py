"""Linear models on sparse features: fitting them with scikit-learn, and their answers as probabilities.

A scheme with one label is one problem of K classes; a multi-label scheme is one yes or no for each label.
"""

import numpy as np

from potato_trainers import lean_import
from potato_trainers.calibration import Calibration, judge, linked, plan_folds

_text, _linear_model = lean_import.sklearn()

MAX_ITERATIONS = 1000


class Problem:
    """One classifier's task: the class of each training row."""

    def __init__(self, codes, n_classes, label=None):
        self.codes = np.asarray(codes)
        self.n_classes = n_classes
        self.label = label  # of a multi-label scheme: the label that this is the yes or no of
        self.varies = len(np.unique(self.codes)) > 1  # else there is nothing to learn but the answer

    def class_weights(self, params, codes):
        """Weights that make all classes count the same, None for none."""
        if params["class_weight"] != "balanced":
            return None
        counts = np.bincount(codes, minlength=self.n_classes)
        present = np.flatnonzero(counts)
        return {int(c): len(codes) / (len(present) * counts[c]) for c in present}


class Line:
    """A fitted linear model: logits are features times weights, plus bias."""

    def __init__(self, weights, bias, link):
        self.weights, self.bias, self.link = weights, bias, link

    @classmethod
    def of(cls, estimator, link):
        return cls(estimator.coef_, estimator.intercept_, link if estimator.coef_.shape[0] > 1 else "sigmoid")

    @classmethod
    def constant(cls, problem, n_features):
        """The model of a label that every training item has, or none: as sure as their number allows."""
        n = len(problem.codes)
        yes = np.log(n + 1.0)
        return cls(np.zeros((1, n_features)), np.array([yes if problem.codes[0] else -yes]), "sigmoid")

    def logits(self, features):
        return features @ self.weights.T + self.bias


def problems_of(labelled):
    """The problems that a scheme's training rows pose."""
    if not labelled.multilabel:
        return [Problem(labelled.codes, len(labelled.labels))]
    answers = np.zeros((len(labelled), len(labelled.labels)), dtype=np.int64)
    for row, codes in enumerate(labelled.codes):
        answers[row, codes] = 1
    return [Problem(answers[:, i], 2, label) for i, label in enumerate(labelled.labels)]


def fit_logistic(features, codes, problem, params, seed):
    """Fits a logistic regression; over several classes it is multinomial."""
    model = _linear_model.LogisticRegression(
        C=params["C"], class_weight=problem.class_weights(params, codes), max_iter=MAX_ITERATIONS, random_state=seed
    )
    return model.fit(features, codes)


class Descent:
    """Stochastic gradient descent over the problems of one scheme, epoch by epoch: it can be watched, stopped and gone
    on with. The rows' order depends on the seed and the epoch alone, so going on gives what never stopping does."""

    def __init__(self, problems, params, seed):
        self.problems, self._params, self._seed = problems, params, seed
        self.epoch = 0
        self.estimators = None

    def step(self, features, codes_of=lambda problem: problem.codes):
        """One pass over the rows."""
        codes = [codes_of(problem) for problem in self.problems]
        if self.estimators is None:
            self.estimators = [self._new(*pair) for pair in zip(self.problems, codes)]
        order = np.random.RandomState((self._seed + self.epoch) % 2**32).permutation(features.shape[0])
        shuffled = features[order]
        for problem, estimator, each in zip(self.problems, self.estimators, codes):
            if problem.varies:
                estimator.partial_fit(shuffled, each[order], classes=np.arange(problem.n_classes))
        self.epoch += 1

    def lines(self, n_features):
        return [
            Line.of(estimator, "ovr") if problem.varies else Line.constant(problem, n_features)
            for problem, estimator in zip(self.problems, self.estimators)
        ]

    def _new(self, problem, codes):
        return _linear_model.SGDClassifier(
            loss="log_loss",
            alpha=self._params["alpha"],
            class_weight=problem.class_weights(self._params, codes),
            shuffle=False,
            random_state=self._seed,
        )


def fit_line(features, codes, problem, params, seed):
    """Fits one problem from start to end."""
    if params["classifier"] == "logreg":
        return Line.of(fit_logistic(features, codes, problem, params, seed), "softmax")
    descent = Descent([problem], params, seed)
    for _ in range(params["epochs"]):
        descent.step(features, lambda _: codes)
    return descent.lines(features.shape[1])[0]


def calibrate(features, problem, link, params, seed):
    """Out-of-fold logits and what they say of calibration. A generator: yields the share done after each fold,
    returns the Calibration."""
    if not problem.varies:
        return Calibration(False, reason="every training item has the same answer")
    folds, fold_of = plan_folds(problem.codes, problem.n_classes, seed)
    if not folds:
        return Calibration(False, reason=fold_of)
    columns = 1 if problem.n_classes == 2 else problem.n_classes
    logits = np.zeros((len(fold_of), columns))
    for fold in range(folds):
        held, rest = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        line = fit_line(features[rest], problem.codes[rest], problem, params, seed)
        logits[held] = line.logits(features[held])
        yield (fold + 1) / folds
    scored = np.flatnonzero(fold_of >= 0)
    return judge(logits[scored], problem.codes[scored], "sigmoid" if columns == 1 else link)


class Answers:
    """The fitted and calibrated models of one scheme together: probabilities of its labels for new rows."""

    def __init__(self, lines, calibrations, multilabel):
        self._weights = np.ascontiguousarray(np.vstack([line.weights for line in lines]).T)
        bias = np.concatenate([line.bias for line in lines])
        scale = np.concatenate([np.full(len(line.bias), c.scale) for line, c in zip(lines, calibrations)])
        shift = np.concatenate([np.full(len(line.bias), c.shift) for line, c in zip(lines, calibrations)])
        self._scale, self._shift = scale, bias * scale + shift
        self._link = "softmax" if calibrations[0].applied and lines[0].link == "ovr" else lines[0].link
        self._two_classes = self._link == "sigmoid" and not multilabel

    def probabilities(self, features):
        """One row for each item, one column for each label in the scheme's order."""
        p = linked((features @ self._weights) * self._scale + self._shift, self._link)
        return np.hstack([1.0 - p, p]) if self._two_classes else p
