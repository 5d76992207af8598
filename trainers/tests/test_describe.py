"""Describing an interpreter, and the files of trainers that are found."""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT, moods

GOOD = "TRAINER = {'name': 'mine', 'description': 'Mine.', 'kinds': ['nominal']}\ndef train(job):\n    yield\n"


def describe(run, *args):
    out = run.finish(run.start("--describe", *args))
    assert out.code == 0 and out.stderr == "", out.stderr
    return json.loads(out.stdout)


def described(run, **files):
    for name, text in files.items():
        run.write("trainers/%s.py" % name, text)
    said = describe(run, "--trainers-dir", os.path.join(run.folder, "trainers"))
    return {t["name"]: t for t in said["trainers"] if t["source"] == "study"}


def test_built_in_trainers(run):
    said = describe(run)
    assert said["python"] == "%d.%d.%d" % sys.version_info[:3] and said["executable"] == sys.executable
    assert "device" not in said
    files = [
        f
        for f in os.listdir(os.path.join(ROOT, "potato_trainers", "builtin"))
        if f.endswith(".py") and f != "__init__.py"
    ]
    assert len(said["trainers"]) == len(files)
    for trainer in said["trainers"]:
        assert trainer["source"] == "built-in"
        assert (
            trainer["description"]
            and trainer["licence"]
            and trainer["licence_url"].startswith("https://")
            and trainer["install_hint"]
        )
        assert trainer["packages"] and trainer["kinds"] and trainer["modalities"]
        assert trainer["params"]["additionalProperties"] is False
        for name, rule in trainer["params"]["properties"].items():
            assert rule["type"] and rule["description"] and "default" in rule, name
        assert trainer["available"] == (not trainer["missing_packages"])


@pytest.mark.sklearn
def test_sklearn_text_is_available(run):
    trainer = {t["name"]: t for t in describe(run)["trainers"]}["sklearn-text"]
    assert trainer["available"] and trainer["unavailable_reason"] == ""
    assert trainer["kinds"] == ["nominal", "ordinal", "multilabel"]


def test_imports_nothing_heavy(run):
    """Neither a trainer's packages nor a study's file is run."""
    run.write("trainers/loud.py", "print('executed')\n" + GOOD)
    code = "import sys, json; sys.path.insert(0, %r)\nfrom potato_trainers.describe import describe\ndescribe(%r, 'cpu')\nprint(json.dumps(sorted(sys.modules)))"
    text = subprocess.check_output(
        [sys.executable, "-c", code % (ROOT, os.path.join(run.folder, "trainers"))], universal_newlines=True
    )
    assert not {"numpy", "sklearn", "torch", "scipy"} & set(json.loads(text))


def test_missing_package_is_named(run):
    text = GOOD.replace("'kinds'", "'packages': ['pip', 'no-such'], 'imports': ['json', 'no_such.part'], 'kinds'")
    mine = described(run, mine=text)["mine"]
    assert not mine["available"] and mine["missing_packages"] == ["no-such"]
    assert mine["unavailable_reason"] == "the package 'no_such' is missing in %s" % sys.executable


BROKEN = [
    ("def train(job:\n", "line 1 is not valid Python"),
    ("x = '\0'\n", "is not valid Python"),
    ("def train(job):\n    yield\n", "it has train(job) but no TRAINER"),
    ("TRAINER = {'name': 'a'}\n", "it has TRAINER but no function train(job)"),
    (GOOD.replace("'Mine.'", "str(1)"), "TRAINER must be a literal"),
    (GOOD.replace("{'name'", "['name'").replace("['nominal']}", "['nominal']]").replace(":", ","), "not valid Python"),
    (GOOD.replace("'name': 'mine', ", ""), "TRAINER['name'] is missing"),
    (GOOD.replace("'mine'", "'My Trainer'"), "lower-case letters"),
    (GOOD.replace("'Mine.'", "3"), "TRAINER['description'] must be a str"),
    (GOOD.replace("['nominal']", "['nominel']"), "has 'nominel'"),
    (GOOD.replace("'kinds'", "'kinda': 1, 'kinds'"), "unknown key 'kinda'"),
    (GOOD.replace("'kinds'", "'packages': ['a'], 'kinds'"), "one module for each"),
    (GOOD.replace("'kinds'", "'params': {'type': 'array'}, 'kinds'"), "JSON Schema of type object"),
    (GOOD.replace("'mine'", "'sklearn-text'"), "which is a built-in trainer"),
]


