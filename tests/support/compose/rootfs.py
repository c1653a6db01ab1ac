"""File systems of base images from this machine's packages: no registry, and almost no network."""

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
    "apt", "base-files", "base-passwd", "bash", "coreutils", "dash", "findutils", "grep", "gzip", "hostname",
    "login",
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
)
_EMPTY = (
    "tmp", "proc", "sys", "dev", "run", "root", "home", "var/tmp", "var/log", "var/cache/apt/archives/partial",
    "var/lib/apt/lists/partial",
)  # fmt: skip
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


def write_debian(file: IO[bytes]) -> None:
    """Write the files of the packages and of what they need as a tar archive."""
    paths = {_real(path) for path in _package_files()} | set(_alternatives())
    with tarfile.open(fileobj=file, mode="w|") as tar:
        for name in _LINKS:
            tar.add(f"/{name}", name, recursive=False)
        for name in _EMPTY:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
            tar.addfile(folder)
        for name in _WHOLE:
            tar.add(f"/{name}", name, filter=lambda entry: None if entry.name.startswith(_OMITTED) else entry)
        added = {f"/{name}" for name in (*_EMPTY, *_LINKS)}
        for path in sorted(paths - added):
            # Links may dangle.
            if os.path.lexists(path) and not path.lstrip("/").startswith(_WHOLE):
                tar.add(path, path.lstrip("/"), recursive=False)


def install_pip(folder: Path, build: Path) -> None:
    """Install pip and what builds need, which environments made by uv lack."""
    if folder.exists():
        return
    pinned = re.findall(r"(?m)^(\w\S*==\S+)", build.read_text())
    words = [f"{sys.base_prefix}/bin/python3", "-m", "pip", "install", "--quiet", "--target", f"{folder}.new"]
    subprocess.run([*words, _PIP, *pinned], check=True, timeout=600)
    Path(f"{folder}.new").rename(folder)


def write_python(file: IO[bytes], pip: Path) -> None:
    """Write this interpreter with pip and the packages of this environment as a tar archive.

    They are those of requirements/, so that pip finds every pinned package installed.
    """
    base, own = Path(sys.base_prefix), Path(sys.prefix)
    version = f"python3.{sys.version_info[1]}"
    packages = f"lib/{version}/site-packages"
    with tarfile.open(fileobj=file, mode="w|") as tar:
        tar.add(base / "bin" / version, f"bin/{version}")
        tar.add(base / "lib", "lib", filter=lambda entry: None if f"{packages}/" in entry.name else _used(entry))
        for folder in (own / packages, pip):
            tar.add(folder, packages, filter=_used)
        for script in sorted((own / "bin").iterdir()):
            if script.is_file() and not script.is_symlink():
                _add_script(tar, script, version)


def _add_script(tar: tarfile.TarFile, script: Path, version: str) -> None:
    """Add a script of a package, such as `airflow`, with the interpreter's place in the image."""
    text = script.read_bytes()
    if not text.startswith(f"#!{sys.prefix}/bin/python".encode()):
        return
    text = f"#!/usr/local/bin/{version}\n".encode() + text.partition(b"\n")[2]
    entry = tarfile.TarInfo(f"bin/{script.name}")
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
