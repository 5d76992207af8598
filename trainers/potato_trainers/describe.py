"""What this interpreter can do, as one JSON object: its version, the trainers and whether each can run, the device."""

import sys

from potato_trainers import registry


def describe(trainers_dir=None, device=None):
    """Imports no trainer's packages; torch only when a device is asked for and torch is there."""
    said = {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "executable": sys.executable,
        "trainers": [_trainer(t) for t in registry.find(trainers_dir)],
    }
    if device is not None:
        from potato_trainers import devices

        said["device"] = devices.choose(device).as_json()
    return said


def _trainer(trainer):
    missing = [] if trainer.broken else trainer.missing()
    reason = trainer.broken
    if missing:
        modules = ["'%s'" % module for _, module in missing]
        what = "the package %s is" % modules[0] if len(modules) == 1 else "the packages %s are" % ", ".join(modules)
        reason = "%s missing in %s" % (what, sys.executable)
    said = {key: value for key, value in trainer.about.items() if key not in ("imports", "uses_device")}
    said["missing_packages"] = [package for package, _ in missing]
    said["available"] = not reason
    said["unavailable_reason"] = reason
    said["source"] = trainer.source
    return said
