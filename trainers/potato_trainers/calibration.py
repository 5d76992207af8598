"""Calibration: makes a model's probabilities as good as its decisions, by held-out logits of its training rows.

One temperature for several classes, Platt's scale and shift for a yes or no. Both are kept only when they lower the
log loss on rows that the fitted models had not seen.
"""

import numpy as np

FOLDS = 5
MIN_ROWS = 50


def plan_folds(codes, n_classes, seed):
    """Assigns each row a fold, stratified: (folds, fold of each row), or (0, the reason in words).

    A class with fewer rows than folds cannot be in every fold. When the others are enough, its rows (fold -1) are
    trained on in all of them and scored in none; else there are as many folds as the smallest class has rows.
    """
    if len(codes) < MIN_ROWS:
        return 0, "%d training items are fewer than %d" % (len(codes), MIN_ROWS)
    counts = np.bincount(codes, minlength=n_classes)
    big = np.flatnonzero(counts >= FOLDS)
    if len(big) >= 2 and counts[big].sum() >= MIN_ROWS:
        folds, classes = FOLDS, big
    else:
        folds, classes = int(min(FOLDS, counts[counts > 0].min())), np.flatnonzero(counts)
        if folds < 2:
            return 0, "a label with a single training item leaves nothing to hold out"
    rng = np.random.RandomState(seed)
    fold_of = np.full(len(codes), -1)
    offset = 0
    for each in classes:
        rows = rng.permutation(np.flatnonzero(codes == each))
        fold_of[rows] = (np.arange(len(rows)) + offset) % folds
        offset += len(rows)  # else the first fold would get every class's odd row
    return folds, fold_of


def softmax(logits):
    """Probabilities of exclusive classes."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def sigmoid(logits):
    """The probability of yes."""
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


def log_loss(probabilities, codes):
    """Mean negative log probability of the true class."""
    chosen = probabilities[np.arange(len(codes)), codes]
    return float(-np.log(np.clip(chosen, 1e-15, None)).mean())


def binary_log_loss(logits, truth):
    """The same for yes and no, straight from the logits."""
    return float(np.logaddexp(0.0, np.where(truth, -logits, logits)).mean())


def fit_temperature(logits, codes):
    """The factor for the logits (1 / temperature) with the lowest log loss; Newton's method on a convex function."""
    logits = logits - logits.max(axis=1, keepdims=True)
    truth = logits[np.arange(len(codes)), codes]
    factor = 1.0
    for _ in range(50):
        p = softmax(factor * logits)
        mean = (p * logits).sum(axis=1)
        slope = (mean - truth).mean()
        curve = ((p * logits**2).sum(axis=1) - mean**2).mean()
        if curve <= 1e-12:
            break
        new = float(np.clip(factor - slope / curve, factor / 4, factor * 4))
        new = min(max(new, 0.01), 100.0)
        if abs(new - factor) < 1e-7 * factor:
            return new
        factor = new
    return factor


def fit_platt(logits, truth):
    """Scale and shift of the logits, with Platt's smoothed targets so that separable rows do not run to certainty."""
    yes = int(truth.sum())
    target = np.where(truth, (yes + 1.0) / (yes + 2.0), 1.0 / (len(truth) - yes + 2.0))
    scale, shift = 1.0, 0.0
    loss = _soft_loss(logits * scale + shift, target)
    for _ in range(100):
        p = sigmoid(logits * scale + shift)
        off = p - target
        weight = np.maximum(p * (1.0 - p), 1e-12)
        g = np.array([(off * logits).mean(), off.mean()])
        h = np.array(
            [[(weight * logits**2).mean(), (weight * logits).mean()], [(weight * logits).mean(), weight.mean()]]
        )
        step = np.linalg.solve(h + 1e-10 * np.eye(2), g)
        size = 1.0
        while size > 1e-6:
            new = _soft_loss(logits * (scale - size * step[0]) + shift - size * step[1], target)
            if new <= loss:
                break
            size /= 2
        else:
            break
        scale, shift = float(scale - size * step[0]), float(shift - size * step[1])
        if loss - new < 1e-10:
            break
        loss = new
    return scale, shift


def _soft_loss(logits, target):
    return float((np.logaddexp(0.0, logits) - target * logits).mean())


class Calibration:
    """What became of calibrating one model: whether it is applied, the method or the reason against it, the figures."""

    def __init__(self, applied, method="", reason="", scale=1.0, shift=0.0, before=None, after=None):
        self.applied, self.method, self.reason = applied, method, reason
        self.scale, self.shift = scale, shift
        self.before, self.after = before, after  # (log loss, accuracy) out of fold


def judge(logits, codes, link):
    """Fits the calibration that suits the link on out-of-fold logits, and applies it only if it is an improvement."""
    if link == "sigmoid":
        flat, truth = logits[:, 0], codes == 1
        scale, shift = fit_platt(flat, truth)
        method, fitted = "platt", flat * scale + shift
        before = binary_log_loss(flat, truth), float(((flat > 0) == truth).mean())
        after = binary_log_loss(fitted, truth), float(((fitted > 0) == truth).mean())
    else:
        scale, shift, method = fit_temperature(logits, codes), 0.0, "temperature"
        fitted = softmax(logits * scale)
        before = log_loss(linked(logits, link), codes), float((logits.argmax(axis=1) == codes).mean())
        after = log_loss(fitted, codes), float((fitted.argmax(axis=1) == codes).mean())
    if scale <= 0 or not after[0] < before[0]:
        reason = "%s scaling did not lower the log loss (%.4f before, %.4f after)" % (method, before[0], after[0])
        return Calibration(False, method, reason, before=before, after=after)
    return Calibration(True, method, scale=scale, shift=shift, before=before, after=after)


def linked(logits, link):
    """Probabilities of logits: of exclusive classes (`softmax`, or `ovr`: one classifier each, then normalised), or of
    yes for each column (`sigmoid`)."""
    if link == "softmax":
        return softmax(logits)
    p = sigmoid(logits)
    if link == "sigmoid":
        return p
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])
