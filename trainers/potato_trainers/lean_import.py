"""scikit-learn's linear models and text features, imported without what a small run would only wait for.

scipy.stats is a third of the time that the import takes, and what we use never calls it: while scikit-learn is
imported a stand-in takes its place, whose functions import the real one when they are called after all.
BLAS gets one thread: our matrices are sparse and never reach it, and for the short vectors that do, its threads cost
three to ten times what the fit takes alone, most on a machine that is busy.
"""

import gc
import importlib
import os
import sys
import types

_POSTPONED = "scipy.stats"


class _StandIn(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(_POSTPONED) is not self:
            return getattr(importlib.import_module(_POSTPONED), name)

        def call(*args, **kwargs):
            return getattr(importlib.import_module(_POSTPONED), name)(*args, **kwargs)

        return call


def sklearn():
    """Returns (sklearn.feature_extraction.text, sklearn.linear_model)."""
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
        os.environ[variable] = "1"  # read once, when numpy and scipy load their libraries
    collecting = gc.isenabled()
    gc.disable()  # thousands of new objects and no garbage among them
    try:
        return _without_postponed() or _modules()
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


def _without_postponed():
    """The modules imported with the stand-in; None when that does not work, and they are to be imported plainly."""
    if _POSTPONED in sys.modules or "sklearn" in sys.modules:
        return None
    stand_in = sys.modules[_POSTPONED] = _StandIn(_POSTPONED)
    try:
        return _modules()
    except Exception:
        return None  # a version that needs more than functions of it; what failed is imported again, with the real one
    finally:
        if sys.modules.get(_POSTPONED) is stand_in:
            del sys.modules[_POSTPONED]


def _modules():
    return importlib.import_module("sklearn.feature_extraction.text"), importlib.import_module("sklearn.linear_model")
