"""sklearn-text: TF-IDF and a linear classifier. Quick on a CPU, honest about how sure it is."""

import itertools
import time

from potato_trainers.events import artifact, done, log, status
from potato_trainers.failures import ValidationFailed
from potato_trainers.files import folder_names, load_pickle, save_pickle, write_atomic
from potato_trainers.labelled import read, trainable
from potato_trainers.predicting import predict

TRAINER = {
    "name": "sklearn-text",
    "description": "TF-IDF features and a linear classifier, calibrated. Trains in seconds on a CPU.",
    "licence": "BSD-3-Clause",
    "licence_url": "https://github.com/scikit-learn/scikit-learn/blob/main/COPYING",
    "commercial_use": True,
    "kinds": ["nominal", "ordinal", "multilabel"],
    "modalities": ["text"],
    "packages": ["scikit-learn"],
    "imports": ["sklearn"],
    "install_hint": "pip install scikit-learn",
    "checkpoints": True,
    "params": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "classifier": {
                "type": "string",
                "enum": ["logreg", "sgd"],
                "default": "logreg",
                "description": "logreg: logistic regression, fitted to its optimum. "
                "sgd: the same model by gradient descent in epochs, for very many items",
            },
            "C": {
                "type": "number",
                "minimum": 0.0001,
                "maximum": 1000000,
                "default": 1.0,
                "description": "logreg: inverse of the regularisation; larger fits the training items more closely",
            },
            "epochs": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10000,
                "default": 20,
                "description": "sgd: passes over the training items",
            },
            "alpha": {
                "type": "number",
                "minimum": 0.0000001,
                "maximum": 10,
                "default": 0.0001,
                "description": "sgd: strength of regularisation; smaller fits the training items more closely",
            },
            "class_weight": {
                "type": "string",
                "enum": ["none", "balanced"],
                "default": "none",
                "description": "balanced: rare labels count as much as frequent ones",
            },
            "analyzer": {
                "type": "string",
                "enum": ["word", "char_wb"],
                "default": "word",
                "description": "Features are words, or runs of characters within words "
                "(for languages written without spaces, noisy spelling)",
            },
            "ngram_min": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10,
                "default": 1,
                "description": "Shortest run of words or characters",
            },
            "ngram_max": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10,
                "default": 1,
                "description": "Longest run of words or characters",
            },
            "max_features": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "Keep only the most frequent features; 0 keeps all",
            },
            "sublinear_tf": {"type": "boolean", "default": False, "description": "Count repeated words less"},
            "lowercase": {"type": "boolean", "default": True, "description": "Ignore upper and lower case"},
            "calibrate": {
                "type": "boolean",
                "default": True,
                "description": "Make confidences match how often the model is right, from 50 training items",
            },
            "min_instances": {
                "type": "integer",
                "minimum": 2,
                "default": 10,
                "description": "Labelled training items that are needed",
            },
        },
    },
}

BATCH = 4096
CURVE_ROWS = 10000  # held-out items that the accuracy curve of sgd is computed on


def warm():
    """Imports everything and fits once, since the first fit loads what the import did not."""
    from potato_trainers import linear, linear_scheme  # noqa: F401

    params = {name: rule["default"] for name, rule in TRAINER["params"]["properties"].items()}
    features = _Features.of_texts(params, ["one warm word", "two cold words"])
    linear.fit_line(features.train, linear.np.array([0, 1]), linear.Problem([0, 1], 2), params, 0)


