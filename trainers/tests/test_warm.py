"""The warm worker: ready, one spec, the same run as a cold one."""

import json
import os
import stat
import subprocess
import sys
import time

import pytest
from conftest import Outcome, moods


class Warm:
    """A warm worker, waited for until it says that it is ready."""

    def __init__(self, run, trainer, *args):
        self.run = run
        reader, writer = os.pipe()
        env = dict(os.environ, POTATO_READY_FD=str(writer))
        self.process = run.start("--warm", trainer, *args, stdin=subprocess.PIPE, env=env, pass_fds=[writer])
        os.close(writer)
        with os.fdopen(reader) as ready:
            self.ready = ready.read()

    def order(self, **fields):
        order = {
            key: os.path.join(self.run.folder, name)
            for key, name in (("spec", "spec.json"), ("stdout", "stdout.log"), ("stderr", "stderr.log"))
        }
        order["cwd"] = self.run.folder
        order.update(fields)
        return self.run.finish_with(self.process, json.dumps(order) + "\n")


@pytest.fixture
def warm(run):
    def finish_with(process, text):
        stdout, stderr = process.communicate(text, timeout=60)
        return Outcome(process.returncode, stdout, stderr, run)

    run.finish_with = finish_with
    return run


BODY = "print('cwd', os.getcwd())\nsys.stderr.write('env %s\\n' % os.environ.get('POTATO_READY_FD'))\nprint('stdin', repr(sys.stdin.read()))\nyield done(metrics={'n_train': 1})"


def test_runs_the_spec_it_is_told_of(warm):
    warm.bundle(train=moods(4))
    folder = warm.study_trainer("quick", BODY)
    worker = Warm(warm, "quick", "--trainers-dir", folder)
    assert worker.ready == "ready\n"
    warm.spec("quick", trainers_dir=folder)
    out = worker.order()
    assert out.result["metrics"] == {"n_train": 1}
    assert (out.stdout, out.stderr) == ("", "")
    log = os.path.join(warm.folder, "stdout.log")
    assert open(log).read() == "cwd %s\nstdin ''\n" % os.path.realpath(warm.folder)
    assert open(os.path.join(warm.folder, "stderr.log")).read() == "env None\n"
    assert stat.S_IMODE(os.stat(log).st_mode) == 0o600


def test_end_of_stdin_is_quiet(warm):
    worker = Warm(warm, "quick", "--trainers-dir", warm.study_trainer("quick", BODY))
    out = warm.finish_with(worker.process, "")
    assert (out.code, out.stdout, out.stderr) == (0, "", "")


def test_terminated_while_it_waits(warm):
    worker = Warm(warm, "quick", "--trainers-dir", warm.study_trainer("quick", BODY))
    worker.process.terminate()
    out = warm.finish_with(worker.process, "")
    assert out.code == -15 and out.stderr == ""


def test_nonsense_order(warm):
    worker = Warm(warm, "quick", "--trainers-dir", warm.study_trainer("quick", BODY))
    out = warm.finish_with(worker.process, '{"spec": 1}\n')
    assert out.code == 2 and "cannot be used" in out.stderr and "Traceback" not in out.stderr


def test_missing_package(warm):
    text = "TRAINER = {'name': 'x', 'description': 'x', 'kinds': ['nominal'], 'packages': ['no-such'], 'imports': ['no_such']}\ndef train(job): pass\n"
    warm.write("trainers/x.py", text)
    worker = Warm(warm, "x", "--trainers-dir", os.path.join(warm.folder, "trainers"))
    out = warm.finish_with(worker.process, "")
    assert worker.ready == "" and out.code == 3
    assert out.stderr == "Trainer 'x' could not be imported: the package 'no_such' is missing in %s\n" % sys.executable


@pytest.mark.sklearn
def test_sklearn_run_is_short_and_the_same(warm):
    warm.bundle(train=moods(60), val=moods(10, 60), unlabeled=[(t, None) for t, _ in moods(20, 70)])
    cold = warm.train()
    cold_predictions = cold.predictions
    os.unlink(warm.events_file)
    worker = Warm(warm, "sklearn-text")
    assert worker.ready == "ready\n"
    warm.spec(workdir=os.path.join(warm.folder, "warm"))
    began = time.monotonic()
    out = worker.order()
    seconds = time.monotonic() - began
    warm.workdir = os.path.join(warm.folder, "warm")
    assert out.predictions == cold_predictions
    assert out.result["packages"] == installed()
    assert seconds < 2, "a warm run of 60 items took %.2f s" % seconds


def installed():
    import numpy
    import scipy
    import sklearn

    return {"scikit-learn": sklearn.__version__, "numpy": numpy.__version__, "scipy": scipy.__version__}
