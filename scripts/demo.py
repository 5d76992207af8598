#!/usr/bin/env python3
"""Copy the tutorial's study, start the training server on it, train once, and leave the page's URL and key on the screen.

The copy lives in .cache/demo and is kept: a second `make demo` goes on with its runs. Ctrl-C stops the server.
"""

import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUDY = ROOT / ".cache" / "demo"
LOG = STUDY / "server.log"
FINAL = ("success", "error", "cancelled")


def prepare():
    if not (STUDY / "config.yaml").exists():
        shutil.copytree(ROOT / "examples" / "reviews", STUDY, dirs_exist_ok=True)
        config = (STUDY / "config.yaml").read_text("utf-8")
        config = config.replace('"change-me"', json.dumps(secrets.token_urlsafe(24)))
        config = config.replace("  enabled: true\n", f"  enabled: true\n  python: {json.dumps(sys.argv[1])}\n", 1)
        (STUDY / "config.yaml").touch(mode=0o600)
        (STUDY / "config.yaml").write_text(config, "utf-8")
    return re.search(r'^admin_api_key: "(.*)"$', (STUDY / "config.yaml").read_text("utf-8"), re.M).group(1)


def start():
    command = [str(ROOT / "bin" / "potato"), "start", str(STUDY / "config.yaml"), "--host", "127.0.0.1"]
    command += ["--port", os.environ.get("PORT", "8000")]
    with open(LOG, "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    line = server.stdout.readline()
    found = re.search(r"http://\S+?(?=/admin|\s|$)", line)
    if not found:
        sys.stderr.write(LOG.read_text("utf-8") + "Another port for the demo: PORT=8100 make demo\n")
        sys.exit(server.wait() or 1)
    return server, found.group(0)


def call(url, key, payload=None):
    request = urllib.request.Request(url, headers={"X-API-Key": key, "Content-Type": "application/json"})
    data = None if payload is None else json.dumps(payload).encode()
    with urllib.request.urlopen(request, data, timeout=30) as answer:
        return json.load(answer)


def train(base, key):
    runs = base + "/admin/training/api/runs"
    run_id = call(runs, key, {"trainer": "sklearn-text", "schemas": ["sentiment"]})["run_id"]
    step, deadline = "", time.monotonic() + 300
    while True:
        run = call(f"{runs}/{run_id}", key)
        if run["step"] and run["step"] != step:
            step = run["step"]
            print(f"  {run['status']}: {step}", flush=True)
        if run["status"] in FINAL:
            return run
        if time.monotonic() > deadline:
            sys.exit(f"The run is still {run['status']} after 5 minutes: {step}")
        time.sleep(0.2)


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    key = prepare()
    server, base = start()
    try:
        print(f"Training on the labels of {STUDY / 'config.yaml'}", flush=True)
        run = train(base, key)
        if run["status"] != "success":
            print(f"The run ended as {run['status']}: {run['error']} {run['hint']}", file=sys.stderr)
        else:
            print(f"  {run['metrics']['test_accuracy']:.2f} accuracy on {run['n_test']} held-out items\n")
        print(f"Page: {base}/admin/training\nKey:  {key}\nLog:  {LOG}\n\nCtrl-C stops the server.", flush=True)
        server.wait()
    except urllib.error.HTTPError as error:
        sys.exit(f"The server refused: {error.read().decode()}")
    except KeyboardInterrupt:
        pass
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


if __name__ == "__main__":
    main()
