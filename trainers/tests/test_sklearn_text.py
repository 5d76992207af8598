"""sklearn-text from bundle to predictions: each kind of scheme, several at once, calibration, resuming."""

import json
import os
import pickle
import random
import subprocess
import sys

import pytest
from conftest import MOOD, STARS, TOPICS, moods

pytestmark = pytest.mark.sklearn


def unlabelled(rows):
    return [(text, None) for text, _ in rows]


def stars(n, first=0, as_float=False):
    words = {1: "awful mess", 2: "rather dull", 4: "quite good", 5: "superb joy", 10: "beyond all stars"}
    return [
        ("item %d is %s" % (i, words[v]), {"stars": float(v) if as_float else v})
        for i in range(first, first + n)
        for v in [sorted(words)[i % 5]]
    ]


def topics(n, first=0):
    rows = []
    for i in range(first, first + n):
        labels = [[], ["food"], ["travel"], ["food", "travel"]][i % 4]
        words = {"food": "bread and soup", "travel": "a train to the coast"}
        rows.append(
            ("note %d about %s" % (i, " with ".join(words[x] for x in labels) or "nothing much"), {"topics": labels})
        )
    return rows


def check_payloads(predictions):
    for p in predictions:
        payload, scores = p["payload"], p["payload"]["scores"]
        assert p["confidence"] == payload["confidence"] and 0 <= p["confidence"] <= 1
        if "label" in payload:
            assert abs(sum(scores.values()) - 1) < 1e-4
            assert (
                payload["label"] == max(scores, key=scores.get)
                and abs(scores[payload["label"]] - p["confidence"]) < 1e-9
            )
        else:
            assert payload["labels"] == [label for label in scores if scores[label] >= 0.5]
            assert abs(p["confidence"] - sum(max(s, 1 - s) for s in scores.values()) / len(scores)) < 1e-4


def test_nominal(run):
    run.bundle(train=moods(60), val=moods(8, 60), test=moods(6, 68), unlabeled=unlabelled(moods(5, 74)))
    out = run.train()
    result = out.result
    assert result["label_order"] == ["good", "bad"] and result["n_predictions"] == 19
    assert result["model_version"] == "sklearn-text-mood-20261129T192252-d3d870"
    assert set(result["metrics"]) == {"n_train", "train_accuracy", "train_seconds"}
    assert result["metrics"]["n_train"] == 60 and result["metrics"]["train_accuracy"] == 1
    assert result["metrics_by_schema"] == {"mood": result["metrics"]}
    assert set(result["packages"]) == {"scikit-learn", "numpy", "scipy"} and result["device"] == "cpu"
    ids = [p["instance_id"] for p in out.predictions]
    assert ids == ["val-%d" % i for i in range(8)] + ["test-%d" % i for i in range(6)] + [
        "unlabeled-%d" % i for i in range(5)
    ]
    check_payloads(out.predictions)
    truth = [t["mood"] for _, t in moods(8, 60)]
    assert [p["payload"]["label"] for p in out.predictions[:8]] == truth
    sizes = {e["path"]: e["bytes"] for e in out.of("artifact")}
    assert list(sizes) == ["model.pkl", "model_card.json", "predictions.jsonl"]
    assert all(os.path.getsize(out.artifact(path)) == size for path, size in sizes.items())
    steps = [(e["state"], e["step"]) for e in out.of("status")]
    assert steps == [
        ("running", s) for s in ("loading bundle", "reading bundle", "building pipeline", "fitting", "calibrating")
    ] + [("evaluating", "predicting on held-out items")]
    assert out.stdout == "" and out.stderr == ""


def test_model_card_and_model(run):
    run.bundle(train=moods(60))
    out = run.train()
    card = json.load(open(out.artifact("model_card.json")))
    assert (
        card["trainer"] == "sklearn-text"
        and card["schema"] == "mood"
        and card["kind"] == "nominal"
        and card["input"] == "text"
    )
    assert card["classifier"] == "sklearn.linear_model.LogisticRegression"
    assert (
        card["label_order"] == ["good", "bad"]
        and card["labels_at_fit"] == {"good": 30, "bad": 30}
        and card["n_train"] == 60
    )
    assert card["bundle_digest"] == "0" * 64 and card["calibration"]["method"] == "platt"
    model = load_elsewhere(out.artifact("model.pkl"))
    assert model == ["bad", "good", "kind"]


