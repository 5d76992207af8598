"""The training side in Python: a worker that runs one spec, and one file for each trainer.

The worker is the standard library alone and runs under Python 3.8 and newer; what a trainer needs is imported inside
it. The names below are what a trainer's file uses; README.md beside this package is its contract.
"""

from potato_trainers.events import artifact, done, log, metric, progress, status
from potato_trainers.failures import ValidationFailed

__all__ = ["ValidationFailed", "artifact", "done", "log", "metric", "progress", "status"]
