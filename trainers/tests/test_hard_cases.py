"""What labels and texts of real studies do to a trainer: too few, too strange (T50, T51, T54). A sentence, or a result."""

import json
import os

import pytest
from conftest import MOOD, STARS, TOPICS, moods

pytestmark = pytest.mark.sklearn

LONE = "lone \ud800 surrogate"
STRANGE = [
    "",
    "   \n\t ",
    "nul \x00 inside",
    LONE,
    "👩‍👩‍👧 family and 🏳️‍🌈",
    "مرحبا بالعالم \u202e right to left",
    "word " * 200000,
    "x" * 1000000,
    "=cmd()|'/c calc'!A0",
    "line\u2028separator\u0085next",
]


def labelled(counts):
    """Rows with so many of each label, told apart by a word of their own."""
    return [
        ("text number %d of kind k%d" % (i, j), {"mood": label})
        for j, (label, n) in enumerate(counts.items())
        for i in range(n)
    ]


REFUSED = [
    # rows, params, what is said (T50, T51)
    ([], {}, "10 labelled items are needed in the training split, there are 0 for 'mood' (train 0, val 2)"),
    (moods(6), {}, "10 labelled items are needed in the training split, there are 6 for 'mood' (train 6, val 2)"),
    (
        [(t, {}) for t, _ in moods(40)],
        {},
        "10 labelled items are needed in the training split, there are 0 for 'mood' (train 40, val 2)",
    ),
    ([(t, {"mood": ""}) for t, _ in moods(40)], {}, "there are 0 for 'mood'"),
    ([(t, {"mood": None}) for t, _ in moods(40)], {}, "there are 0 for 'mood'"),
    (moods(19), {"min_instances": 20}, "20 labelled items are needed in the training split, there are 19"),
    (
        labelled({"positive": 40}),
        {},
        "The training split of 'mood' has only one label ('positive', 40 items); two are needed",
    ),
    (labelled({"a": 2}), {"min_instances": 2}, "has only one label ('a', 2 items)"),
    (
        [("", t) for _, t in moods(40)],
        {},
        "None of the 40 training texts has a word of two letters or more to learn from (40 are empty)",
    ),
    (
        [("a I ! ?", t) for _, t in moods(40)],
        {},
        "None of the 40 training texts has a word of two letters or more to learn from (0 are empty)",
    ),
    (moods(40), {"min_instances": 1}, "min_instances must be at least 2"),
    (moods(40), {"classifier": "os.system"}, "classifier must be one of logreg, sgd"),
    (moods(40), {"classfier": "sgd"}, "there is no parameter 'classfier'; did you mean 'classifier'?"),
    (moods(40), {"min_instances": "x"}, "min_instances must be a whole number"),
    (moods(40), {"ngram_min": 3, "ngram_max": 2}, "ngram_min is 3, more than ngram_max (2)"),
]


@pytest.mark.parametrize("rows, params, said", REFUSED, ids=[said[:70] for _, _, said in REFUSED])
def test_refused_in_a_sentence(run, rows, params, said):
    run.bundle(train=rows, val=moods(2))
    out = run.train(params=params)
    assert out.code == 2 and out.error["code"] == "validation_failed"
    assert said in out.error["message"]
    assert "Traceback" not in out.stderr
    assert not os.path.exists(out.artifact("predictions.jsonl"))


MULTILABEL_REFUSED = [
    (
        [(t, {"topics": []}) for t, _ in moods(20)],
        "All 20 training items of 'topics' have an empty list of labels; two different answers are needed",
    ),
    (
        [(t, {"topics": ["food", "x"]}) for t, _ in moods(20)],
        "All 20 training items of 'topics' have the same labels ('food', 'x'); two different answers are needed",
    ),
]


@pytest.mark.parametrize("rows, said", MULTILABEL_REFUSED)
def test_multilabel_refused_in_a_sentence(run, rows, said):
    run.bundle(schemas=[TOPICS], train=rows)
    assert run.train().error["message"] == said


def test_bundle_without_a_training_split(run):
    run.bundle(val=moods(2))
    assert "there are 0 for 'mood' (val 2)" in run.train().error["message"]


GRACEFUL = [
    # counts of the training labels, params
    ({"a": 1, "b": 1}, {"min_instances": 2}),
    ({"a": 1, "b": 59}, {}),
    ({"a": 1, "b": 1, "c": 58}, {}),
    ({"a": 2, "b": 58}, {}),
    ({"a": 4, "b": 28, "c": 28}, {}),
    ({"a": 1, "b": 30, "c": 30}, {"class_weight": "balanced"}),
    ({"l%d" % i: 1 for i in range(60)}, {}),
    ({"l%d" % i: 2 for i in range(500)}, {}),
    ({"l%d" % i: 3 for i in range(200)}, {"classifier": "sgd", "epochs": 2}),
]


