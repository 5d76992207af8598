"""Choosing a device, with a small torch of the tests' own in place of the real one: its answers are what is tested."""

import json
import os

import pytest

TORCH = """
import json, os
_said = json.loads(os.environ["FAKE_TORCH"])
if _said.get("broken"):
    raise OSError("libcudart.so.13: cannot open shared object file")
class version: hip = None
class cuda:
    is_available = staticmethod(lambda: bool(_said["gpus"]))
    device_count = staticmethod(lambda: len(_said["gpus"]))
    get_arch_list = staticmethod(lambda: _said["archs"])
    get_device_name = staticmethod(lambda i: _said["gpus"][i][0])
    get_device_capability = staticmethod(lambda i: tuple(_said["gpus"][i][1]))
    mem_get_info = staticmethod(lambda i: (_said["gpus"][i][2] << 20, 80000 << 20))
class backends:
    class mps: is_available = staticmethod(lambda: _said.get("mps", False))
class ones:
    def __init__(self, n, device): pass
    def __add__(self, one): return self
    def cpu(self): return self
"""

H100 = ["H100", [9, 0], 70000]
A100 = ["A100", [8, 0], 30000]
K80 = ["K80", [3, 7], 11000]
ARCHS = ["sm_80", "sm_90"]


def device(run, wanted, fake=None, **env):
    environment = dict(os.environ, **env)
    environment.pop("OMP_NUM_THREADS", None) if "OMP_NUM_THREADS" not in env else None
    if fake is not None:
        run.write("site/torch.py", TORCH)
        environment.update(PYTHONPATH=os.path.join(run.folder, "site"), FAKE_TORCH=json.dumps(fake))
    out = run.finish(run.start("--describe", "--devices", wanted, env=environment))
    assert out.code == 0, out.stderr
    return json.loads(out.stdout)["device"]


def test_cpu_threads(run):
    assert device(run, "cpu", OMP_NUM_THREADS="8")["text"] == "CPU (8 threads)"
    assert device(run, "cpu", OMP_NUM_THREADS="1,2")["text"] == "CPU (1 thread)"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert device(run, "cpu")["text"].startswith("CPU (%d thread" % cores)


CASES = [
    # wanted, GPUs, mps, chosen, what a warning says
    ("auto", [], False, "cpu", None),
    ("auto", [], True, "mps", None),
    ("auto", [A100, H100], False, "cuda:1", None),
    ("cuda", [A100, H100], False, "cuda:1", None),
    ("cuda:0", [A100, H100], False, "cuda:0", None),
    ("cpu", [A100], False, "cpu", None),
    (
        "auto",
        [K80, A100],
        False,
        "cuda:1",
        "GPU 0 (K80, sm_37): the torch here has no kernels for it (it has sm_80 sm_90)",
    ),
    ("auto", [K80], False, "cpu", "no kernels"),
    ("cuda:7", [A100], False, "cuda:0", "The device 'cuda:7' was asked for, but this machine has cuda:0"),
    (
        "cuda:0",
        [K80, A100],
        False,
        "cuda:1",
        "The device 'cuda:0' was asked for, but this machine has cuda:0 (not usable), cuda:1",
    ),
    ("cuda", [], False, "cpu", "The device 'cuda' was asked for, but this machine has no GPU that torch can use"),
    ("cuda", [], True, "mps", "The device 'cuda' was asked for, but this machine has mps"),
    ("mps", [A100], False, "cuda:0", "The device 'mps' was asked for, but this machine has cuda:0"),
    ("mps", [], True, "mps", None),
    ("tpu", [A100], False, "cuda:0", "The device 'tpu' is none of auto, cpu, cuda, cuda:N, mps"),
    ("cuda:x", [], False, "cpu", "The device 'cuda:x' is none of"),
]


@pytest.mark.parametrize("wanted, gpus, mps, chosen, warning", CASES)
def test_choice(run, wanted, gpus, mps, chosen, warning):
    said = device(run, wanted, {"gpus": gpus, "mps": mps, "archs": ARCHS})
    assert said["name"] == chosen
    if warning is None:
        assert said["warnings"] == []
    else:
        assert any(warning in text for text in said["warnings"]), said["warnings"]
        assert len(set(said["warnings"])) == len(said["warnings"])
    if chosen.startswith("cuda"):
        assert [g["index"] for g in said["gpus"] if g["chosen"]] == [int(chosen[5:])]
        assert said["text"] == "%s (%s)" % (gpus[int(chosen[5:])][0], chosen)
    if wanted != "cpu":
        assert [g["supported"] for g in said["gpus"]] == [g is not K80 for g in gpus]


def test_text_of_metal(run):
    assert device(run, "auto", {"gpus": [], "mps": True, "archs": []})["text"] == "Apple Metal (mps)"


def test_newer_gpu_by_ptx(run):
    blackwell = ["B200", [10, 0], 1000]
    assert device(run, "auto", {"gpus": [blackwell], "archs": ["sm_90", "compute_90"]})["name"] == "cuda:0"
    assert device(run, "auto", {"gpus": [blackwell], "archs": ["sm_90"]})["name"] == "cpu"


def test_torch_that_cannot_be_imported(run):
    said = device(run, "auto", {"broken": True})
    assert said["name"] == "cpu" and "cannot be imported: libcudart.so.13" in said["warnings"][0]


def test_a_run_gets_it_and_logs_the_fallback(run):
    from conftest import moods

    run.bundle(train=moods(4))
    run.write("site/torch.py", TORCH)
    folder = run.study_trainer("gpu", "yield done(label_order=[job.device.name])")
    path = os.path.join(folder, "gpu.py")
    text = open(path).read().replace('"kinds"', '"uses_device": True, "kinds"')
    open(path, "w").write(text)
    run.spec("gpu", trainers_dir=folder, limits={"device": "cuda:3"})
    env = dict(
        os.environ, PYTHONPATH=os.path.join(run.folder, "site"), FAKE_TORCH=json.dumps({"gpus": [A100], "archs": ARCHS})
    )
    out = run.finish(run.start(env=env))
    assert out.result["label_order"] == ["cuda:0"] and out.result["device"] == "cuda:0"
    logs = [(e["level"], e["msg"]) for e in out.of("log")]
    assert logs == [
        ("warning", "The device 'cuda:3' was asked for, but this machine has cuda:0"),
        ("info", "Training on A100 (cuda:0)"),
    ]


def test_a_trainer_without_use_for_it_says_so(run):
    from conftest import moods

    run.bundle(train=moods(4))
    out = run.train("plain", trainers_dir=run.study_trainer("plain", "yield done()"), limits={"device": "cuda"})
    assert out.result["device"] == "cpu"
    assert out.of("log")[0]["msg"] == "'plain' trains on the CPU; the device 'cuda' is not used"