def load_elsewhere(path):
    """The model is plain scikit-learn: it loads where this package is not."""
    code = (
        "import pickle, sys\nm = pickle.load(open(sys.argv[1], 'rb'))\n"
        "x = m['vectorizer'].transform(['awful and cruel', 'lovely'])\n"
        "print([m['labels'][i] for i in m['classifier'].predict(x)] + ['kind'] * (m['kind'] == 'nominal'))\n"
        "assert not any('potato' in name for name in sys.modules)"
    )
    return json.loads(
        subprocess.check_output([sys.executable, "-c", code, path], cwd="/", universal_newlines=True).replace("'", '"')
    )


@pytest.mark.parametrize("as_float", [False, True], ids=["4", "4.0"])
def test_ordinal_labels_are_texts_in_order(run, as_float):
    run.bundle(schemas=[STARS], train=stars(60, as_float=as_float), val=stars(10, 60, not as_float))
    out = run.train()
    assert out.result["label_order"] == ["1", "2", "4", "5", "10"]
    assert [p["payload"]["label"] for p in out.predictions] == ["1", "2", "4", "5", "10"] * 2
    assert list(out.predictions[0]["payload"]["scores"]) == ["1", "2", "4", "5", "10"]
    assert not out.of("log")[-1]["msg"].count("no training item has")
    check_payloads(out.predictions)


@pytest.mark.parametrize("classifier", ["logreg", "sgd"])
def test_multilabel_is_one_answer_for_each_label(run, classifier):
    run.bundle(schemas=[TOPICS], train=topics(80), val=topics(8, 80))
    out = run.train(params={"classifier": classifier})
    check_payloads(out.predictions)
    assert [p["payload"]["labels"] for p in out.predictions] == [[], ["food"], ["travel"], ["food", "travel"]] * 2
    assert out.result["label_order"] == ["food", "travel"] and out.result["metrics"]["train_accuracy"] == 1
    card = json.load(open(out.artifact("model_card.json")))
    assert set(card["calibration"]["labels"]) == {"food", "travel"} and card["labels_at_fit"] == {
        "food": 40,
        "travel": 40,
    }
    assert len(pickle.load(open(out.artifact("model.pkl"), "rb"))["classifiers"]) == 2


def test_label_that_every_item_has(run):
    rows = [(text, {"topics": t["topics"] + ["always"]}) for text, t in topics(40)]
    run.bundle(schemas=[TOPICS], train=rows, val=topics(4, 40))
    out = run.train()
    check_payloads(out.predictions)
    assert all("always" in p["payload"]["labels"] and p["payload"]["scores"]["always"] > 0.9 for p in out.predictions)


def test_several_schemes_are_all_trained_and_predicted(run):
    """P11. A scheme is trained on the rows that have an answer to it."""
    rows = []
    for i, ((a, ta), (b, tb), (c, tc)) in enumerate(zip(moods(60), stars(60), topics(60))):
        targets = dict(ta, **tc)
        if i % 2:
            targets.update(tb)
        rows.append(("%s %s %s" % (a, b, c), targets))
    run.bundle(schemas=[MOOD, STARS, TOPICS], train=rows, val=rows[:3], unlabeled=unlabelled(rows[:2]))
    out = run.train()
    result = out.result
    assert result["n_predictions"] == 15
    assert [p["schema_name"] for p in out.predictions] == ["mood", "stars", "topics"] * 5
    check_payloads(out.predictions)
    assert {name: m["n_train"] for name, m in result["metrics_by_schema"].items()} == {
        "mood": 60,
        "stars": 30,
        "topics": 60,
    }
    assert result["metrics"] == result["metrics_by_schema"]["mood"] and result["label_order"] == ["good", "bad"]
    assert [e["path"] for e in out.of("artifact")] == [
        "%s/%s" % (name, file) for name in ("mood", "stars", "topics") for file in ("model.pkl", "model_card.json")
    ] + ["predictions.jsonl"]
    assert {e.get("schema") for e in out.of("metric")} == {"mood", "stars", "topics"}


