"""The worker itself, with small trainers of the tests' own: specs, bundles, events, failures, cancelling."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest
from conftest import MOOD, WORKER, moods

QUICK = "yield done(metrics={'n_train': 1}, label_order=['good', 'bad'])"


def test_result_says_what_ran(run):
    run.bundle(train=moods(4))
    folder = run.study_trainer(
        "quick", "open(job.path('model.bin'), 'w').write('12345')\nyield artifact('model.bin')\n" + QUICK
    )
    out = run.train("quick", trainers_dir=folder)
    result = out.result
    assert result["status"] == "success" and result["metrics"] == {"n_train": 1}
    assert result["metrics_by_schema"] == {"mood": {"n_train": 1}}
    assert result["device"] == "cpu" and result["python"].startswith("3.")
    assert result["model_version"] == "quick-20261129T192252-d3d870"
    assert result["predictions_file"] == "" and result["n_predictions"] == 0
    assert out.of("artifact")[0]["path"] == "model.bin" and out.of("artifact")[0]["bytes"] == 5
    assert [e["step"] for e in out.of("status")] == ["loading bundle", "reading bundle"]
    assert out.stdout == "" and out.stderr == ""
    assert stat.S_IMODE(os.stat(run.events_file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(run.workdir).st_mode) == 0o700


def test_result_is_fit_for_its_reader(run):
    run.bundle(train=moods(4))
    body = (
        "yield done(metrics={'n_train': True, 'train_loss': float('nan'), 'big': 10 ** 400, 'text': '0.5',"
        " 'odd': {}, 'none': None},"
        " label_order=[1.0, 'b'], notes=[2], metrics_by_schema={'mood': {'train_x': 'y', 'train_z': 3}})"
    )
    out = run.train("odd", trainers_dir=run.study_trainer("odd", body))
    assert out.result["metrics"] == {"n_train": 1, "train_loss": None, "none": None}
    assert out.result["metrics_by_schema"] == {"mood": {"train_z": 3}}
    assert out.result["label_order"] == ["1.0", "b"] and out.result["notes"] == ["2"]
    assert out.of("log")[-1]["level"] == "warning"
    assert out.of("log")[-1]["msg"] == "Left out of the metrics, for they are no numbers: big, odd, text, train_x"


@pytest.mark.parametrize("yielded", ["5", "None", "{'step': 'x'}", "[done()]"])
def test_what_is_yielded_must_be_an_event(run, yielded):
    run.bundle(train=moods(4))
    out = run.train("odd", trainers_dir=run.study_trainer("odd", "yield %s\n%s" % (yielded, QUICK)))
    assert out.code == 1 and out.error["code"] == "worker_failed" and "which is no event" in out.error["message"]


CUTS = [lambda b: b[:-20], lambda b: b[:16], lambda b: b[:16] + b"\xff" * len(b[16:]), lambda b: b""]


@pytest.mark.parametrize("damage", CUTS)
def test_bytecode_that_a_full_disk_cut_off(run, tmp_path, damage):
    run.bundle(train=moods(4))
    copy = tmp_path / "code" / "potato_trainers"
    shutil.copytree(os.path.dirname(WORKER), str(copy), ignore=shutil.ignore_patterns("__pycache__"))
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, str(copy / "worker.py"), "--spec"]
    command.append(run.spec("quick", trainers_dir=run.study_trainer("quick", QUICK)))
    for _ in range(3):
        subprocess.run(command, env=env, check=True, timeout=60)
        cached = list(copy.glob("**/*.pyc"))
        assert len(cached) > 5
        for file in cached:
            file.write_bytes(damage(file.read_bytes()))
    assert len(run_results(run)) == 3


def run_results(run):
    with open(run.events_file, encoding="utf-8") as file:
        return [line for line in file if '"event":"result"' in line]


@pytest.mark.parametrize("body", ["return 5", "return iter([])", "pass"])
def test_train_must_be_a_generator(run, body):
    run.bundle(train=moods(4))
    out = run.train("plain", trainers_dir=run.study_trainer("plain", body))
    assert out.code == 1 and out.error["message"] == "Trainer 'plain' yields nothing"
    assert "must yield done" in out.error["install_hint"]


def test_without_events_file_stdout_is_events_alone(run):
    run.bundle(train=moods(4))
    body = "print('noise')\nos.write(1, b'raw noise\\n')\nos.system('echo child noise')\n" + QUICK
    out = run.train("noisy", trainers_dir=run.study_trainer("noisy", body), events_file=None)
    assert out.result["status"] == "success"
    assert sorted(out.stderr.splitlines()) == ["child noise", "noise", "raw noise"]


def test_unknown_keys_and_missing_optional_ones(run):
    run.bundle(train=moods(4), manifest={"future": 1})
    folder = run.study_trainer("quick", QUICK)
    spec = {"trainer": "quick", "schemas": [dict(MOOD, future=2)], "bundle_dir": run.bundle_dir, "workdir": run.workdir}
    run.write("spec.json", json.dumps(dict(spec, trainers_dir=folder, events_file=run.events_file, future=3)))
    assert run.finish(run.start()).result


BAD_SPECS = [
    ("{", "is not JSON"),
    ("[]", "is not a JSON object"),
    ("{}", "`trainer` in the spec must be a text"),
    ('{"v": 2}', "version 2"),
    ('{"trainer": "x", "bundle_dir": "b", "workdir": "w"}', "names no scheme"),
    ('{"trainer": "x", "bundle_dir": "b", "workdir": "w", "schemas": [{}]}', "has no name"),
    ('{"trainer": "x", "bundle_dir": "b", "workdir": "w", "schemas": [{"name": "a"}, {"name": "a"}]}', "twice"),
    ('{"trainer": "x", "bundle_dir": "b", "workdir": "w", "schemas": [{"name": "a"}], "seed": "s"}', "`seed`"),
    ('{"trainer": "x", "bundle_dir": "b", "workdir": "w", "schemas": [{"name": "a"}]}', "There is no trainer 'x'"),
]


@pytest.mark.parametrize("text, said", BAD_SPECS, ids=[said for _, said in BAD_SPECS])
def test_bad_spec(run, text, said):
    run.events_file = None
    run.write("spec.json", text)
    out = run.finish(run.start())
    assert out.code == 2 and out.error["code"] == "bad_spec" and said in out.error["message"]


def test_spec_that_is_not_there(run):
    run.events_file = None
    out = run.finish(run.start("--spec", "/nope.json"))
    assert out.code == 2 and out.error["message"] == "The spec /nope.json cannot be read: No such file or directory"


def test_usage(run):
    assert run.finish(run.start("--nonsense")).code == 2


BAD_BUNDLES = [
    ("manifest.json", None, "The bundle's manifest.json cannot be read: No such file or directory"),
    ("manifest.json", "{", "manifest.json is not JSON"),
    ("manifest.json", "[]", "manifest.json is not in its form"),
    ("manifest.json", '{"v": 9}', "version 9"),
    ("manifest.json", '{"splits": {"train": {"path": "../../secret"}}}', "no usable path for the split 'train'"),
    ("manifest.json", '{"splits": {"train": {"path": "/etc/passwd"}}}', "no usable path for the split 'train'"),
    (
        "manifest.json",
        '{"splits": {"train": {"path": "gone.jsonl"}}}',
        "The bundle's gone.jsonl cannot be read: No such file or directory",
    ),
    (
        "train.jsonl",
        '{"instance_id": "a", "text": "x"}\nnonsense\n',
        "Line 2 of the bundle's train.jsonl is not an item",
    ),
    ("train.jsonl", '{"text": "x"}\n', "Line 1 of the bundle's train.jsonl is not an item"),
    ("train.jsonl", '{"instance_id": "a", "text": "x"}\n', "The bundle's train.jsonl has 1 rows, its manifest says 4"),
]


@pytest.mark.parametrize("file, text, said", BAD_BUNDLES, ids=[said for _, _, said in BAD_BUNDLES])
def test_bad_bundle(run, file, text, said):
    run.bundle(train=moods(4))
    if text is None:
        os.unlink(os.path.join(run.bundle_dir, file))
    else:
        run.write("bundle/" + file, text)
    folder = run.study_trainer("reader", "list(job.bundle.rows('train'))\n" + QUICK)
    out = run.train("reader", trainers_dir=folder)
    assert out.code == 2 and out.error["code"] == "bad_bundle" and said in out.error["message"]


FAILURES = [
    (
        "raise RuntimeError('[enforce fail] DefaultCPUAllocator: can\\'t allocate memory')",
        5,
        "out_of_memory",
        "DefaultCPUAllocator",
    ),
    ("raise RuntimeError('write: No space left on device')", 1, "disk_full", "No space left on device"),
    ("raise ValidationFailed('No.', 'Do.')", 2, "validation_failed", "No."),
    (
        "raise ValueError('first\\nsecond')",
        1,
        "worker_failed",
        "Trainer 'broken' failed while fitting: ValueError: first",
    ),
    ("raise KeyError()", 1, "worker_failed", "Trainer 'broken' failed while fitting: KeyError"),
    ("sys.exit(0)", 1, "worker_failed", "Trainer 'broken' failed while fitting: SystemExit: 0"),
    ("return", 1, "worker_failed", "Trainer 'broken' ended without a result"),
    (
        "import no_such_package.part",
        3,
        "missing_dependency",
        "Trainer 'broken' could not be imported: the package 'no_such_package' is missing in ",
    ),
    (
        "from json import no_such_name",
        3,
        "missing_dependency",
        "Trainer 'broken' could not be imported: ImportError: cannot import name",
    ),
    ("bytearray(1 << 60)", 5, "out_of_memory", "The worker ran out of memory while fitting (it had used "),
    (
        "raise RuntimeError('CUDA out of memory. Tried to allocate 2 GiB')",
        5,
        "gpu_out_of_memory",
        "Tried to allocate 2 GiB",
    ),
    (
        "raise RuntimeError('CUDA error: no kernel image is available for execution')",
        1,
        "gpu_unsupported",
        "no kernel image is available",
    ),
    (
        "raise RuntimeError('x\\nnvrtc: error: failed to open libnvrtc-builtins.so.13.0.')",
        1,
        "worker_failed",
        "nvrtc: error: failed to open libnvrtc-builtins.so.13.0",
    ),
]


@pytest.mark.parametrize("body, code, name, said", FAILURES, ids=[said for *_, said in FAILURES])
def test_failure_is_a_sentence(run, body, code, name, said):
    run.bundle(train=moods(4))
    folder = run.study_trainer("broken", "yield status('fitting')\n" + body)
    out = run.train("broken", trainers_dir=folder)
    assert (out.code, out.error["code"]) == (code, name) and said in out.error["message"]
    assert out.error["message"] in out.stderr and out.error["install_hint"]


def test_full_disk(run):
    run.bundle(train=moods(4), val=moods(2))
    os.makedirs(run.workdir)
    os.symlink("/dev/full", os.path.join(run.workdir, "predictions.jsonl.partial"))
    folder = run.study_trainer(
        "writer",
        "with job.predictions() as out:\n    out.write('a', 'mood', {'label': 'good', 'confidence': None})\n" + QUICK,
    )
    out = run.train("writer", trainers_dir=folder)
    assert (
        out.code == 1
        and out.error["code"] == "disk_full"
        and out.error["message"].startswith("No space is left on the disk")
        and "(working in /" in out.error["message"]
    )
    assert os.listdir(run.workdir) == []


def test_full_disk_under_the_events(run):
    run.bundle(train=moods(4))
    out = run.train("quick", trainers_dir=run.study_trainer("quick", QUICK), events_file="/dev/full")
    assert out.code == 1 and "No space is left on the disk" in out.stderr


def test_half_written_line_of_an_earlier_writer(run):
    run.bundle(train=moods(4))
    run.write("events.jsonl", '{"v":1,"event":"log"')
    out = run.train("quick", trainers_dir=run.study_trainer("quick", QUICK))
    lines = open(run.events_file).read().split("\n")
    assert lines[0] == '{"v":1,"event":"log"' and out.code == 0
    assert [json.loads(line)["event"] for line in lines[1:-1]] == ["status", "status", "result"]


def test_values_are_json(run):
    run.bundle(train=moods(4))
    body = "yield metric('train', 'loss', float('nan'), 1)\nyield log('x' * 100000)\nyield log('\\ud800 caf\\u00e9')\nyield done(metrics={'n_train': float('inf')})"
    out = run.train("odd", trainers_dir=run.study_trainer("odd", body))
    assert out.of("metric")[0]["value"] is None and out.result["metrics"] == {"n_train": None}
    assert len(out.of("log")[0]["msg"]) < 10000 and out.of("log")[0]["msg"].endswith("(cut)")
    assert out.of("log")[1]["msg"] == "\ud800 café"


def test_progress_is_thinned_and_estimated(run):
    run.bundle(train=moods(4))
    body = "for i in range(5001):\n    yield progress('fit', i, 5000)\n    time.sleep(0.0001)\n" + QUICK
    out = run.train("busy", trainers_dir=run.study_trainer("busy", body))
    seen = out.of("progress")
    assert 2 <= len(seen) < 40
    assert seen[0]["current"] == 0 and seen[-1]["current"] == 5000 and seen[-1]["eta_s"] == 0
    assert all(e["eta_s"] >= 0 for e in seen[1:])


def test_kind_that_the_trainer_does_not_take(run):
    run.bundle(schemas=[dict(MOOD, kind="span")], train=moods(4))
    out = run.train("quick", trainers_dir=run.study_trainer("quick", QUICK))
    assert out.error["code"] == "validation_failed"
    assert out.error["message"] == "Scheme 'mood' is span, which 'quick' cannot fit; it takes nominal"


def test_parameters_are_checked(run):
    run.bundle(train=moods(4))
    out = run.train("quick", trainers_dir=run.study_trainer("quick", QUICK), params={"bogus": 1})
    assert (
        out.code == 2 and out.error["message"] == "The parameters of 'quick' do not fit: there is no parameter 'bogus'"
    )


def wait_for(seen, timeout=20):
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if seen():
            return
        time.sleep(0.02)
    raise AssertionError("not seen within %s s: %s" % (timeout, seen.__doc__ or seen))


HANGS = {
    "sleeping": "time.sleep(600)",
    "in C, without the interpreter's lock": "import hashlib; hashlib.pbkdf2_hmac('sha512', b'p', b's', 2000000000)",
    "swallowing everything": "while True:\n    try:\n        time.sleep(600)\n    except BaseException:\n        pass",
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("body", list(HANGS.values()), ids=list(HANGS))
def test_cancel(run, body, number):
    run.bundle(train=moods(4), val=moods(2))
    folder = run.study_trainer(
        "hanging",
        "with job.predictions() as out:\n    yield status('hanging')\n"
        + "".join("    %s\n" % ln for ln in body.splitlines()),
    )
    run.spec("hanging", trainers_dir=folder)
    process = run.start()
    wait_for(lambda: os.path.exists(run.events_file) and "hanging" in open(run.events_file).read())
    began = time.monotonic()
    process.send_signal(number)
    out = run.finish(process, timeout=20)
    assert time.monotonic() - began < 5
    assert out.code == 4 and out.error["code"] == "cancelled"
    assert out.events[-2]["event"] == "status" and out.events[-2]["state"] == "cancelled"
    assert not os.path.exists(out.artifact("predictions.jsonl"))


def test_import_of_a_trainer_does_not_see_the_workers_modules(run):
    run.bundle(train=moods(4))
    body = (
        "import importlib.util\nassert importlib.util.find_spec('events') is None and importlib.util.find_spec('bundle') is None\n"
        + QUICK
    )
    assert run.train("clean", trainers_dir=run.study_trainer("clean", body)).result


def test_the_run_folder_cannot_be_imported_from(run):
    run.bundle(train=moods(4))
    run.write("json.py", "raise SystemExit('the run folder was imported from')")
    assert run.train("quick", trainers_dir=run.study_trainer("quick", QUICK)).result