@pytest.mark.parametrize("text, said", BROKEN, ids=[said for _, said in BROKEN])
def test_broken_file_is_listed_with_the_reason_and_harms_no_other(run, text, said):
    found = described(run, bad=text, good=GOOD)
    assert set(found) == {"bad.py", "mine"}
    assert not found["bad.py"]["available"] and said in found["bad.py"]["unavailable_reason"]
    assert found["bad.py"]["unavailable_reason"].startswith("bad.py: ")
    assert found["mine"]["available"]


def test_pipes_and_folders_are_no_trainers(run):
    """Reading a pipe would wait for ever, and the whole list with it."""
    folder = os.path.dirname(run.write("trainers/mine.py", GOOD))
    os.mkfifo(os.path.join(folder, "pipe.py"))
    os.mkdir(os.path.join(folder, "folder.py"))
    os.symlink("/nowhere", os.path.join(folder, "link.py"))
    found = described(run)
    reasons = {name: found[name]["unavailable_reason"] for name in ("pipe.py", "folder.py", "link.py")}
    assert reasons["pipe.py"].endswith("it is not a file") and reasons["folder.py"].endswith("it is not a file")
    assert "cannot be read" in reasons["link.py"] and found["mine"]["available"]


def test_two_files_of_one_name(run):
    found = described(run, a=GOOD, b=GOOD)
    assert set(found) == {"mine", "b.py"} and "another file's" in found["b.py"]["unavailable_reason"]


def test_helper_files_are_no_trainers(run):
    found = described(run, mine=GOOD, helper="WORDS = ['a']\n", _private="def train(job): pass\n")
    assert set(found) == {"mine"}


def test_trainers_dir_that_is_not_there(run):
    assert describe(run, "--trainers-dir", "/nope")["trainers"]


def test_study_trainer_with_a_helper(run):
    run.bundle(train=moods(4))
    run.write("trainers/words.py", "FIRST = 'good'\n")
    run.write("trainers/json.py", "raise SystemExit('a study must not replace the standard library')\n")
    folder = run.study_trainer("helped", "import json, words\nyield done(label_order=[words.FIRST])")
    assert run.train("helped", trainers_dir=folder).result["label_order"] == ["good"]


def test_broken_trainer_that_is_asked_for(run):
    run.bundle(train=moods(4))
    run.write("trainers/bad.py", "def train(job:\n")
    out = run.train("bad.py", trainers_dir=os.path.join(run.folder, "trainers"))
    assert out.code == 2 and out.error["message"].startswith(
        "Trainer 'bad.py' could not be imported: bad.py: line 1 is not valid Python"
    )


def test_trainer_whose_import_fails(run):
    run.bundle(train=moods(4))
    run.write("trainers/mine.py", "import no_such\n" + GOOD)
    out = run.train("mine", trainers_dir=os.path.join(run.folder, "trainers"))
    assert out.code == 3
    assert (
        out.error["message"]
        == "Trainer 'mine' could not be imported: the package 'no_such' is missing in %s" % sys.executable
    )


def test_the_readmes_example_runs(run):
    """The contract's example is a trainer."""
    text = open(os.path.join(ROOT, "README.md"), encoding="utf-8").read()
    example = text[text.index("```python\n") + len("```python\n") :]
    run.write("trainers/majority.py", example[: example.index("```")])
    run.bundle(train=moods(9), val=moods(2, 9), unlabeled=[("x", None)])
    out = run.train("majority", trainers_dir=os.path.join(run.folder, "trainers"))
    assert out.result["n_predictions"] == 3 and {p["payload"]["label"] for p in out.predictions} == {"good"}
