"""Checkpoints: a run that is ended at any moment goes on from the last one, and never from anything else."""

import glob
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import MOOD, TOPICS, WORKER, moods
from test_sklearn_text import noisy, topics
from test_worker import wait_for

# Counts, with one checkpoint a step; the first attempt stays at the step that it is to be ended in.
COUNTING = """
found = job.checkpoint()
n = int(open(os.path.join(found, "n")).read()) if found else 0
yield log("beginning at %d" % n)
while n < job.params["steps"]:
    n += 1
    with job.saving() as folder:
        open(os.path.join(folder, "n"), "w").write(str(n))
    yield metric("train", "loss", 1.0 / n, n)
    while job.attempt == 1 and n == job.params["stay"]:
        time.sleep(0.01)
yield done(metrics={"n_train": n})
"""
KEYS = """
    "params": {"type": "object", "properties": {
        "steps": {"type": "integer", "default": 10}, "stay": {"type": "integer", "default": 5}}},
    "checkpoints": True, """


@pytest.fixture
def counting(run):
    run.bundle(train=moods(4))
    run.fields = {"trainer": "counting", "trainers_dir": run.study_trainer("counting", COUNTING)}
    path = os.path.join(run.fields["trainers_dir"], "counting.py")
    text = open(path).read().replace('"kinds"', KEYS + '"kinds"')
    open(path, "w").write(text)
    return run


def steps_of(out):
    return [e["step"] for e in out.of("metric") if e["name"] == "loss"]


def begun_at(out):
    return next(int(e["msg"].split()[-1]) for e in out.of("log") if e["msg"].startswith("beginning at"))


def kept(run, name="state"):
    """The checkpoints of a name that lie there."""
    return sorted(glob.glob(os.path.join(run.checkpoint_dir, name + "-*")))


def stop_early(run, number, steps=5, **fields):
    """Starts a run and sends it a signal once it has done some steps; returns how it ended."""
    run.spec(**dict(fields or run.fields))
    process = run.start()
    wait_for(lambda: os.path.exists(run.events_file) and open(run.events_file).read().count('"loss"') >= steps)
    process.send_signal(number)
    out = run.finish(process)
    os.rename(run.events_file, run.events_file + ".1")
    return out


@pytest.mark.parametrize("number,code", [(signal.SIGKILL, -9), (signal.SIGTERM, 4)])
def test_the_next_attempt_goes_on(counting, number, code):
    assert stop_early(counting, number).code == code
    assert os.path.basename(kept(counting)[-1]) == "state-000005"
    out = counting.train(attempt=2, **counting.fields)
    assert out.result["metrics"] == {"n_train": 10} and begun_at(out) == 5
    assert steps_of(out) == [6, 7, 8, 9, 10]
    assert not os.path.exists(counting.checkpoint_dir)  # a run with a result needs none


def test_killed_at_any_moment(counting):
    """Ten times in the midst of saving: it never begins at less than was saved before, and ends as it should."""
    fields = dict(counting.fields, params={"steps": 1000000, "stay": 0})
    begun = 0
    for attempt in range(1, 11):
        out = stop_early(counting, signal.SIGKILL, steps=1 + attempt % 3, attempt=attempt, **fields)
        counting.events_file += ".1"
        assert not [e for e in out.of("log") if e["level"] != "info"]
        assert begun_at(out) >= begun and steps_of(out)[0] == begun_at(out) + 1
        begun = steps_of(out)[-1]
        counting.events_file = counting.events_file[:-2]


def test_no_checkpoint_lies_among_the_artifacts(counting):
    stop_early(counting, signal.SIGTERM)
    assert os.listdir(counting.workdir) == []


def test_a_spec_without_the_folder(counting):
    """The annotation tool's specs name none: it is below the working directory then."""
    counting.checkpoint_dir = os.path.join(counting.workdir, "checkpoints")
    counting.fields["checkpoint_dir"] = None
    stop_early(counting, signal.SIGKILL)
    assert kept(counting)
    assert begun_at(counting.train(attempt=2, **counting.fields)) == 5


