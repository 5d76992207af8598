"""The spec: what one run is to do, read from spec.json (version 1 of the published protocol and a little more)."""

import json
import os
from collections import namedtuple

from potato_trainers.failures import SpecError

Schema = namedtuple("Schema", "name annotation_type kind labels source_field")


class Spec:
    """One run: the trainer, the schemes it trains, where its bundle lies and where its files go."""

    def __init__(self, fields):
        if fields.get("v", 1) != 1:
            raise SpecError("The spec has version %s; this worker reads version 1" % fields["v"])
        self.trainer = _text(fields, "trainer", required=True)
        self.run_id = _text(fields, "run_id")
        self.bundle_dir = os.path.abspath(_text(fields, "bundle_dir", required=True))
        self.workdir = os.path.abspath(_text(fields, "workdir", required=True))
        self.trainers_dir = _text(fields, "trainers_dir")
        self.events_file = _text(fields, "events_file")
        # A spec of the annotation tool names none.
        self.checkpoint_dir = os.path.abspath(
            _text(fields, "checkpoint_dir") or os.path.join(self.workdir, "checkpoints")
        )
        self.attempt = _attempt(_whole(fields, "attempt", 1))
        self.seed = _whole(fields, "seed", 0)
        self.params = _object(fields, "params")
        limits = _object(fields, "limits")
        self.device = limits.get("device") or "auto"
        self.num_threads = limits.get("num_threads")
        self.max_ram_mb = limits.get("max_ram_mb")
        self.schemas = [_schema(s) for s in fields.get("schemas") or []]
        if not self.schemas:
            raise SpecError("The spec names no scheme to train")
        names = [s.name for s in self.schemas]
        if len(set(names)) < len(names):
            raise SpecError("The spec names a scheme twice: %s" % ", ".join(names))


def _attempt(number):
    """A scheduler that starts a run anew leaves the spec as it is and counts in the environment."""
    counted = os.environ.get("POTATO_ATTEMPT", "")
    return int(counted) if counted.isdigit() else number


def read_fields(path):
    """Reads the file as far as JSON goes; Spec checks what is in it."""
    try:
        with open(path, "rb") as file:
            fields = json.loads(file.read())
    except OSError as err:
        raise SpecError("The spec %s cannot be read: %s" % (path, err.strerror))
    except ValueError as err:
        raise SpecError("The spec %s is not JSON: %s" % (path, err))
    if not isinstance(fields, dict):
        raise SpecError("The spec %s is not a JSON object" % path)
    return fields


def _schema(fields):
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        raise SpecError("A scheme in the spec has no name")
    labels = [str(label) for label in fields.get("labels") or []]
    return Schema(fields["name"], fields.get("annotation_type"), fields.get("kind"), labels, fields.get("source_field"))


def _text(fields, key, required=False):
    value = fields.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value):
        raise SpecError("`%s` in the spec must be a text" % key)
    return value


def _whole(fields, key, default):
    value = fields.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError("`%s` in the spec must be a whole number" % key)
    return value


def _object(fields, key):
    value = fields.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SpecError("`%s` in the spec must be an object" % key)
    return value
