"""The worker's command line."""

import argparse
import atexit
import json
import os
import sys


def main(argv):
    """Does what the arguments say and ends the process."""
    parser = argparse.ArgumentParser(
        prog="worker.py", description="Trains what a spec says, or describes what can be trained here."
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--spec", metavar="FILE", help="run this spec.json")
    what.add_argument("--describe", action="store_true", help="print the trainers of this interpreter as JSON")
    what.add_argument("--warm", metavar="TRAINER", help="import the trainer and wait for one spec on standard input")
    parser.add_argument("--trainers-dir", metavar="DIR", help="a study's own trainers, for --describe and --warm")
    parser.add_argument(
        "--devices", metavar="DEVICE", help="with --describe: say which device a run gets that asks for this one"
    )
    args = parser.parse_args(argv)
    if args.spec is not None:
        from potato_trainers.run import run

        _leave(run(args.spec))
    if args.warm is not None:
        from potato_trainers.warm import wait

        _leave(wait(args.warm, args.trainers_dir))
    from potato_trainers.describe import describe

    print(json.dumps(describe(args.trainers_dir, args.devices), indent=2))
    _leave(0)


def _leave(code):
    """Ends the process without taking numerical libraries apart piece by piece, which takes longer than a small run."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(code)
