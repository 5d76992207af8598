"""Failures as people read them: a code, a sentence, what to do. A trace goes to standard error, never into a message."""

import errno
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


# What libraries say, found in the text of an exception of any type: (text, code, exit code, hint).
_KNOWN = (
    ("out of memory", "gpu_out_of_memory", EXIT_MEMORY, "lower the batch size or sequence length, or take a GPU with more free memory"),
    ("no kernel image is available", "gpu_unsupported", EXIT_UNEXPECTED, "install a torch built for this GPU, or train on another one"),
    ("is not compatible with the current pytorch", "gpu_unsupported", EXIT_UNEXPECTED, "install a torch built for this GPU, or train on another one"),
    ("libnvrtc-builtins", "worker_failed", EXIT_UNEXPECTED, "install the nvidia-cuda-nvrtc that matches the torch build, or point `python` at another interpreter"),
)


def explain(error, trainer, step):
    """Turns any exception into (code, exit code, message, hint)."""
    if isinstance(error, Failure):
        return error.code, error.exit_code, str(error), error.hint
    if isinstance(error, ImportError):
        missing = not_imported(trainer, error)
        return missing.code, missing.exit_code, str(missing), missing.hint
    where = " while %s" % step if step else ""
    if isinstance(error, MemoryError):
        return "out_of_memory", EXIT_MEMORY, "The worker ran out of memory%s%s" % (where, _in_use()), (
            "train on fewer items or features, or on a machine with more memory"
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        at = " (%s)" % error.filename if error.filename else ""
        return "disk_full", EXIT_UNEXPECTED, "No space is left on the disk%s%s" % (where, at), "free some space there and train again"
    first = _first_line(error)
    lowered = str(error).lower()
    for text, code, exit_code, hint in _KNOWN:
        if text in lowered:
            line = next((ln.strip() for ln in str(error).splitlines() if text in ln.lower()), first)
            return code, exit_code, "Trainer '%s' failed%s: %s" % (trainer, where, line[:500]), hint
    return "worker_failed", EXIT_UNEXPECTED, "Trainer '%s' failed%s: %s" % (trainer, where, first), "the run's stderr.log has the details"


def not_imported(trainer, error, hint=""):
    """The failure of an import, which names the package and the interpreter."""
    name = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and name:
        reason = "the package '%s' is missing in %s" % (name, sys.executable)
    else:
        reason = "%s in %s" % (_first_line(error), sys.executable)
    return MissingDependency("Trainer '%s' could not be imported: %s" % (trainer, reason), hint)


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
