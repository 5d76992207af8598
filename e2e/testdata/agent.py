"""An agent of one's own, written from docs/agent-protocol.md alone: claims one run, trains it, hands it in.

Usage: POTATO_TRAINING_TOKEN=... python agent.py SERVER FOLDER WORKER.py
"""

import base64
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tarfile
import threading
import time
import uuid

import requests

SERVER, FOLDER, WORKER = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
http = requests.Session()
http.headers["Authorization"] = "Bearer " + os.environ.pop("POTATO_TRAINING_TOKEN")


def call(method, path, **more):
    answer = http.request(method, SERVER + "/api/training/jobs" + path, timeout=60, **more)
    if answer.status_code >= 400:
        raise SystemExit("%s %s: %s" % (method, path, answer.text))
    return answer


def claim():
    question = {"agent_id": "by-hand", "backend": "lab-workstation", "host": socket.gethostname(), "version": "0", "wait_s": 20}
    while True:
        answer = call("POST", "/claim", json=dict(question, claim_id=uuid.uuid4().hex))
        if answer.status_code == 200:
            return answer.json()


def bundle(run):
    while True:
        answer = http.get(SERVER + "/api/training/jobs/%s/bundle" % run, timeout=60)
        if answer.status_code != 503:
            break
        time.sleep(float(answer.headers["Retry-After"]))
    answer.raise_for_status()
    digest = "sha-256=:%s:" % base64.b64encode(hashlib.sha256(answer.content).digest()).decode()
    assert answer.headers["Repr-Digest"] == digest, "the bundle did not arrive whole"
    (FOLDER / "bundle.tar.gz").write_bytes(answer.content)
    with tarfile.open(str(FOLDER / "bundle.tar.gz")) as archive:
        archive.extractall(str(FOLDER / "bundle"), filter="data")


class Reporter:
    """Numbers events and hands them over until the server has them."""

    def __init__(self, run, job):
        self.run, self.next, self.cancel = run, job["next_seq"], False
        self.stop = threading.Event()
        self.beat = threading.Thread(target=self.heartbeat)
        self.beat.start()

    def heartbeat(self):
        while not self.stop.is_set():
            self.cancel = call("POST", "/%s/heartbeat" % self.run).json()["cancel"] or self.cancel
            self.stop.wait(1)

    def report(self, lines):
        events = [dict(json.loads(line), seq=self.next + i, attempt=1) for i, line in enumerate(lines)]
        while events:
            answer = call("POST", "/%s/progress" % self.run, json={"events": events[:500]}).json()
            self.next, self.cancel = answer["next_seq"], answer["cancel"] or self.cancel
            events = [e for e in events if e["seq"] >= self.next]


def main():
    job = claim()
    run = job["run_id"]
    http.headers["Potato-Lease"] = job["lease"]
    reporter = Reporter(run, job)
    bundle(run)
    spec = dict(job["spec"], bundle_dir=str(FOLDER / "bundle"), workdir=str(FOLDER / "artifacts"))
    spec["events_file"] = str(FOLDER / "events.jsonl")
    (FOLDER / "artifacts").mkdir()
    (FOLDER / "events.jsonl").touch()
    (FOLDER / "spec.json").write_text(json.dumps(spec))
    worker = subprocess.Popen([sys.executable, WORKER, "--spec", str(FOLDER / "spec.json")])
    with open(spec["events_file"]) as events:
        ended = False
        while not ended:
            ended = worker.poll() is not None
            reporter.report(events.readlines())
            if reporter.cancel:
                worker.terminate()
            time.sleep(0.1)
    predictions = (FOLDER / "artifacts" / "predictions.jsonl").read_bytes()
    digest = "sha-256=:%s:" % base64.b64encode(hashlib.sha256(predictions).digest()).decode()
    headers = {"Content-Type": "application/x-ndjson", "Repr-Digest": digest}
    call("PUT", "/%s/predictions" % run, data=predictions, headers=headers)
    reporter.stop.set()
    reporter.beat.join()
    host = socket.gethostname()
    call("POST", "/%s/finish" % run, json={
        "exit_code": worker.returncode, "cancelled": reporter.cancel, "error_code": "", "error": "", "hint": "",
        "artifact_uri": "%s:%s" % (host, FOLDER / "artifacts"), "stderr": [], "host": host, "environment": {},
    })


main()
