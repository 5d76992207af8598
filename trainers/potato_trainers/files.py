"""Writing files that others read: complete or not there at all."""

import os
import pickle
import re


def write_atomic(path, data):
    """Writes a file under a temporary name, syncs it and renames it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    partial = path + ".partial"
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        remove(partial)
        raise


def remove(path):
    """Removes a file that may not be there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


PICKLE = "state.pkl"


def save_pickle(folder, value):
    """Writes the one file of a checkpoint that is a Python object; whoever opened the checkpoint syncs it."""
    with open(os.path.join(folder, PICKLE), "wb") as file:
        pickle.dump(value, file, protocol=4)


def load_pickle(folder):
    """Reads what save_pickle wrote, on the machine that wrote it and with the same versions."""
    with open(os.path.join(folder, PICKLE), "rb") as file:
        return pickle.load(file)


def folder_names(names):
    """A folder name for each of the names, which may hold anything: `a/b` and `a_b` get different ones."""
    taken, result = set(), {}
    for name in names:
        base = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII).lstrip(".")[:80] or "scheme"
        folder, n = base, 2
        while folder.lower() in taken:
            folder, n = "%s-%d" % (base, n), n + 1
        taken.add(folder.lower())
        result[name] = folder
    return result