def damage(path):
    with open(os.path.join(path, "n"), "r+b") as file:
        file.write(b"9")


def cut_off(path):
    os.truncate(os.path.join(path, "n"), 0)


def lose_a_file(path):
    os.remove(os.path.join(path, "n"))


def lose_the_manifest(path):
    os.remove(os.path.join(path, "checkpoint.json"))


def nonsense(path):
    open(os.path.join(path, "checkpoint.json"), "w").write("[]")


def newer_version(path):
    change(path, lambda manifest: manifest.update(v=2))


def change(path, how):
    name = os.path.join(path, "checkpoint.json")
    manifest = json.load(open(name))
    how(manifest)
    json.dump(manifest, open(name, "w"))


@pytest.mark.parametrize("harm", [damage, cut_off, lose_a_file, lose_the_manifest, nonsense, newer_version])
def test_a_damaged_checkpoint_is_never_used(counting, harm):
    stop_early(counting, signal.SIGKILL)
    for path in kept(counting):
        harm(path)
    out = counting.train(attempt=2, **counting.fields)
    assert begun_at(out) == 0 and out.result["metrics"] == {"n_train": 10}
    said = [e["msg"] for e in out.of("log") if e["level"] == "warning"]
    assert said and all("is damaged and is not used" in text for text in said)


def test_the_one_before_a_damaged_one_is_used(counting):
    stop_early(counting, signal.SIGKILL)
    whole = kept(counting)[0]
    n = int(open(os.path.join(whole, "n")).read())
    later = os.path.join(counting.checkpoint_dir, "state-900000")
    shutil.copytree(whole, later)
    damage(later)
    assert begun_at(counting.train(attempt=2, **counting.fields)) == n


def test_a_half_written_checkpoint_is_not_seen_and_is_cleared_away(counting):
    partial = os.path.join(counting.checkpoint_dir, ".state-abc.partial")
    os.makedirs(partial)
    open(os.path.join(partial, "n"), "w").write("150")
    out = stop_early(counting, signal.SIGKILL)
    assert not os.path.exists(partial)
    counting.events_file += ".1"
    assert begun_at(out) == 0


