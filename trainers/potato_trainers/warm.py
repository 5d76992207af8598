"""A warm worker: interpreter up, trainer imported, waiting for one spec. It takes the imports out of a run's time."""

import json
import os
import signal
import sys

from potato_trainers import registry
from potato_trainers.failures import Failure, explain


def wait(name, trainers_dir=None):
    """Imports the trainer's packages, says that it is ready and runs the one spec that it is told of on stdin."""
    try:
        trainer = registry.named(name, trainers_dir)
        trainer.require()
        module = trainer.load()
        if hasattr(module, "warm"):
            module.warm()
        else:
            for each in trainer.about["imports"]:
                __import__(each)
    except (Failure, ImportError) as err:
        _, exit_code, message, _ = explain(err, name, "")
        print(message, file=sys.stderr)
        return exit_code
    import gc

    from potato_trainers.run import run

    gc.collect()
    gc.freeze()  # what is imported stays; the collector need not walk it again in the run
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while it waits there is nothing to report
    _say_ready()
    line = _read_line()
    if not line:
        return 0
    try:
        order = json.loads(line)
        _take_over(order)
        spec_path = order["spec"]
    except (ValueError, TypeError, KeyError, OSError) as err:
        print("The order to the warm worker cannot be used: %s: %s" % (type(err).__name__, err), file=sys.stderr)
        return 2
    return run(spec_path)


def _say_ready():
    fd = os.environ.pop("POTATO_READY_FD", "")
    if fd.isdigit():
        os.write(int(fd), b"ready\n")
        os.close(int(fd))


def _read_line():
    """One line of standard input, read by hand: a buffered reader would wait for more than the line."""
    data = b""
    while not data.endswith(b"\n"):
        got = os.read(0, 65536)
        if not got:
            break
        data += got
    return data.strip()


def _take_over(order):
    """Makes the process what it would be, had it been started for this run."""
    os.chdir(order["cwd"])
    for key, fd in (("stdout", 1), ("stderr", 2)):
        file = os.open(order[key], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, fd)
        os.close(file)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
