"""The worker's entry: run as a file by path, never with -m, so that nothing in the run folder can be imported.

This one file must stay readable for any Python, 2 included: an interpreter that is too old gets a sentence from it,
not a syntax error.
"""

import json
import os
import signal
import sys
import time

_HERE = os.path.dirname(os.path.abspath(__file__))


def _too_old():
    """Says that the interpreter is too old, where the run's events are read."""
    message = "%s is Python %d.%d; Python 3.8 or newer is needed" % ((sys.executable,) + sys.version_info[:2])
    hint = "point `python` at a newer interpreter"
    event = {"v": 1, "event": "error", "t": time.time(), "code": "python_too_old", "message": message}
    event["install_hint"] = hint
    line = json.dumps(event) + "\n"
    target = None
    if "--spec" in sys.argv[:-1]:
        try:
            with open(sys.argv[sys.argv.index("--spec") + 1]) as spec:
                target = json.load(spec).get("events_file")
        except (IOError, OSError, ValueError):
            target = None
    if target:
        with open(target, "a") as events:
            events.write(line)
    else:
        sys.stdout.write(line)
    return 2


def _mend_bytecode():
    """Has bytecode thrown away that a full disk has cut off: Python would fail on it in this and every later run."""
    from importlib.machinery import SourceFileLoader

    get_code = SourceFileLoader.get_code

    def mended(loader, name):
        try:
            return get_code(loader, name)
        except (EOFError, ValueError, TypeError):  # what marshal raises
            from importlib.util import cache_from_source

            try:
                os.remove(cache_from_source(loader.path))
            except OSError:
                pass
            return get_code(loader, name)

    SourceFileLoader.get_code = mended


if __name__ == "__main__":
    if sys.version_info < (3, 8):
        sys.exit(_too_old())
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until the run listens to it, a scheduler's signal must not kill
    _mend_bytecode()
    # The package's modules have common names (events, spec); only the package itself may be found by import.
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _HERE]
    sys.path.insert(0, os.path.dirname(_HERE))
    from potato_trainers.cli import main

    main(sys.argv[1:])