@pytest.mark.parametrize(
    "change,said",
    [
        ({"params": {"steps": 9}}, "with other parameters"),
        ({"seed": 7}, "with another seed"),
        ({"run_id": "20261129T192252-ffffff"}, "in another run"),
        ({"schemas": [dict(MOOD, labels=["bad", "good"])]}, "for other schemes"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(counting, change, said):
    stop_early(counting, signal.SIGKILL)
    out = counting.train(attempt=2, **dict(counting.fields, **change))
    assert begun_at(out) == 0
    warnings = [e["msg"] for e in out.of("log") if e["level"] == "warning"]
    assert warnings == [
        "The checkpoints found are not used, for they were made %s; the training starts afresh" % said
    ]


def test_a_checkpoint_of_another_bundle_or_version_is_refused(counting):
    stop_early(counting, signal.SIGKILL)
    for path in kept(counting):
        change(path, lambda manifest: manifest["made_of"]["versions"].update(python="2.7"))
    counting.bundle(train=moods(4), manifest={"digest": "1" * 64})
    out = counting.train(attempt=2, **counting.fields)
    assert begun_at(out) == 0
    assert any("on another bundle and with other versions of Python or packages" in e["msg"] for e in out.of("log"))


def test_a_scheduler_counts_the_attempts_in_the_environment(run):
    """It starts the worker anew with the same spec."""
    run.bundle(train=moods(4))
    folder = run.study_trainer("counted", "yield done(metrics={'n_train': job.attempt})")
    run.spec("counted", trainers_dir=folder, attempt=1)
    out = run.finish(run.start(env=dict(os.environ, POTATO_ATTEMPT="3")))
    assert out.result["metrics"] == {"n_train": 3}


WAITING = """
yield status("waiting for the scheduler")
while not job.save_requested:
    yield progress("fit", 1, 2)
    time.sleep(0.005)
with job.saving("model") as folder:
    open(os.path.join(folder, "n"), "w").write("7")
yield log("saved" if not job.save_requested else "not saved")
yield done(metrics={"n_train": int(open(os.path.join(job.checkpoint("model"), "n")).read())})
"""


def test_the_schedulers_signal_asks_for_a_checkpoint(run):
    """SIGUSR1 comes before the time limit; the run goes on after it."""
    run.bundle(train=moods(4))
    run.spec("waiting", trainers_dir=run.study_trainer("waiting", WAITING))
    process = run.start()
    wait_for(lambda: os.path.exists(run.events_file) and "waiting for" in open(run.events_file).read())
    process.send_signal(signal.SIGUSR1)
    out = run.finish(process)
    assert out.result["metrics"] == {"n_train": 7}
    said = [e["msg"] for e in out.of("log")]
    assert said == [
        "The scheduler says that the job's time runs out; this trainer saves no checkpoints",  # as TRAINER has it
        "A checkpoint was saved, as the scheduler asked",
        "saved",
    ]


def test_the_signal_harms_no_worker_that_is_just_starting(run):
    run.bundle(train=moods(4))
    folder = run.study_trainer("starting", "yield done(metrics={'n_train': 1})")
    head = "import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)\n"
    path = os.path.join(folder, "starting.py")
    text = open(path).read()
    open(path, "w").write(head + text)
    assert run.train("starting", trainers_dir=folder).result["metrics"] == {"n_train": 1}
    # Before the spec is read: a warm worker, say.
    code = "import os, runpy, signal, sys; sys.argv = ['worker.py', '--describe']\n"
    code += "import argparse\nparse = argparse.ArgumentParser.parse_args\n"
    code += "def early(*a):\n    os.kill(os.getpid(), signal.SIGUSR1)\n    return parse(*a)\n"
    code += "argparse.ArgumentParser.parse_args = early\nrunpy.run_path(%r, run_name='__main__')\n"
    assert json.loads(subprocess.check_output([sys.executable, "-c", code % WORKER]))["trainers"]


FULL = """
import errno
from potato_trainers import checkpoints
def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")
checkpoints._write = full
for n in range(3):
    with job.saving() as folder:
        if n == 1:
            full()
        open(os.path.join(folder, "n"), "w").write("1")
yield done(metrics={"n_train": 3})
"""


def test_a_full_disk_costs_the_checkpoint_and_not_the_run(run):
    run.bundle(train=moods(4))
    out = run.train("full", trainers_dir=run.study_trainer("full", FULL))
    assert out.result["metrics"] == {"n_train": 3}
    assert [e["msg"] for e in out.of("log")] == [
        "A checkpoint could not be saved (No space left on device); the training goes on without"
    ]


NO_ROOM = """
import errno, tempfile
from potato_trainers import checkpoints

made = tempfile.mkdtemp


def full(*args, **more):
    if more.get("dir"):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")
    return made(*args, **more)


tempfile.mkdtemp = full
with job.saving() as folder:
    with open(folder + "/state", "w") as file:
        file.write("x")
yield done(metrics={"n_train": 3})
"""


def test_no_room_for_the_folder_costs_the_checkpoint_and_not_the_run(run):
    run.bundle(train=moods(4))
    out = run.train("full", trainers_dir=run.study_trainer("full", NO_ROOM))
    assert out.result["metrics"] == {"n_train": 3}
    assert [e["msg"] for e in out.of("log")] == [
        "A checkpoint could not be saved (Disk quota exceeded); the training goes on without"
    ]


def test_an_error_while_saving_is_the_trainers_own(run):
    run.bundle(train=moods(4))
    body = "with job.saving() as folder:\n    raise ValueError('mine')\nyield done()"
    out = run.train("failing", trainers_dir=run.study_trainer("failing", body))
    assert "ValueError: mine" in out.error["message"] and os.listdir(run.checkpoint_dir) == []


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden"])
def test_names_of_checkpoints_are_not_paths(run, name):
    run.bundle(train=moods(4))
    body = "job.checkpoint(%r)\nyield done()" % name
    out = run.train("odd", trainers_dir=run.study_trainer("odd", body))
    assert "cannot be the name of a checkpoint" in out.error["message"]


SGD = {"classifier": "sgd", "epochs": 60, "calibrate": False}


def coefficients(out, *path):
    model = pickle.load(open(out.artifact(*path), "rb"))
    return [(c.coef_.tolist(), c.intercept_.tolist(), c.t_) for c in model.get("classifiers", [model.get("classifier")])]


@pytest.mark.sklearn
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_sgd_that_was_ended_between_epochs_ends_as_if_it_had_not(run, number):
    rows, more = noisy(1000, 1), topics(1000)
    both = [(a + " " + b, dict(ta, **tb)) for (a, ta), (b, tb) in zip(rows, more)]
    run.bundle(schemas=[MOOD, TOPICS], train=both, val=both[:20])
    whole = run.train(params=SGD)
    models = ("mood", "model.pkl"), ("topics", "model.pkl")
    expected, lines = [coefficients(whole, *model) for model in models], whole.predictions
    shutil.rmtree(run.workdir)
    os.unlink(run.events_file)

    stop_early(run, number, steps=70, params=SGD)  # in the second scheme
    names = {os.path.basename(path)[:-7] for path in glob.glob(run.checkpoint_dir + "/*")}
    assert names == {"features-0", "scheme-mood", "scheme-topics"}
    assert "model.pkl" not in os.listdir(run.workdir)
    out = run.train(params=SGD, attempt=2)
    going_on = [e["msg"] for e in out.of("log") if "checkpoint" in e["msg"]]
    assert going_on[0] == "Going on mood from the checkpoint after epoch 60 of 60"
    assert going_on[1].startswith("Going on topics from the checkpoint after epoch ")
    first = next(e for e in out.of("metric") if e["name"] == "loss")
    assert first["schema"] == "topics" and first["step"] >= 10  # the end may come between figures and checkpoint
    assert [coefficients(out, *model) for model in models] == expected and out.predictions == lines
    assert not os.path.exists(run.checkpoint_dir)


@pytest.mark.sklearn
def test_sgd_starts_afresh_when_the_bundle_is_another(run):
    run.bundle(train=noisy(400, 1))
    stop_early(run, signal.SIGKILL, params=SGD)
    run.bundle(train=noisy(400, 2), manifest={"digest": "1" * 64})
    out = run.train(params=SGD, attempt=2)
    assert steps_of(out) == list(range(1, 61))
    warnings = [e["msg"] for e in out.of("log") if e["level"] == "warning"]
    assert warnings == [
        "The checkpoints found are not used, for they were made on another bundle; the training starts afresh"
    ]


@pytest.mark.sklearn
def test_sgd_whose_features_are_damaged_makes_them_again(run):
    run.bundle(train=noisy(400, 1))
    whole = coefficients(run.train(params=SGD), "model.pkl")
    os.unlink(run.events_file)
    stop_early(run, signal.SIGKILL, params=SGD)
    for path in kept(run, "features-0"):
        cut = os.path.join(path, "state.pkl")
        os.truncate(cut, os.path.getsize(cut) // 2)
    out = run.train(params=SGD, attempt=2)
    assert steps_of(out)[0] > 1 and coefficients(out, "model.pkl") == whole


@pytest.mark.sklearn
def test_logreg_saves_nothing(run):
    run.bundle(train=moods(40))
    assert run.train().code == 0
    assert not os.path.exists(run.checkpoint_dir)