def test_one_of_several_that_cannot_be_trained_is_named(run):
    rows = [(text, dict(targets, stars=3)) for text, targets in moods(40)]
    run.bundle(schemas=[STARS, MOOD], train=rows, val=rows[:2])
    out = run.train()
    note = "Not trained: The training split of 'stars' has only one label ('3', 40 items); two are needed"
    assert note in out.result["notes"] and [e["msg"] for e in out.of("log") if e["level"] == "warning"] == [note]
    assert set(out.result["metrics_by_schema"]) == {"mood"} and {p["schema_name"] for p in out.predictions} == {"mood"}


def test_names_of_schemes_are_not_paths(run):
    names = ["../up", "a/b", "a_b", "", ".", "A_b"]
    schemas = [dict(MOOD, name=name) for name in names]
    rows = [(text, {name: t["mood"] for name in names}) for text, t in moods(20)]
    run.bundle(schemas=schemas, train=rows, val=rows[:2])
    out = run.train()
    assert out.result["n_predictions"] == 12
    paths = [e["path"] for e in out.of("artifact")]
    assert len({p.lower() for p in paths}) == len(paths) == 13
    inside = os.path.realpath(run.workdir)
    assert all(os.path.realpath(out.artifact(p)).startswith(inside + os.sep) and ".." not in p for p in paths)


def noisy(n, seed):
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        label = rng.choice(["good", "bad", "mixed"])
        words = ["w%d" % min(3000, int(rng.paretovariate(0.4))) for _ in range(25)]
        if rng.random() < 0.6:
            words += [{"good": "nice", "bad": "poor", "mixed": "so"}[label]]
        rng.shuffle(words)
        rows.append((" ".join(words), {"mood": label}))
    return rows


def held_out_log_loss(out, rows):
    import math

    truth = [t["mood"] for _, t in rows]
    return -sum(math.log(max(p["payload"]["scores"][t], 1e-9)) for p, t in zip(out.predictions, truth)) / len(truth)


@pytest.mark.parametrize("classifier", ["logreg", "sgd"])
def test_calibration_lowers_the_held_out_log_loss(run, classifier):
    val = noisy(400, 2)
    run.bundle(train=noisy(1200, 1), val=val)
    params = {"classifier": classifier, "C": 20, "alpha": 0.00001}
    losses = {}
    for calibrate in (True, False):
        out = run.train(params=dict(params, calibrate=calibrate))
        losses[calibrate] = held_out_log_loss(out, val)
        card = json.load(open(out.artifact("model_card.json")))["calibration"]
        assert card["applied"] is calibrate
        if calibrate:
            assert card["method"] == "temperature" and card["log_loss_after"] < card["log_loss_before"]
            assert any(
                note.startswith("Calibration by temperature scaling was applied") for note in out.result["notes"]
            )
        os.unlink(run.events_file)
    assert losses[True] < losses[False]


def test_calibration_is_left_out_of_small_sets(run):
    run.bundle(train=moods(42), val=moods(4, 42))
    out = run.train()
    assert out.result["notes"] == ["Calibration was not applied: 42 training items are fewer than 50"]


@pytest.mark.parametrize("classifier", ["logreg", "sgd"])
def test_same_seed_same_answers(run, classifier):
    run.bundle(train=noisy(300, 1), val=noisy(50, 2))
    files = []
    for i in range(2):
        out = run.train(params={"classifier": classifier}, workdir=os.path.join(run.folder, "w%d" % i), seed=-7)
        assert out.code == 0
        files.append(
            [
                open(os.path.join(run.folder, "w%d" % i, name), "rb").read()
                for name in ("predictions.jsonl", "model.pkl")
            ]
        )
    assert files[0] == files[1]


