"""Failures as people read them: a code, a sentence, what to do. A trace goes to standard error, not into a message."""

import errno
import os
import sys

EXIT_OK, EXIT_UNEXPECTED, EXIT_INVALID, EXIT_MISSING, EXIT_CANCELLED, EXIT_MEMORY = range(6)


class Failure(Exception):
    """A failure that already is a sentence."""

    code, exit_code = "worker_failed", EXIT_UNEXPECTED

    def __init__(self, message, hint=""):
        super().__init__(message)
        self.hint = hint


class SpecError(Failure):
    """The spec cannot be read or asks for what is not there."""

    code, exit_code = "bad_spec", EXIT_INVALID


class BundleError(Failure):
    """The bundle is incomplete or not in its form."""

    code, exit_code = "bad_bundle", EXIT_INVALID


class ValidationFailed(Failure):
    """The labels or parameters do not allow this training."""

    code, exit_code = "validation_failed", EXIT_INVALID


class MissingDependency(Failure):
    """A package that the trainer needs is not installed."""

    code, exit_code = "missing_dependency", EXIT_MISSING


_SMALLER = "train on fewer items or features, or on a machine with more memory"
_OTHER_GPU = "install a torch built for this GPU, or train on another one"
_SPACE = "free some space there and train again"

# What libraries say, found in the text of an exception of any type: (text, code, exit code, hint).
_KNOWN = (
    ("defaultcpuallocator", "out_of_memory", EXIT_MEMORY, _SMALLER),
    (
        "out of memory",
        "gpu_out_of_memory",
        EXIT_MEMORY,
        "lower the batch size or length, or take a GPU with more memory",
    ),
    ("no kernel image is available", "gpu_unsupported", EXIT_UNEXPECTED, _OTHER_GPU),
    ("is not compatible with the current pytorch", "gpu_unsupported", EXIT_UNEXPECTED, _OTHER_GPU),
    ("no space left on device", "disk_full", EXIT_UNEXPECTED, _SPACE),
    (
        "libnvrtc-builtins",
        "worker_failed",
        EXIT_UNEXPECTED,
        "install the nvidia-cuda-nvrtc that matches the torch build, or point `python` at another interpreter",
    ),
)


def explain(error, trainer, step):
    """Turns any exception into (code, exit code, message, hint)."""
    if isinstance(error, ImportError):
        error = not_imported(trainer, error)
    if isinstance(error, Failure):
        return error.code, error.exit_code, str(error), error.hint
    where = " while %s" % step if step else ""
    if isinstance(error, MemoryError):
        return "out_of_memory", EXIT_MEMORY, "The worker ran out of memory%s%s" % (where, _in_use()), _SMALLER
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        # A write has no file name; which disk it is, the folder we work in mostly tells.
        at = error.filename or "working in %s" % os.getcwd()
        return "disk_full", EXIT_UNEXPECTED, "No space is left on the disk%s (%s)" % (where, at), _SPACE
    code, exit_code, hint, line = (
        "worker_failed",
        EXIT_UNEXPECTED,
        "the run's stderr.log has the details",
        _first_line(error),
    )
    for text, *known in _KNOWN:
        if text in str(error).lower():
            code, exit_code, hint = known
            line = next(each.strip()[:500] for each in str(error).splitlines() if text in each.lower())
            break
    return code, exit_code, "Trainer '%s' failed%s: %s" % (trainer, where, line), hint


def not_imported(trainer, error, install_hint=""):
    """The failure of an import, which names the package and the interpreter."""
    name = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and name:
        reason = "the package '%s' is missing in %s" % (name, sys.executable)
    else:
        reason = "%s in %s" % (_first_line(error), sys.executable)
    hint = "point `python` at an interpreter that has the package, or list it under `packages`"
    return MissingDependency(
        "Trainer '%s' could not be imported: %s" % (trainer, reason),
        "%s (%s)" % (hint, install_hint) if install_hint else hint,
    )


def _first_line(error):
    text = str(error).strip()
    kind = type(error).__name__
    return "%s: %s" % (kind, text.splitlines()[0][:500]) if text else kind


def _in_use():
    try:
        import resource
    except ImportError:
        return ""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return " (it had used %d MB)" % (peak / (1024 * 1024 if sys.platform == "darwin" else 1024))
