"""The file system of a base image from this machine's packages: no registry, and almost no network."""

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

# Of a minimal Debian, of the Dockerfiles in docker/, and the servers.
_PACKAGES = (
    "apt", "base-files", "base-passwd", "bash", "coreutils", "dash", "diffutils", "dpkg", "findutils", "grep",
    "gzip", "hostname", "login",
    "mount", "ncurses-bin", "passwd", "perl-base", "sed", "sysvinit-utils", "util-linux",
    "ca-certificates", "curl", "git", "iputils-ping", "libgomp1", "openssh-server", "procps", "tar", "tini",
    "unzip",
    "wget", "nginx-light", "postgresql-15", "redis-server",
)  # fmt: skip
# Libraries of the interpreter's modules.
_LIBRARIES = ("libssl3", "libffi8", "libsqlite3-0", "libbz2-1.0", "liblzma5", "libreadline8", "zlib1g", "libuuid1")
_LEFT_OUT = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
# Folders of the machine's state; `etc` has the accounts of the servers.
_WHOLE = ("etc", "var/lib/dpkg", "usr/share/ca-certificates", "usr/local/share/ca-certificates")
_OMITTED = (
    "etc/ssh/ssh_host_",
    "etc/apt/sources.list",
    "etc/resolv.conf",
    "etc/hosts",
    "etc/hostname",
    "etc/mtab",
    # A hook of a package that the image lacks fails when certificates are updated.
    "etc/ca-certificates/update.d/jks-keystore",
)
# Empty folders and their modes.
_MADE = {
    "tmp": 0o1777, "var": 0o755, "var/tmp": 0o1777, "proc": 0o755, "sys": 0o755, "dev": 0o755, "run": 0o755,
    "root": 0o700, "home": 0o755, "var/log": 0o755,
    "var/cache/apt/archives/partial": 0o755, "var/lib/apt/lists/partial": 0o755,
}  # fmt: skip
_LINKS = ("bin", "sbin", "lib", "lib64")
_DOCUMENTATION = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/")
# Newer than that of some interpreters, which refuse the extras in requirements/scheduler.txt.
_PIP = "pip==24.0"


def missing() -> str:
    """The packages that this machine lacks; '' if there are none."""
    if not shutil.which("dpkg-query"):
        return "not a Debian system"
    absent = sorted(set(_PACKAGES) - _installed(_PACKAGES))
    return f"not installed: {', '.join(absent)}" if absent else ""


def write_image(file: IO[bytes], pip: Path) -> None:
    """Write a tar archive with the packages, and in usr/local this interpreter and its environment.

    Args:
        pip: what `install_pip` installed.
    """
    paths = {_real(path) for path in _package_files()} | set(_alternatives())
    with tarfile.open(fileobj=file, mode="w|") as tar:
        for name in _LINKS:
            tar.add(f"/{name}", name, recursive=False)
        for name, mode in _MADE.items():
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            tar.addfile(folder)
        for name in _WHOLE:
            tar.add(f"/{name}", name, filter=lambda entry: None if entry.name.startswith(_OMITTED) else entry)
        added = {f"/{name}" for name in (*_MADE, *_LINKS)}
        for path in sorted(paths - added):
            # Links may dangle.
            if os.path.lexists(path) and not path.lstrip("/").startswith((*_WHOLE, "usr/local")):
                tar.add(path, path.lstrip("/"), recursive=False)
        _write_python(tar, pip)


def install_pip(folder: Path, build: Path) -> None:
    """Install pip and what builds need, which environments made by uv lack."""
    if folder.exists():
        return
    pinned = re.findall(r"(?m)^(\w\S*==\S+)", build.read_text())
    words = [f"{sys.base_prefix}/bin/python3", "-m", "pip", "install", "--quiet", "--target", f"{folder}.new"]
    subprocess.run([*words, _PIP, *pinned], check=True, timeout=600)
    Path(f"{folder}.new").rename(folder)


def _write_python(tar: tarfile.TarFile, pip: Path) -> None:
    """Add the interpreter, pip and the packages of requirements/: pip finds every pinned package installed."""
    base, own = Path(sys.base_prefix), Path(sys.prefix)
    version = f"python3.{sys.version_info[1]}"
    packages = f"lib/{version}/site-packages"
    tar.add(base / "bin" / version, f"usr/local/bin/{version}")
    tar.add(
        base / "lib", "usr/local/lib", filter=lambda entry: None if f"{packages}/" in entry.name else _used(entry)
    )
    for source in (own / packages, pip):
        for path in sorted(source.iterdir()):
            tar.add(path, f"usr/local/{packages}/{path.name}", filter=_used)
    for script in sorted((own / "bin").iterdir()):
        if script.is_file() and not script.is_symlink():
            _add_script(tar, script, version)
    for name in ("python", "python3"):
        link = tarfile.TarInfo(f"usr/local/bin/{name}")
        link.type, link.linkname = tarfile.SYMTYPE, version
        tar.addfile(link)
    _add_file(tar, "usr/local/bin/pip", b'#!/bin/sh\nexec python -m pip "$@"\n')


def _add_script(tar: tarfile.TarFile, script: Path, version: str) -> None:
    """Add a script of a package, such as `airflow`, with the interpreter's place in the image."""
    text = script.read_bytes()
    if not text.startswith(f"#!{sys.prefix}/bin/python".encode()):
        return
    text = f"#!/usr/local/bin/{version}\n".encode() + text.partition(b"\n")[2]
    _add_file(tar, f"usr/local/bin/{script.name}", text)


def _add_file(tar: tarfile.TarFile, name: str, text: bytes) -> None:
    """Add a program."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text), 0o755
    tar.addfile(entry, io.BytesIO(text))


def _package_files() -> Iterator[str]:
    words = ["apt-cache", "depends", "--recurse", "--installed", *(f"--no-{kind}" for kind in _LEFT_OUT)]
    done = subprocess.run(
        [*words, *_PACKAGES, *_LIBRARIES], capture_output=True, text=True, check=True, timeout=600
    )
    names = {line for line in done.stdout.splitlines() if line and not line.startswith((" ", "<"))}
    command = ["dpkg-query", "--listfiles", *sorted(_installed(names))]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    for line in listed.stdout.splitlines():
        if line.startswith("/") and not line.startswith(_DOCUMENTATION):
            yield line


def _installed(names: Iterable[str]) -> set[str]:
    show = ["dpkg-query", "--show", "--showformat", "${Package}|${db:Status-Status}\\n", *sorted(names)]
    done = subprocess.run(show, capture_output=True, text=True, check=False, timeout=120)
    return {line.split("|")[0] for line in done.stdout.splitlines() if line.endswith("|installed")}


def _real(path: str) -> str:
    """The path without links to other folders: /bin/sh is /usr/bin/sh."""
    return str(Path(path).parent.resolve() / Path(path).name)


def _alternatives() -> Iterator[str]:
    """Links to /etc/alternatives, which belong to no package."""
    for folder in ("/usr/bin", "/usr/sbin"):
        for path in Path(folder).iterdir():
            if path.is_symlink() and path.readlink().is_relative_to("/etc/alternatives"):
                yield str(path)


def _used(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what only tests of packages use, and this environment's link to the checkout."""
    path = Path(entry.name)
    name = path.name
    is_link = name.startswith(("__editable__", "tipcflow-"))
    is_test = "site-packages" not in path.parts and "test" in path.parts
    return None if is_link or is_test or name == "__pycache__" or name.endswith(".a") else entry