def test_sgd_draws_curves(run):
    run.bundle(train=noisy(300, 1), val=noisy(50, 2), test=noisy(50, 3))
    out = run.train(params={"classifier": "sgd", "epochs": 5})
    curves = {}
    for e in out.of("metric"):
        curves.setdefault((e["split"], e["name"]), []).append((e["step"], e["value"]))
    assert (
        [step for step, _ in curves["train", "loss"]]
        == [1, 2, 3, 4, 5]
        == [step for step, _ in curves["val", "accuracy"]]
    )
    assert curves["train", "loss"][-1][1] < curves["train", "loss"][0][1]
    assert set(curves) == {("train", "loss"), ("val", "accuracy"), ("train", "accuracy")}
    assert out.of("progress")[-1]["phase"] == "predict" and any(
        e["phase"] == "fit" and e["total"] == 5 for e in out.of("progress")
    )
    assert not os.path.exists(run.checkpoint_dir)


def test_specs_and_bundles_of_the_annotation_tool(run):
    """PEER.md §4: no events file, no attempt; labels empty for an ordinal scheme, targets floats; splits of other names."""
    manifest = {
        "labels": {"stars": []},
        "text_key": "text",
        "split_seed": 0,
        "aggregation": "consensus",
        "stats": {
            "n_items": 120,
            "n_annotated": 60,
            "n_skipped_no_label": 0,
            "n_media_linked": 0,
            "n_media_missing": 0,
            "splits": {},
            "warnings": [],
        },
    }
    run.bundle(
        schemas=[STARS],
        manifest=manifest,
        train=stars(42, 0, True),
        val=stars(8, 42, True),
        test=stars(10, 50, True),
        unlabeled=unlabelled(stars(60)),
    )
    keys = ("v", "run_id", "trainer", "schemas", "bundle_dir", "workdir", "params", "seed", "limits")
    run.spec(events_file=None)
    spec = json.load(open(run.spec_file))
    run.write("spec.json", json.dumps({key: spec[key] for key in keys}, indent=2))
    out = run.finish(run.start())
    assert out.result["n_predictions"] == 78 and out.result["label_order"] == ["1", "2", "4", "5", "10"]


def test_splits_of_other_names_are_held_out(run):
    run.bundle(train=moods(20), test=moods(2, 30), dev=moods(4, 20), unlabeled=unlabelled(moods(3, 24)))
    out = run.train()
    assert out.result["n_predictions"] == 9
    assert [p["instance_id"].split("-")[0] for p in out.predictions] == ["dev"] * 4 + ["test"] * 2 + ["unlabeled"] * 3


def test_params_change_the_features(run):
    run.bundle(train=moods(30), val=moods(2, 30))
    params = {
        "analyzer": "char_wb",
        "ngram_min": 2,
        "ngram_max": 4,
        "max_features": 50,
        "sublinear_tf": True,
        "lowercase": False,
        "class_weight": "balanced",
    }
    out = run.train(params=params)
    vectorizer = pickle.load(open(out.artifact("model.pkl"), "rb"))["vectorizer"]
    assert len(vectorizer.vocabulary_) == 50 and vectorizer.analyzer == "char_wb" and vectorizer.ngram_range == (2, 4)
    assert vectorizer.sublinear_tf and not vectorizer.lowercase
    assert json.load(open(out.artifact("model_card.json")))["params"]["class_weight"] == "balanced"


def test_balanced_weights_help_the_rare_label(run):
    rng = random.Random(5)
    rows = [
        ("item %d %s" % (i, rng.choice(["alpha", "beta", "gamma"])), {"mood": "bad" if i % 12 == 0 else "good"})
        for i in range(240)
    ]
    rows = [(text + (" sour" if t["mood"] == "bad" and i % 24 == 0 else ""), t) for i, (text, t) in enumerate(rows)]
    run.bundle(train=rows, unlabeled=[("sour alpha", None)])
    scores = {}
    for weight in ("none", "balanced"):
        scores[weight] = run.train(params={"class_weight": weight, "calibrate": False}).predictions[0]["payload"][
            "scores"
        ]["bad"]
        os.unlink(run.events_file)
    assert scores["balanced"] > scores["none"]
