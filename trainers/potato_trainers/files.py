"""Writing files that others read: complete or not there at all."""

import os
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
