"""The bundle: the items and labels of one run, as files of JSON lines beside a manifest. Rows are streamed."""

import json
import os
from collections import namedtuple

from potato_trainers.failures import BundleError

Row = namedtuple("Row", "instance_id text targets media")
Split = namedtuple("Split", "name path n predict_only")

_BUFFER = 1 << 20


class Bundle:
    """Opens a bundle's folder. Which splits there are is the manifest's word."""

    def __init__(self, directory):
        self.directory = directory
        self.manifest = self._manifest()
        self.digest = self.manifest.get("digest") or ""
        self.splits = {}
        for name, fields in (self.manifest.get("splits") or {}).items():
            self.splits[name] = self._split(name, fields)

    def rows(self, name):
        """Yields the rows of a split, none when the bundle does not have it."""
        split = self.splits.get(name)
        if split is None:
            return
        path = os.path.join(self.directory, split.path)
        n = 0
        try:
            with open(path, "rb", buffering=_BUFFER) as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        n += 1
                        yield _row(line, split.path, number)
        except OSError as err:
            raise BundleError("The bundle's %s cannot be read: %s" % (split.path, err.strerror))
        if split.n is not None and n != split.n:
            raise BundleError("The bundle's %s has %d rows, its manifest says %d" % (split.path, n, split.n))

    def predicted(self):
        """The splits that predictions are made for, in order: val, test, then those that have no labels.

        A study names its splits as it likes: what is neither train nor test is held out as val is.
        """
        held_out = [s for name, s in self.splits.items() if name not in ("train", "test") and not s.predict_only]
        if "test" in self.splits:
            held_out.append(self.splits["test"])
        return held_out + [s for s in self.splits.values() if s.predict_only]

    def counts(self):
        """How the labelled items are split, in words for a message: `train 6, val 1, test 2`."""
        labelled = [s for s in self.splits.values() if not s.predict_only and s.n is not None]
        return ", ".join("%s %d" % (s.name, s.n) for s in labelled) or "the bundle has no split"

    def _manifest(self):
        try:
            with open(os.path.join(self.directory, "manifest.json"), "rb") as file:
                manifest = json.loads(file.read())
        except OSError as err:
            raise BundleError("The bundle's manifest.json cannot be read: %s" % err.strerror)
        except ValueError as err:
            raise BundleError("The bundle's manifest.json is not JSON: %s" % err)
        if not isinstance(manifest, dict) or not isinstance(manifest.get("splits", {}), dict):
            raise BundleError("The bundle's manifest.json is not in its form")
        if manifest.get("v", 1) != 1:
            raise BundleError("The bundle has version %s; this worker reads version 1" % manifest["v"])
        return manifest

    def _split(self, name, fields):
        path = fields.get("path") if isinstance(fields, dict) else None
        if not isinstance(path, str) or os.path.isabs(path) or ".." in path.split("/"):
            raise BundleError("The bundle's manifest.json gives no usable path for the split '%s'" % name)
        n = fields.get("n")
        predict_only = bool(fields.get("predict_only")) or name == "unlabeled"
        return Split(name, path, n if isinstance(n, int) else None, predict_only)


def _row(line, path, number):
    try:
        # Bytes rather than text: JSON's own decoding takes lone surrogates, which texts from the web do contain.
        fields = json.loads(line)
        instance_id = fields["instance_id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BundleError("Line %d of the bundle's %s is not an item" % (number, path))
    text, targets = fields.get("text"), fields.get("targets")
    if not isinstance(targets, dict):
        targets = {}
    return Row(str(instance_id), text if isinstance(text, str) else "", targets, fields.get("media"))
