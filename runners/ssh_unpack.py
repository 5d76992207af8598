"""Puts what comes on standard input, a tar, into place below a folder: each file whole, by rename, the mark last."""

import hashlib
import io
import os
import sys
import tarfile
import tempfile


class Hashed(io.RawIOBase):
    """Standard input, with the digest of what was read."""

    def __init__(self):
        self.sum = hashlib.sha256()

    def readable(self):
        return True

    def readinto(self, into):
        n = sys.stdin.buffer.readinto(into)
        self.sum.update(memoryview(into)[:n])
        return n


def put(archive, member, home):
    path = os.path.join(home, member.name)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fd, name = tempfile.mkstemp(prefix=".new-", dir=os.path.dirname(path))
    try:
        with os.fdopen(fd, "wb") as f:
            source = archive.extractfile(member)
            while True:
                part = source.read(1 << 20)
                if not part:
                    break
                f.write(part)
            os.fchmod(f.fileno(), member.mode)
        return name, path
    except BaseException:
        os.unlink(name)
        raise


home, digest, mark = sys.argv[1:]
raw = Hashed()
ready = []
try:
    os.makedirs(home, mode=0o700, exist_ok=True)
    with tarfile.open(fileobj=io.BufferedReader(raw, 1 << 20), mode="r|") as archive:
        for member in archive:
            ready.append(put(archive, member, home))
    while raw.read(1 << 16):
        pass
    if raw.sum.hexdigest() != digest:
        sys.exit("what arrived is not what was sent")
    while ready:
        os.replace(*ready.pop(0))
    open(os.path.join(home, mark), "w").close()
except OSError as err:
    sys.exit("%s: %s" % (err.strerror, err.filename or home))
finally:
    for name, _ in ready:
        os.unlink(name)
