"""Ranks, as far as one worker goes: what the others than rank 0 leave behind, and which GPU each takes. That they meet,
and how one ends them all, is tested with their launcher (agent/rank_test.go)."""

import json
import os
import signal

import pytest
from conftest import moods
from test_devices import A100, ARCHS, TORCH
from test_worker import HANGS, wait_for

BODY = """
with job.saving() as folder:
    open(os.path.join(folder, "n"), "w").write("1")
with job.predictions() as out:
    out.write("a", "mood", {"label": "good", "confidence": None})
yield artifact("model.bin")
with open(os.environ["SAID"], "w") as said:
    said.write(" ".join(str(x) for x in (job.rank, job.local_rank, job.world_size, job.device.name, job.checkpoint())))
yield done(metrics={"n_train": 1})
"""


def rank(run, number, body=BODY, **env):
    """Runs one rank of three; returns how it ended and what it said of itself."""
    run.bundle(train=moods(4))
    run.write("site/torch.py", TORCH)
    folder = run.study_trainer("ranked", body)
    path = os.path.join(folder, "ranked.py")
    text = open(path).read()
    if '"uses_device"' not in text:
        open(path, "w").write(text.replace('"kinds"', '"uses_device": True, "distributed": True, "kinds"'))
    run.spec("ranked", trainers_dir=folder)
    said = os.path.join(run.folder, "said")
    place = {"POTATO_RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": "3"}
    place["POTATO_RANK_FAILED"] = os.path.join(run.folder, "rank_failed.json")
    gpus = json.dumps({"gpus": [A100, A100, A100], "archs": ARCHS})
    env = dict(os.environ, SAID=said, TMPDIR=run.folder, PYTHONPATH=run.folder + "/site", FAKE_TORCH=gpus, **dict(place, **env))
    process = run.start(env=env)
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, open(said).read() if os.path.exists(said) else "", stderr


@pytest.mark.parametrize("number", [1, 2])
def test_what_others_than_rank_0_write_goes_nowhere(run, number):
    code, said, stderr = rank(run, number)
    assert (code, said) == (0, "%d %d 3 cuda:%d None" % (number, number, number)), stderr
    assert sorted(os.listdir(run.folder)) == ["bundle", "said", "site", "spec.json", "trainers"]


def test_rank_0_is_the_run(run):
    code, said, stderr = rank(run, 0)
    assert code == 0 and said.startswith("0 0 3 cuda:0 "), stderr
    assert os.listdir(run.workdir) == ["predictions.jsonl"]
    assert json.loads(open(run.events_file).readlines()[-1])["event"] == "result"


def test_a_rank_of_somebody_elses_is_none_of_ours(run):
    """RANK may be set for reasons of the machine's own; the run must not fall silent for it."""
    run.bundle(train=moods(4))
    run.spec("quiet", trainers_dir=run.study_trainer("quiet", "yield done(metrics={'n_train': job.world_size})"))
    out = run.finish(run.start(env=dict(os.environ, RANK="3", WORLD_SIZE="4", LOCAL_RANK="3")))
    assert out.result["metrics"] == {"n_train": 1}


def test_the_first_failure_counts(run):
    body = "yield status('fitting')\nraise ValueError('shapes of rank %d differ' % job.rank)"
    for number in (2, 1):
        assert rank(run, number, body)[0] == 1
    note = json.load(open(os.path.join(run.folder, "rank_failed.json")))
    message = "Trainer 'ranked' failed while fitting: ValueError: shapes of rank 2 differ"
    assert (note["rank"], note["code"], note["message"]) == (2, "worker_failed", message)
    assert [name for name in os.listdir(run.folder) if name.startswith("rank_failed")] == ["rank_failed.json"]
    # What rank 0 meets after that is a consequence.
    assert rank(run, 0, "raise ConnectionResetError('connection lost')\nyield done()")[0] == 1
    error = json.loads(open(run.events_file).readlines()[-1])
    assert error["event"] == "error" and error["message"] == "Rank 2 failed: " + message


def test_a_note_that_cannot_be_read_is_no_reason(run):
    run.write("rank_failed.json", "{")
    rank(run, 0, "raise ValueError('mine')\nyield done()")
    assert "ValueError: mine" in json.loads(open(run.events_file).readlines()[-1])["message"]


@pytest.mark.parametrize("hang", list(HANGS.values()), ids=list(HANGS))
def test_rank_0_says_whose_failure_ended_it(run, hang):
    """Its launcher ends it with TERM as soon as another has failed; that is no cancel."""
    run.bundle(train=moods(4))
    run.spec("hanging", trainers_dir=run.study_trainer("hanging", "yield status('hanging')\n" + hang))
    note = run.write("rank_failed.json", '{"rank": 1, "code": "gpu_out_of_memory", "message": "It is full", "hint": "less"}')
    process = run.start(env=dict(os.environ, POTATO_RANK="0", WORLD_SIZE="2", POTATO_RANK_FAILED=note))
    wait_for(lambda: os.path.exists(run.events_file) and "hanging" in open(run.events_file).read())
    process.send_signal(signal.SIGTERM)
    out = run.finish(process, timeout=20)
    assert out.code == 1 and "NameError" not in out.stderr, out.stderr
    assert (out.error["code"], out.error["message"]) == ("gpu_out_of_memory", "Rank 1 failed: It is full")