def train(job):
    """Trains every scheme of the run, then predicts the held-out and unlabelled items with all of them."""
    params = job.params
    if params["ngram_min"] > params["ngram_max"]:
        raise ValidationFailed("ngram_min is %d, more than ngram_max (%d)" % (params["ngram_min"], params["ngram_max"]))
    n_read, texts, found = read(job.bundle, job.schemas)
    yield log("%d training items read, %d of them with a target" % (n_read, len(texts)))
    labelled, notes = trainable(found, params["min_instances"], job.bundle.counts())
    for note in notes:
        yield log(note, "warning")

    yield status("building pipeline")
    from potato_trainers import linear_scheme  # scikit-learn comes with it: once it is clear that there is work for it

    began = time.monotonic()
    models = []
    for model, features in _models(job, labelled, texts, linear_scheme):
        models.append((model, features))
        yield from model.fit(_held_out(job, model.labelled, features))
    seconds = round(time.monotonic() - began, 3)
    for model, features in models:
        model.metrics["train_seconds"] = seconds
        yield from _save(job, model, features, several=len(models) > 1)

    yield status("predicting on held-out items", state="evaluating")

    def answer(batch):
        matrices = {id(features): features.of(batch) for _, features in models}
        return [model.probabilities(matrices[id(features)]).tolist() for model, features in models]

    unseen = yield from predict(job, labelled, answer, BATCH)
    for each, labels in zip(labelled, unseen):
        if labels:
            notes.append(_unseen_note(each, labels))
            yield log(notes[-1], "warning")
    first = models[0][0]
    yield done(
        metrics=first.metrics,
        metrics_by_schema={model.name: model.metrics for model, _ in models},
        label_order=first.labelled.labels,
        notes=notes + [model.calibration_note() for model, _ in models],
        model_version="%s-%s-%s" % (job.trainer, first.name, job.run_id),
    )


class _Features:
    """The features of some training texts, and how to make those of others."""

    def __init__(self, vectorizer, train):
        self.vectorizer, self.train = vectorizer, train

    @classmethod
    def of_texts(cls, params, texts):
        from potato_trainers import lean_import

        vectorizer = lean_import.sklearn()[0].TfidfVectorizer(
            analyzer=params["analyzer"],
            ngram_range=(params["ngram_min"], params["ngram_max"]),
            max_features=params["max_features"] or None,
            sublinear_tf=params["sublinear_tf"],
            lowercase=params["lowercase"],
        )
        try:
            return cls(vectorizer, vectorizer.fit_transform(texts))
        except ValueError as err:
            if "empty vocabulary" not in str(err):
                raise
            empty = sum(not text.strip() for text in texts)
            raise ValidationFailed(
                "None of the %d training texts has a word of two letters or more to learn from (%d are empty)"
                % (len(texts), empty),
                "check item_properties.text_key, or set the parameter analyzer to char_wb",
            )

    @classmethod
    def of_run(cls, job, texts, name):
        """The same, kept in a checkpoint for as long as a run goes on in epochs. The training features are kept as they
        are: made again by transform() they would differ in their last bits, and so would the model."""
        if job.params["classifier"] != "sgd":
            return cls.of_texts(job.params, texts)
        kept = job.checkpoint(name)
        if kept is not None:
            return cls(*load_pickle(kept))
        made = cls.of_texts(job.params, texts)
        with job.saving(name) as folder:
            save_pickle(folder, (made.vectorizer, made.train))
        return made

    def of(self, texts):
        return self.vectorizer.transform(texts)


def _models(job, labelled, texts, linear_scheme):
    """Yields (model, features) for each scheme. Schemes with the same training items share the features."""
    folders = folder_names([each.schema.name for each in labelled])
    made = {}
    for each in labelled:
        key = tuple(each.index)
        if key not in made:
            made[key] = _Features.of_run(job, [texts[i] for i in each.index], "features-%d" % len(made))
        yield (
            linear_scheme.SchemeModel(job, each, made[key].train, len(job.schemas) > 1, folders[each.schema.name]),
            made[key],
        )


def _held_out(job, labelled, features):
    """Validation items for the accuracy curve, which only sgd has; None when there are none."""
    if job.params["classifier"] != "sgd":
        return None
    texts, codes = labelled.held_out(itertools.islice(job.bundle.rows("val"), CURVE_ROWS))
    return (features.of(texts), codes) if texts else None


def _save(job, model, features, several):
    """Saves one scheme's model, in a folder of its own when there are several; yields the artifacts."""
    prefix = model.folder + "/" if several else ""
    vars(features.vectorizer).pop("_stop_words_id", None)  # an address, which would make equal models differ in bytes
    vectorizer = "sklearn.feature_extraction.text.TfidfVectorizer"
    files = (
        ("model.pkl", model.pickled(vectorizer=features.vectorizer)),
        ("model_card.json", model.card(vectorizer=vectorizer, input="text")),
    )
    for file, data in files:
        write_atomic(job.path(prefix + file), data)
        yield artifact(prefix + file)


def _unseen_note(labelled, labels):
    shown = ", ".join("'%s'" % label for label in sorted(labels)[:5])
    return "%d held-out targets of '%s' are labels that no training item has: %s" % (
        sum(labels.values()),
        labelled.schema.name,
        shown,
    )