@pytest.mark.parametrize("counts, params", GRACEFUL, ids=[str(list(c.items())[:3]) + str(len(c)) for c, _ in GRACEFUL])
def test_rare_and_many_labels(run, counts, params):
    rows = labelled(counts)
    run.bundle(train=rows, val=rows[:5], unlabeled=[("nothing of the sort", None)])
    out = run.train(params=params)
    assert out.result["n_predictions"] == min(5, len(rows)) + 1 and sorted(out.result["label_order"]) == sorted(counts)
    for p in out.predictions:
        assert set(p["payload"]["scores"]) == set(counts) and abs(sum(p["payload"]["scores"].values()) - 1) < 1e-3
    assert "Traceback" not in out.stderr


def test_label_that_only_held_out_items_have(run):
    run.bundle(train=moods(20), val=moods(2, 20) + [("a film", {"mood": "odd"})], test=[("a film", {"mood": "odder"})])
    out = run.train()
    note = "2 held-out targets of 'mood' are labels that no training item has: 'odd', 'odder'"
    assert note in out.result["notes"] and out.result["n_predictions"] == 4


def test_held_out_items_without_an_answer_are_predicted_all_the_same(run):
    run.bundle(train=moods(20), val=[("lovely", {}), ("awful", {"mood": ""})])
    assert run.train().result["n_predictions"] == 2


@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
def test_strange_texts(run, analyzer):
    rows = [(text, {"mood": ("good", "bad")[i % 2]}) for i, text in enumerate(STRANGE)] + moods(20)
    run.bundle(train=rows, val=rows[:10], unlabeled=[(text, None) for text in STRANGE])
    out = run.train(params={"analyzer": analyzer})
    assert out.result["n_predictions"] == 20 and out.stderr == ""


LABELS = [
    "a|b",
    "a/b",
    "=cmd()",
    "free_response",
    "",
    LONE,
    "nul \x00",
    "100 %s %%",
    'quote " and \\',
    "👩‍👩‍👧",
    "  ",
    "ｆｕｌｌ",
    "null",
    "True",
]


def test_strange_labels_come_back_exactly(run):
    names = [label for label in LABELS if label]
    rows = [("only word%d" % i, {"mood": label}) for i, label in enumerate(names)] * 6
    run.bundle(train=rows, val=rows[: len(names)])
    out = run.train(params={"C": 1000})
    assert [p["payload"]["label"] for p in out.predictions] == names
    assert set(out.predictions[0]["payload"]["scores"]) == set(names)
    card = json.load(open(out.artifact("model_card.json")))
    assert card["labels_at_fit"] == {label: 6 for label in names}


def test_strange_ids_and_schemes_come_back_exactly(run):
    schema = dict(MOOD, name='s%s "\\ \ud83d')
    run.bundle(schemas=[schema], train=[(t, {schema["name"]: x["mood"]}) for t, x in moods(20)])
    ids = LABELS + ["a" * 5000]
    lines = "".join(json.dumps({"instance_id": i, "text": "lovely"}) + "\n" for i in ids)
    run.write("bundle/unlabeled.jsonl", lines)
    manifest = json.load(open(os.path.join(run.bundle_dir, "manifest.json")))
    manifest["splits"]["unlabeled"] = {
        "path": "unlabeled.jsonl",
        "format": "jsonl",
        "n": len(ids),
        "predict_only": True,
    }
    run.write("bundle/manifest.json", json.dumps(manifest))
    out = run.train()
    assert [(p["instance_id"], p["schema_name"]) for p in out.predictions] == [(i, schema["name"]) for i in ids]


def test_multilabel_with_strange_labels(run):
    names = [label for label in LABELS if label]
    rows = [("only word%d" % i, {"topics": [label]}) for i, label in enumerate(names)] * 6
    run.bundle(schemas=[TOPICS], train=rows, val=rows[: len(names)])
    out = run.train(params={"C": 1000})
    assert [p["payload"]["labels"] for p in out.predictions] == [[label] for label in names]


@pytest.mark.parametrize(
    "kind, target",
    [("nominal", ["a"]), ("nominal", True), ("multilabel", [1]), ("multilabel", 3), ("ordinal", {"a": 1})],
)
def test_target_of_another_form(run, kind, target):
    schema = {"nominal": MOOD, "ordinal": STARS, "multilabel": TOPICS}[kind]
    run.bundle(schemas=[schema], train=[("text", {schema["name"]: target})])
    out = run.train()
    assert out.code == 2 and out.error["code"] == "bad_bundle"
    assert out.error["message"].startswith("Item 'train-0' has no usable target for '%s'" % schema["name"])


def test_ordinal_values_that_are_texts_and_fractions(run):
    values = ["low", "mid", "high"]
    schema = dict(STARS, labels=values)
    run.bundle(
        schemas=[schema], train=[("t%d" % (i % 3), {"stars": values[i % 3]}) for i in range(30)], val=[("t1", {})]
    )
    assert run.train().result["label_order"] == values
    run.bundle(schemas=[STARS], train=[("t%d" % (i % 3), {"stars": [2.5, 10, 1][i % 3]}) for i in range(30)])
    os.unlink(run.events_file)
    assert run.train().result["label_order"] == ["1", "2.5", "10"]
