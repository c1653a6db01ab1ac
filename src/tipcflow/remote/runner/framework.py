"""Detects the framework of a Python environment without importing it, which would take seconds."""

from __future__ import annotations

import json
import os
import re
import subprocess

from .files import Json

FRAMEWORKS = ("paddle", "torch")
PACKAGES = (
    "auto_log", "numpy", "protobuf", "setuptools", "paddleslim", "onnxruntime", "opencv-python", "Pillow",
    "torchvision", "tensorboardX",
)  # fmt: skip
# Packages with the libraries of frameworks that do not bring their own, for CUDA 13, 12 and 11.
LIBRARIES = {name: tuple("nvidia-%s-cu%d" % (name, cuda) for cuda in (13, 12, 11)) for name in ("cudnn", "nccl")}
CUDA, CUDNN = "/usr/local/cuda", ("/usr/local/cuda/include", "/usr/include")
# Runs in the environment's own interpreter, of any version.
PROBE = """
import importlib.util, json, sys
try:
    from importlib import metadata
except ImportError:
    metadata = None
found = {"python": sys.version.split()[0], "origins": {}, "packages": {}}
for name in %r:
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin:
        found["origins"][name] = spec.origin
for name in %r if metadata else ():
    try:
        found["packages"][name] = metadata.version(name)
    except Exception:
        pass
found["libraries"] = {}
for library, names in %r.items() if metadata else ():
    for name in names:
        try:
            found["libraries"].setdefault(library, metadata.version(name))
        except Exception:
            pass
print(json.dumps(found))
"""


def software(python: str) -> Json:
    """Return the version of Python, the framework with version and commit, and relevant packages; empty if the
    interpreter fails.

    Raises:
        subprocess.TimeoutExpired: the interpreter takes too long.
    """
    try:
        done = subprocess.run(
            [python, "-c", PROBE % (FRAMEWORKS, PACKAGES, LIBRARIES)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=4.0, cwd="/", check=False,
        )  # fmt: skip
        found = json.loads(done.stdout.decode())
    except (OSError, ValueError):
        return {}
    report = {"python": found["python"], "packages": found["packages"], "frameworks": {}}
    for name in FRAMEWORKS:
        origin = found["origins"].get(name)
        if origin:
            values = version_of(name, os.path.dirname(origin))
            report = dict(values, **report)
            report["frameworks"][name] = values["framework_version"]
    # The version that a framework was built for is in its own file; without one, the installed packages count.
    return dict(found.get("libraries", {}), **report) if report["frameworks"] else report


def version_of(name: str, folder: str) -> Json:
    """Return version and commit from the framework's version file, and the CUDA libraries that it was built
    for."""
    path = (
        os.path.join(folder, "version", "__init__.py") if name == "paddle" else os.path.join(folder, "version.py")
    )
    try:
        with open(path) as handle:
            values = dict(re.findall(r"^(\w+)\s*(?::[^=\n]+)?=\s*['\"]([^'\"\n]*)['\"]", handle.read(), re.M))
    except OSError:
        values = {}
    version = values.get("full_version") or values.get("__version__", "")
    report = {"framework": name, "framework_version": version}
    report["framework_commit"] = values.get("commit") or values.get("git_version", "")
    for ours, theirs in (
        ("cuda", ("cuda_version", "cuda")),
        ("cudnn", ("cudnn_version",)),
        ("nccl", ("nccl_version",)),
    ):
        value = next((values[key] for key in theirs if values.get(key) not in (None, "", "False", "0")), "")
        if value:
            report[ours] = value
    return report


def libraries() -> Json:
    """Return CUDA, cuDNN and NCCL of the system; those of the framework are in its version file."""
    report = {}
    version = toolkit_version(CUDA) or compiler_version(os.path.join(CUDA, "bin", "nvcc"))
    if version:
        report["cuda"] = version
    try:
        from ctypes.util import find_library
    except ImportError:  # a Python that was built without it
        return report
    for name in ("cudnn", "nccl"):
        library = find_library(name)
        if library:
            report[name] = library
    version = next(filter(None, map(cudnn_version, CUDNN)), "")
    if version:
        report["cudnn"] = version
    return report


def toolkit_version(folder: str) -> str:
    """Return the version of a CUDA toolkit: of version.json, or of version.txt before CUDA 11; '' if unknown."""
    try:
        with open(os.path.join(folder, "version.json")) as handle:
            return str(json.load(handle)["cuda"]["version"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    try:
        with open(os.path.join(folder, "version.txt")) as handle:
            found = re.search(r"CUDA Version (\d[\d.]*)", handle.read())
    except (OSError, ValueError):
        return ""
    return found.group(1) if found else ""


def compiler_version(program: str) -> str:
    """Return the version of a CUDA compiler; '' if it is missing or fails.

    Raises:
        subprocess.TimeoutExpired: it takes too long.
    """
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=4.0, check=False,
        )  # fmt: skip
    except OSError:
        return ""
    found = re.search(r"release [\d.]+, V(\d[\d.]*)", done.stdout.decode("utf-8", "replace"))
    return found.group(1) if found else ""


def cudnn_version(folder: str) -> str:
    """Return the version in the header of cuDNN: cudnn_version.h, or cudnn.h before cuDNN 8; '' if unknown."""
    for name in ("cudnn_version.h", "cudnn.h"):
        try:
            with open(os.path.join(folder, name)) as handle:
                text = handle.read()
        except (OSError, ValueError):
            continue
        numbers = [
            re.search(r"^#define CUDNN_%s (\d+)" % part, text, re.M) for part in ("MAJOR", "MINOR", "PATCHLEVEL")
        ]
        if all(numbers):
            return ".".join(number.group(1) for number in numbers if number)
    return ""
