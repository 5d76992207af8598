"""Sends the files below a folder: for each a line of JSON and its bytes from the offset that is there already.

What comes on standard input is one line of JSON: the folder, the largest size that is sent, and how many bytes of which
files are there. A file that has changed since is sent from its beginning.
"""

import hashlib
import json
import os
import sys

q = json.loads(sys.stdin.readline())
out = sys.stdout.buffer


def say(**record):
    out.write(json.dumps(record).encode() + b"\n")


def send(path, name, size, there):
    have = there.get(name, 0)
    have = have if 0 < have <= size else 0
    sum = hashlib.sha256()
    with open(path, "rb") as f:
        left = have
        while left:
            part = f.read(min(left, 1 << 20))
            if not part:
                break
            sum.update(part)
            left -= len(part)
        say(path=name, size=size, offset=have)
        left = size - have
        while left:
            part = f.read(min(left, 1 << 20))
            if not part:
                part = b"\0" * min(left, 1 << 20)  # it was cut meanwhile; the digest will not be the file's
                sum.update(b"cut")
            sum.update(part)
            out.write(part)
            left -= len(part)
    say(sha256=sum.hexdigest())


files = []
for folder, folders, names in os.walk(q["dir"]):
    folders.sort()
    for name in sorted(names):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and not os.path.islink(path):
            files.append((path, os.path.relpath(path, q["dir"]), os.path.getsize(path)))
large = [(name, size) for _, name, size in files if size > q["most"]]
wanted = [f for f in files if f[2] <= q["most"]]
say(files=len(wanted), bytes=sum(f[2] for f in wanted), large=large)
for path, name, size in wanted:
    send(path, name, size, q["there"])
say(end=True)
out.flush()
