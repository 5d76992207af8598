import sys

if sys.version_info < (3, 8):
    sys.stdout.write('{"too_old": "%d.%d.%d"}\n' % sys.version_info[:3])
    sys.exit(0)

import base64
import io
import json
import os
import tarfile


def describe(tmp):
    """Says what this interpreter can train, by the worker's own description."""
    code = os.path.join(tmp, "code")
    os.makedirs(code)
    with open(os.path.join(tmp, "code.b64"), "rb") as packed:
        archive = tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed.read())))
    for member in archive:
        path = os.path.join(code, member.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(archive.extractfile(member).read())
    sys.path.insert(0, code)
    from potato_trainers.describe import describe as said

    study = os.path.join(code, "study")
    return said(study if os.path.isdir(study) else None)


def torch_facts():
    """Says for which GPUs the torch here has kernels; only a computation proves it."""
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        return {"installed": False}
    facts = {"installed": True, "version": "", "archs": [], "error": "", "broken": [], "hip": False}
    try:
        import torch
    except Exception as err:
        facts["error"] = (str(err).splitlines() or [type(err).__name__])[0]
        return facts
    facts["version"] = str(getattr(torch, "__version__", ""))
    facts["hip"] = bool(getattr(getattr(torch, "version", None), "hip", None))
    try:
        facts["archs"] = list(torch.cuda.get_arch_list())
        if not facts["archs"]:  # torch tells only when it has found a GPU; what it was built for is known without
            facts["archs"] = torch._C._cuda_getArchFlags().split()
    except Exception:
        pass
    try:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except Exception as err:
        facts["error"] = (str(err).splitlines() or [""])[0]
        return facts
    for index in range(count):
        try:
            (torch.ones(1, device="cuda:%d" % index) + 1).cpu()
        except Exception as err:
            if "out of memory" not in str(err).lower():
                facts["broken"].append(index)
    return facts


sys.path[:] = [p for p in sys.path if p]  # never the folder that this happens to run in
answer = describe(sys.argv[2]) if sys.argv[1] == "describe" else torch_facts()
sys.stdout.write(json.dumps(answer) + "\n")
