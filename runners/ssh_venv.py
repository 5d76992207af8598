"""Makes the environment for the listed packages, once for all runs of the account: python ssh_venv.py DIR PACKAGE..."""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig

home, packages = sys.argv[1], sys.argv[2:]
ready = os.path.join(home, ".potato-ready")
python = os.path.join(home, "bin", "python")


def run(what, argv):
    say("step " + what)
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/")
    last = ""
    for line in process.stdout:
        line = line.decode("utf-8", "replace").strip()
        if line:
            last = line
            say("line " + line)
    if process.wait() != 0:
        say("fail %s: %s" % (what, last))
        sys.exit(3)


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


os.makedirs(os.path.dirname(home), mode=0o700, exist_ok=True)
with open(home + ".lock", "w") as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say("step waiting for another run to install packages")
        fcntl.flock(lock, fcntl.LOCK_EX)
    if not os.path.exists(ready):
        shutil.rmtree(home, ignore_errors=True)
        run("making the Python environment", [sys.executable, "-m", "venv", "--system-site-packages", home])
        if sys.prefix != sys.base_prefix:
            # --system-site-packages shows the system's packages alone: those of an environment that it is made of need a path.
            ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
            inner = subprocess.check_output([python, "-c", ask]).decode().strip()
            paths = sysconfig.get_paths()
            with open(os.path.join(inner, "_potato_parent.pth"), "w") as f:
                f.write("\n".join(dict.fromkeys([paths["purelib"], paths["platlib"]])) + "\n")
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
        run("installing " + ", ".join(packages), pip + packages)
        open(ready, "w").close()
