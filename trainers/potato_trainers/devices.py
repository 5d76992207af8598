"""Which device a run gets: `auto` is CUDA, then Apple Metal, then the CPU; `cuda:1` names one.

What is asked for and absent falls back to what is there, with a warning. torch is imported only here, and only when it
is installed.
"""

import importlib.util
import os
import sys


class Device:
    """The chosen device: name is torch's (`cpu`, `cuda:0`, `mps`), text is for people."""

    def __init__(self, name, text, warnings=(), gpus=()):
        self.name, self.text, self.warnings, self.gpus = name, text, list(warnings), list(gpus)

    def as_json(self):
        return {"name": self.name, "text": self.text, "warnings": self.warnings, "gpus": self.gpus}


def cpu_threads():
    """The threads that numerical libraries will use: OMP_NUM_THREADS, else the cores this process may run on."""
    try:
        threads = int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0])
        if threads > 0:
            return threads
    except ValueError:
        pass
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def cpu(warnings=(), gpus=()):
    """The CPU as a device."""
    n = cpu_threads()
    return Device("cpu", "CPU (%d thread%s)" % (n, "" if n == 1 else "s"), warnings, gpus)


def choose(wanted):
    """Chooses the device for `auto`, `cpu`, `cuda`, `cuda:1` or `mps`."""
    wanted = (wanted or "auto").strip().lower()
    kind, _, index = wanted.partition(":")
    if kind not in ("auto", "cpu", "cuda", "mps") or (index and not (kind == "cuda" and index.isdigit())):
        chosen = choose("auto")
        chosen.warnings.insert(0, "The device '%s' is none of auto, cpu, cuda, cuda:N, mps" % wanted)
        return chosen
    if kind == "cpu":
        return cpu()
    if importlib.util.find_spec("torch") is None:
        warning = "The device '%s' was asked for, but torch is not installed in %s" % (wanted, sys.executable)
        return cpu([] if kind == "auto" else [warning])
    try:
        import torch
    except Exception as err:  # a torch that cannot load its libraries fails in many ways
        return cpu(["torch in %s cannot be imported: %s" % (sys.executable, str(err).splitlines()[0])])
    return _choose_with(torch, wanted, kind, int(index) if index else None)


def _choose_with(torch, wanted, kind, index):
    gpus, warnings = _gpus(torch)
    mps = _has_mps(torch)
    if kind == "mps" and mps:
        return Device("mps", "Apple Metal (mps)", warnings, gpus)
    if kind in ("auto", "cuda"):
        usable = [g for g in gpus if g["supported"] and index in (None, g["index"])]
        if usable:
            best = max(usable, key=lambda g: (g["memory_free_mb"] or 0, -g["index"]))
            best["chosen"] = True
            name = "cuda:%d" % best["index"]
            return Device(name, "%s (%s)" % (best["name"], name), warnings, gpus)
    if kind != "auto":
        warnings.append("The device '%s' was asked for, but this machine has %s" % (wanted, _has(gpus, mps)))
        if index is not None or kind == "mps":
            fallback = _choose_with(torch, "auto", "auto", None)
            fallback.warnings[:0] = warnings
            fallback.warnings = list(dict.fromkeys(fallback.warnings))
            return fallback
    if mps:
        return Device("mps", "Apple Metal (mps)", warnings, gpus)
    return cpu(warnings, gpus)


def _gpus(torch):
    """The CUDA devices, and warnings about those that the installed torch has no kernels for."""
    gpus, warnings = [], []
    try:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except Exception as err:
        return [], ["CUDA cannot be used: %s" % str(err).splitlines()[0]]
    for index in range(count):
        free = total = None
        name, supported = "GPU %d" % index, False
        try:
            name = torch.cuda.get_device_name(index)
            supported = _has_kernels(torch, index)
            if supported:
                # Only a computation proves it; an architecture list may promise more than the driver does.
                (torch.ones(1, device="cuda:%d" % index) + 1).cpu()
            free, total = (n // (1 << 20) for n in torch.cuda.mem_get_info(index))
        except Exception as err:
            supported = False
            warnings.append("GPU %d (%s) cannot be used: %s" % (index, name, str(err).splitlines()[0]))
        else:
            if not supported:
                known = " ".join(torch.cuda.get_arch_list())
                warnings.append(
                    "GPU %d (%s, sm_%d%d): the torch here has no kernels for it (it has %s)"
                    % ((index, name) + tuple(torch.cuda.get_device_capability(index)) + (known,))
                )
        gpus.append(
            {
                "index": index,
                "name": name,
                "memory_free_mb": free,
                "memory_total_mb": total,
                "utilization": None,
                "supported": supported,
                "chosen": False,
            }
        )
    return gpus, warnings


def _has_kernels(torch, index):
    """Kernels run on their own major architecture from their minor one up; PTX is compiled for anything newer."""
    if getattr(torch.version, "hip", None):
        return True  # AMD's architectures have no such order; the computation after this tells
    capability = torch.cuda.get_device_capability(index)
    for arch in torch.cuda.get_arch_list():
        kind, _, digits = arch.partition("_")
        digits = "".join(c for c in digits if c.isdigit())
        if len(digits) < 2:
            continue
        major, minor = int(digits[:-1]), int(digits[-1])
        if kind == "sm" and major == capability[0] and minor <= capability[1]:
            return True
        if kind == "compute" and (major, minor) <= capability:
            return True
    return False


def _has_mps(torch):
    try:
        return bool(torch.backends.mps.is_available())
    except Exception:
        return False


def _has(gpus, mps):
    if gpus:
        return ", ".join("cuda:%d" % g["index"] + ("" if g["supported"] else " (not usable)") for g in gpus)
    return "mps" if mps else "no GPU that torch can use"
