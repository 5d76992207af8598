"""A worker for tests: does the steps that the spec's params list under "script", one after another."""

import json
import mmap
import os
import signal
import subprocess
import sys
import time

STDOUT, STDERR = 1, 2


def event(spec, fields):
    line = dict({"v": 1, "t": time.time()}, **fields)
    raw(spec, (json.dumps(line) + "\n").encode())


def raw(spec, data):
    fd = os.open(spec["events_file"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        while data:
            data = data[os.write(fd, data):]
    finally:
        os.close(fd)


def predictions(spec, n):
    path = os.path.join(spec["workdir"], "predictions.jsonl")
    with open(path + ".part", "w") as out:
        for i in range(n):
            row = {"instance_id": "item-%d" % i, "schema_name": "s", "payload": {"label": "a", "confidence": 0.5}, "confidence": 0.5}
            out.write(json.dumps(row) + "\n")
    os.rename(path + ".part", path)
    event(spec, {"event": "artifact", "path": "predictions.jsonl", "bytes": os.path.getsize(path)})


def result(spec, fields):
    done = {"event": "result", "status": "success", "predictions_file": "predictions.jsonl", "model_version": "test-1", "python": sys.version.split()[0]}
    done.update(fields)
    event(spec, done)


def daemon(ignore_term):
    """Leaves a process of another session that keeps standard output open, as a careless library does."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if ignore_term:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        os._exit(0)
    os.wait()


def child(ignore_term):
    code = "import signal,time\n%stime.sleep(600)" % ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" if ignore_term else "")
    subprocess.Popen([sys.executable, "-c", code])


def flood(n):
    block = ("x" * 99 + "\n").encode() * 1000
    while n > 0:
        n -= os.write(STDOUT, block[:n])


def wait_for(path):
    end = time.monotonic() + 60
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.005)


def on_term(spec, how):
    if how == "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return

    def handle(number, frame):
        event(spec, {"event": "error", "code": "cancelled", "message": "The run was cancelled"})
        os._exit(4)

    signal.signal(signal.SIGTERM, handle)


HELD = []


def do(spec, step):
    name, args = step[0], step[1:]
    if name == "event":
        event(spec, args[0])
    elif name == "status":
        event(spec, {"event": "status", "state": "running", "step": args[0]})
    elif name == "metrics":  # many of them, numbered
        for i in range(args[0]):
            event(spec, {"event": "metric", "split": "train", "name": "n", "value": i, "step": i})
            if len(args) > 1:
                time.sleep(args[1])
    elif name == "raw":
        raw(spec, args[0].encode("utf-8", "surrogateescape"))
    elif name == "print":
        os.write(STDOUT, args[0].encode())
    elif name == "stderr":
        os.write(STDERR, args[0].encode())
    elif name == "sleep":
        time.sleep(args[0])
    elif name == "on_term":
        on_term(spec, args[0])
    elif name == "daemon":
        daemon(bool(args))
    elif name == "child":
        child(bool(args))
    elif name == "map":  # a file of so many MB, which takes no memory of its own
        with open(args[0], "wb") as big:
            big.truncate(args[1] << 20)
        with open(args[0], "rb") as big:
            HELD.append(mmap.mmap(big.fileno(), 0, access=mmap.ACCESS_READ))
        for at in range(0, args[1] << 20, 4096):
            HELD[-1][at]
    elif name == "alloc":
        HELD.append(bytearray(os.urandom(1 << 20)) * args[0])
    elif name == "flood":
        flood(args[0])
    elif name == "wait":
        wait_for(args[0])
    elif name == "touch":
        open(args[0], "w").close()
    elif name == "env":
        seen = dict(os.environ)
        for name in ("environ", "cmdline"):  # what any process of the job can read of its shim
            with open("/proc/%d/%s" % (os.getppid(), name), "rb") as parent:
                seen["shim's " + name] = parent.read().decode("utf-8", "replace")
        with open(args[0], "w") as out:
            json.dump(seen, out)
    elif name == "import":
        __import__(args[0])
    elif name == "predictions":
        predictions(spec, args[0])
    elif name == "result":
        result(spec, args[0] if args else {})
    elif name == "error":
        event(spec, {"event": "error", "code": args[0], "message": args[1], "install_hint": args[2] if len(args) > 2 else ""})
    elif name == "exit":
        os._exit(args[0])
    elif name == "kill":
        os.kill(os.getpid(), args[0])
    elif name == "kill_shim":
        os.kill(os.getppid(), signal.SIGKILL)
    else:
        raise SystemExit("unknown step %r" % name)


def warm():
    os.write(int(os.environ["POTATO_READY_FD"]), b"ready\n")
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    job = json.loads(line)
    for fd, path in ((STDOUT, job["stdout"]), (STDERR, job["stderr"])):
        new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(new, fd)
        os.close(new)
    os.chdir(job["cwd"])
    return job["spec"]


def main():
    path = warm() if sys.argv[1] == "--warm" else sys.argv[2]
    with open(path) as spec_file:
        spec = json.load(spec_file)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for step in spec["params"].get("script") or []:
        do(spec, step)


main()
