"""Which trainers there are: one file each, the program's own in builtin/ and a study's in its trainers_dir.

A trainer's TRAINER is a literal and is read without running the file, so listing them is quick, imports nothing heavy
and runs nobody's code. A file that cannot be read so is listed with the reason and harms no other.
"""

import ast
import importlib.util
import os
import re
import stat
import sys

from potato_trainers.failures import SpecError, ValidationFailed, not_imported

BUILTIN_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "builtin")
KINDS = ("nominal", "ordinal", "multilabel", "continuous", "span", "matrix", "geometry", "temporal")

_LOADED = {}  # path -> module: a warm worker loads its trainer before it knows the spec
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_NO_PARAMS = {"type": "object", "properties": {}, "additionalProperties": False}

# Every key of TRAINER: its type and its default; None as default means that it must be there.
_KEYS = {
    "name": (str, None),
    "description": (str, None),
    "licence": (str, ""),
    "licence_url": (str, ""),
    "commercial_use": (bool, False),
    "kinds": (list, None),
    "modalities": (list, ["text"]),
    "packages": (list, []),
    "imports": (list, []),
    "install_hint": (str, ""),
    "params": (dict, _NO_PARAMS),
    "distributed": (bool, False),
    "local_only": (bool, False),
    "checkpoints": (bool, False),
    "uses_device": (bool, False),
}


class Trainer:
    """A trainer's file: what it says of itself, or why it cannot be used."""

    def __init__(self, path, source, about, broken=""):
        self.path, self.source, self.about, self.broken = path, source, about, broken
        self.name = about["name"]

    def missing(self):
        """The packages that this interpreter lacks, as (package, module); looked up, not imported."""
        modules = [
            module.partition(".")[0] for module in self.about["imports"]
        ]  # a submodule's look-up imports its parent
        return [(package, module) for package, module in zip(self.about["packages"], modules) if not _findable(module)]

    def require(self):
        """Raises what a run reports when the trainer cannot run here."""
        if self.broken:
            raise ValidationFailed("Trainer '%s' could not be imported: %s" % (self.name, self.broken))
        missing = self.missing()
        if missing:
            error = ModuleNotFoundError(name=missing[0][1])
            raise not_imported(self.name, error, self.about["install_hint"])

    def load(self):
        """Runs the file, once in a process, and returns its module."""
        if self.path not in _LOADED:
            _LOADED[self.path] = self._execute()
        return _LOADED[self.path]

    def _execute(self):
        spec = importlib.util.spec_from_file_location("trainer_" + re.sub(r"\W", "_", self.name), self.path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses and pickle look a class's module up by name
        if self.source == "study":
            folder = os.path.dirname(self.path)
            if folder not in sys.path:
                sys.path.append(folder)  # last: its helper files must not hide a library
        try:
            spec.loader.exec_module(module)
        except ImportError as err:
            raise not_imported(self.name, err, self.about["install_hint"]) from err
        return module


def find(trainers_dir=None):
    """Lists all trainers, the program's own first."""
    trainers = [_read(path, "built-in") for path in _files(BUILTIN_DIR)]
    names = {t.name for t in trainers}
    for path in _files(trainers_dir) if trainers_dir else []:
        trainer = _read(path, "study")
        if trainer is None:
            continue
        if trainer.name in names and not trainer.broken:
            kind = (
                "a built-in trainer"
                if any(t.name == trainer.name and t.source == "built-in" for t in trainers)
                else "another file's"
            )
            trainer = _broken(
                path, "study", "it calls itself '%s', which is %s; give it another name" % (trainer.name, kind)
            )
        names.add(trainer.name)
        trainers.append(trainer)
    return trainers


def named(name, trainers_dir=None):
    """The trainer of that name."""
    trainers = find(trainers_dir)
    for trainer in trainers:
        if trainer.name == name:
            return trainer
    raise SpecError("There is no trainer '%s'; there are %s" % (name, ", ".join(t.name for t in trainers)))


def _files(directory):
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [os.path.join(directory, n) for n in names if n.endswith(".py") and not n.startswith(("_", "."))]


def _read(path, source):
    """Reads one file; None when it is no trainer but a helper of one."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for ever
            return _broken(path, source, "it is not a file")
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except OSError as err:
        return _broken(path, source, "it cannot be read: %s" % err.strerror)
    except SyntaxError as err:
        return _broken(path, source, "line %s is not valid Python: %s" % (err.lineno, err.msg))
    except (ValueError, RecursionError, MemoryError) as err:
        return _broken(path, source, "it is not valid Python: %s" % err)
    literal, has_train = None, False
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "train":
            has_train = True
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == "TRAINER" for t in targets):
                literal = node.value
    if literal is None:
        return _broken(path, source, "it has train(job) but no TRAINER") if has_train else None
    if not has_train:
        return _broken(path, source, "it has TRAINER but no function train(job)")
    try:
        about = ast.literal_eval(literal)
    except ValueError:
        return _broken(
            path, source, "TRAINER must be a literal: texts, numbers, lists and dicts, without calls or names"
        )
    problem = _problem(about)
    if problem:
        return _broken(path, source, problem)
    return Trainer(path, source, {key: about.get(key, default) for key, (_, default) in _KEYS.items()})


def _problem(about):
    if not isinstance(about, dict):
        return "TRAINER must be a dict"
    for key, value in about.items():
        if key not in _KEYS:
            return "TRAINER has an unknown key %r" % key
        if not isinstance(value, _KEYS[key][0]):
            return "TRAINER['%s'] must be a %s" % (key, _KEYS[key][0].__name__)
    for key, (_, default) in _KEYS.items():
        if default is None and not about.get(key):
            return "TRAINER['%s'] is missing" % key
    for key in ("kinds", "modalities", "packages", "imports"):
        if not all(isinstance(entry, str) for entry in about.get(key, [])):
            return "TRAINER['%s'] must be a list of texts" % key
    if not _NAME.fullmatch(about["name"]):
        return "TRAINER['name'] must be of lower-case letters, digits and -._"
    wrong = [kind for kind in about["kinds"] if kind not in KINDS]
    if wrong:
        return "TRAINER['kinds'] has %r; the kinds are %s" % (wrong[0], ", ".join(KINDS))
    if len(about.get("packages", [])) != len(about.get("imports", [])):
        return "TRAINER['imports'] must name one module for each of TRAINER['packages']"
    params = about.get("params", _NO_PARAMS)
    if params.get("type") != "object" or not isinstance(params.get("properties", {}), dict):
        return "TRAINER['params'] must be a JSON Schema of type object"
    return None


def _broken(path, source, reason):
    about = {key: default for key, (_, default) in _KEYS.items()}
    about.update(name=os.path.basename(path), description="", kinds=[])
    return Trainer(path, source, about, broken="%s: %s" % (os.path.basename(path), reason))


def _findable(name):
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
