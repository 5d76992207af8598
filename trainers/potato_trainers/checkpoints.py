"""Checkpoints: what a run saves on its way, so that its next attempt goes on from there.

A checkpoint is a folder with the trainer's files and `checkpoint.json`: what the run was made of, and the size and
checksum of every file. It appears whole, by rename, as NAME-000001, NAME-000002, …; earlier ones of the name go then.
What is half written, was changed since or belongs to another run is never handed to a trainer.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile

MANIFEST = "checkpoint.json"
VERSION = 1

_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*", re.ASCII)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DIFFERENCES = {
    "run_id": "in another run",
    "trainer": "by another trainer",
    "schemas": "for other schemes",
    "params": "with other parameters",
    "seed": "with another seed",
    "bundle_digest": "on another bundle",
    "versions": "with other versions of Python or packages",
}


def made_of(spec, bundle, params, packages):
    """What an attempt must share with an earlier one to go on from its checkpoints."""
    return {
        "run_id": spec.run_id,
        "trainer": spec.trainer,
        "schemas": [[schema.name, schema.kind, schema.labels] for schema in spec.schemas],
        "params": params,
        "seed": spec.seed,
        "bundle_digest": bundle.digest,
        "versions": _versions(packages),
    }


def _versions(packages):
    """Versions as they are installed, without importing anything that big."""
    from importlib import metadata

    found = {"python": "%d.%d" % sys.version_info[:2]}
    for package in list(packages) + ["numpy", "scipy"]:
        name = re.match(r"[\w.-]*", package).group()
        try:
            found[name] = metadata.version(name)
        except (metadata.PackageNotFoundError, ValueError):
            pass
    return found


class Checkpoints:
    """The checkpoints of one run. made_of() is what a later attempt must share with it; say(text, level) logs."""

    def __init__(self, folder, made_of, say):
        self.folder = folder
        self.requested = False  # the scheduler has asked for one since the last was saved
        self.kept = True  # False: this is one of several ranks, and another one saves
        self._made_of, self._say = made_of, say
        self._made, self._warned, self._refused = None, False, False

    def last(self, name):
        """The folder of the newest whole checkpoint of this name, None when there is none that can be used."""
        for _, path in self._all(name):
            try:
                manifest = _whole(path)
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
                self._say("The checkpoint %s is damaged and is not used: %s" % (os.path.basename(path), err), "warning")
                continue
            differing = _differences(manifest["made_of"], self._plan())
            if not differing:
                return path
            if not self._refused:
                self._refused = True
                self._say(
                    "The checkpoints found are not used, for they were made %s; the training starts afresh"
                    % " and ".join(differing),
                    "warning",
                )
            return None
        return None

    def saving(self, name):
        """A context manager: an empty folder to write into, which becomes the checkpoint when it is left well."""
        if not self.kept:
            self.requested = False
            return tempfile.TemporaryDirectory()
        return _Saving(self, name)

    def forget(self):
        """The run has its result: nothing will go on from here."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _plan(self):
        """What this run is made of, in the form that it comes back in from a file: tuples are lists there."""
        if self._made is None:
            self._made = json.loads(json.dumps(self._made_of()))
        return self._made

    def _all(self, name):
        """(number, path) of the checkpoints of a name, the newest first."""
        if not _NAME.fullmatch(name):
            raise ValueError("'%s' cannot be the name of a checkpoint" % name)
        form = re.compile(re.escape(name) + r"-(\d{6,})")
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        found = [(int(m.group(1)), os.path.join(self.folder, m.group(0))) for m in map(form.fullmatch, names) if m]
        return sorted(found, reverse=True)

    def _publish(self, name, partial):
        manifest = {"v": VERSION, "made_of": self._plan(), "files": _summary(partial)}
        _write(os.path.join(partial, MANIFEST), json.dumps(manifest).encode("ascii"))
        earlier = self._all(name)
        number = earlier[0][0] + 1 if earlier else 1
        os.rename(partial, os.path.join(self.folder, "%s-%06d" % (name, number)))
        _sync_folder(self.folder)  # the new name is on disk before the earlier one goes
        for _, path in earlier:
            shutil.rmtree(path, ignore_errors=True)
        if self.requested:
            self.requested = False
            self._say("A checkpoint was saved, as the scheduler asked", "info")

    def _not_saved(self, error):
        if not self._warned:
            self._warned = True
            self._say(
                "A checkpoint could not be saved (%s); the training goes on without" % error.strerror,
                "warning",
            )


class _Saving:
    def __init__(self, owner, name):
        self._owner, self._name = owner, name

    def __enter__(self):
        self._no_room = None
        try:
            self._partial = self._begin()
        except OSError as error:
            if not _is_full(error):
                raise
            self._no_room = error
            self._partial = tempfile.mkdtemp()  # what is written there is thrown away
        return self._partial

    def _begin(self):
        folder = self._owner.folder
        prefix, suffix = ".%s-" % self._name, ".partial"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for name in os.listdir(folder):  # of a worker that was killed over it
            if name.startswith(prefix) and name.endswith(suffix):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        return tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=folder)

    def __exit__(self, kind, error, trace):
        try:
            if kind is None and self._no_room is not None:
                raise self._no_room
            if kind is None:
                self._owner._publish(self._name, self._partial)
        except BaseException as err:
            error = err
            if not _is_full(err):
                raise
        finally:
            shutil.rmtree(self._partial, ignore_errors=True)
        if _is_full(error):  # the run may still end well
            self._owner._not_saved(error)
            return True
        return False


def _is_full(error):
    return isinstance(error, OSError) and error.errno in _FULL


def _whole(path):
    """The manifest of a checkpoint whose files are all as it says."""
    with open(os.path.join(path, MANIFEST), "rb") as file:
        manifest = json.loads(file.read())
    if manifest["v"] != VERSION:
        raise ValueError("it has version %s" % manifest["v"])
    found = _summary(path)
    found.pop(MANIFEST)
    if found != manifest["files"]:
        raise ValueError("its files are not those that were saved")
    return manifest


def _summary(folder):
    """Size and checksum of every file in a folder, each synced."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            digest, size = hashlib.sha256(), 0
            with open(path, "rb") as file:
                for part in iter(lambda: file.read(1 << 20), b""):
                    digest.update(part)
                    size += len(part)
                os.fsync(file.fileno())
            found[os.path.relpath(path, folder)] = [size, digest.hexdigest()]
    return found


def _write(path, data):
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _differences(there, here):
    """In what the two differ, in words; what only one of them knows is a difference too."""
    keys = [key for key in dict(there, **here) if there.get(key) != here.get(key)]
    return [_DIFFERENCES.get(key, "with another %s" % key) for key in keys]
