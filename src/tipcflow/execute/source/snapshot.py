"""Snapshot of a suite: a ref resolved once on the controller, archived by hash, the same bytes for every node.

Nodes hold no credentials: only the controller contacts git servers.
"""

import contextlib
import difflib
import fnmatch
import gzip
import hashlib
import io
import os
import posixpath
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tipcflow.config.settings import settings
from tipcflow.config.suite import Suite, place_in_suite
from tipcflow.domain import ConfigError, InfraError
from tipcflow.domain.numbers.units import counted, limit
from tipcflow.execute.node.file_lock import locked

GIT_DEADLINE_S = 300
# Number of similar names in an error.
_NEAR = 3
_PARAMS = "an existing file, or a path relative to the suite's root"
_FULL_COMMIT = re.compile(r"[0-9a-f]{40}")
# Folder in the archive for a params file that is not part of the suite.
FOREIGN_PARAMS = "tipcflow_params"
_NEVER = {".git", "__pycache__", ".venv", ".tipcflow", "test_tipc/output"}


class Entry(NamedTuple):
    """One file of a suite: its content, or the target of a symbolic link."""

    data: bytes
    executable: bool = False
    link: str = ""


Files = dict[str, Entry]


@dataclass(frozen=True)
class Snapshot:
    """The suite's files at one ref.

    Attributes:
        commit: full commit id, with suffix `+local` if the working tree differs; '' outside git.
        archive: gzip-compressed tar, byte-identical for identical files.
        sha256: hash of `archive`, hex.
        params_file: path of the params file relative to the suite's root.
        params_text: text of the params file at that ref.
        names: paths of all files relative to the root; those outside of it start with `../`.
    """

    commit: str
    archive: bytes
    sha256: str
    params_file: str
    params_text: str
    names: frozenset[str]


def take_snapshot(
    suite: Suite, params: str, ref: str | None, *, cache: Path, only_inside: bool = False
) -> Snapshot:
    """Return the suite at `ref` (None: its working tree) with the params file that `params` names.

    Args:
        params: path of a file in the suite (relative to its root, or anywhere in its folder), or of any other
            file, which is then added to the archive; or `<folder>/<name>`, the last two parts of the path of one
            of the suite's params files.
        cache: folder with the clones of `git:` suites.
        only_inside: `params` is relative to the suite's root; other files are not considered.

    Raises:
        ConfigError: unknown folder, ref or params file.
        InfraError: the suite's git server is unreachable.
    """
    root = checkout(suite, cache)
    inside, outside = (params, root) if only_inside else _locate(params, root)
    files, commit = files_at(root, ref, clone=bool(suite.git), top=suite.top) if ref else _files_now(root, suite)
    if inside is None:
        # With the folder, so that files of the same name from two folders are two chains.
        folder = hashlib.sha256(str(outside.parent).encode()).hexdigest()[:8]
        inside = f"{FOREIGN_PARAMS}/{folder}/{outside.name}"
        files[inside] = Entry(outside.read_bytes())
    elif inside not in files:
        inside = _by_model_and_name(suite, inside, files, at=f" at {ref}" if ref else "")
    archive = _pack(files, suite.below)
    return Snapshot(
        commit=commit,
        archive=archive,
        sha256=hashlib.sha256(archive).hexdigest(),
        params_file=inside,
        params_text=_text(files[inside].data, inside),
        names=frozenset(files),
    )


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(
            "is not UTF-8 text", file=name, line=line, found=repr(data[error.start : error.end])
        ) from error


def checkout(suite: Suite, cache: Path, *, refs: Sequence[str] = ()) -> Path:
    """Return the suite's folder on this machine; for a `git:` suite an up-to-date clone.

    Args:
        refs: the only refs that are read. If all are full commits that the clone has, the git server is not
            contacted.

    Raises:
        ConfigError: the folder does not exist.
        InfraError: the suite's git server is unreachable.
    """
    if suite.folder:
        root = Path(suite.folder, suite.subfolder)
        if not root.is_dir():
            key = "folder" if suite.subfolder == "." or not Path(suite.folder).is_dir() else "subfolder"
            file, line = place_in_suite(suite.name, settings().config_dir, key)
            raise ConfigError(
                "the suite's folder does not exist",
                file=file,
                line=line,
                key=key,
                found=str(root),
                expected="an existing folder, absolute or relative to the folder that holds configs/"
                if key == "folder"
                else "a folder of the suite",
            )
        return root
    clone = cache / suite.name
    # Concurrently resolved runs share the clone.
    with locked(cache / f".{suite.name}.lock", seconds=2 * GIT_DEADLINE_S):
        if clone.is_dir():
            if refs and all(_FULL_COMMIT.fullmatch(ref) and _has_commit(clone, ref) for ref in refs):
                return clone / suite.subfolder
            git(clone, "fetch", "--quiet", "--prune", "--tags", "origin", network=True)
        else:
            # Renamed only when complete: an interrupted clone under its final name would stay broken.
            aside = cache / f".{suite.name}.cloning"
            shutil.rmtree(aside, ignore_errors=True)
            git(cache, "clone", "--quiet", suite.git, aside.name, network=True)
            aside.rename(clone)
    return clone / suite.subfolder


def _locate(params: str, root: Path) -> tuple[str | None, Path]:
    """Return (path relative to the suite's root or None, path on the controller)."""
    path = Path(params)
    if path.is_file():
        resolved = path.resolve()
        if resolved.is_relative_to(root.resolve()):
            return str(resolved.relative_to(root.resolve())), resolved
        return None, resolved
    if path.is_absolute():
        raise ConfigError("no such params file", key="PARAMS", found=params, expected=_PARAMS)
    clean = str(PurePosixPath(params))
    if ".." in PurePosixPath(clean).parts:
        raise ConfigError("no such params file", key="PARAMS", found=params, expected=_PARAMS)
    return clean, root / clean


def _by_model_and_name(suite: Suite, params: str, files: Files, *, at: str) -> str:
    """Return the suite's only params file with this folder and name, as in the name of a chain."""
    wanted = PurePosixPath(params)
    matches = [name for name in files if PurePosixPath(name).parts[-2:] == wanted.parts]
    matches = [name for name in matches if any(matches_glob(name, glob) for glob in suite.params)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ConfigError(
            f"the suite has {len(matches)} params files with that folder and name{at}",
            key="PARAMS",
            found=params,
            expected=f"one of {', '.join(sorted(matches))}",
        )
    known = [name for name in files if any(matches_glob(name, glob) for glob in suite.params)]
    near = difflib.get_close_matches(params, known, _NEAR, cutoff=0.5)
    raise ConfigError(
        f"suite {suite.name} has no such params file{at}",
        key="PARAMS",
        found=params,
        expected=f"a file of {', '.join(suite.params)}" if suite.params else "",
        hint=f"similar: {', '.join(near)}" if near else f"the suite has {counted(len(known), 'params file')}{at}",
    )


def matches_glob(name: str, glob: str) -> bool:
    """Whether a path matches a glob, where `**` matches any number of folders including none."""
    return fnmatch.fnmatch(name, glob) or fnmatch.fnmatch(name, glob.replace("**/", ""))


def git(folder: Path, *args: str, network: bool = False) -> bytes:
    """Return the output of a git command.

    Args:
        network: whether the command contacts a server, which then counts as the cause of a failure.

    Raises:
        ConfigError, InfraError: the command failed; with git's own error (`git_error`).
    """
    # core.quotePath=off keeps non-ASCII file names as they are.
    command = ["git", "-C", str(folder), "-c", "core.quotePath=off", *args]
    try:
        done = subprocess.run(command, capture_output=True, timeout=GIT_DEADLINE_S, check=False)
    except FileNotFoundError as error:
        raise InfraError("git is not installed on this machine", hint="install git") from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"git {args[0]} took longer than {limit(GIT_DEADLINE_S)}") from error
    if done.returncode:
        message = git_error(done.stderr.decode(errors="replace"))
        if network:
            raise InfraError(f"git {args[0]} failed: {message}")
        raise ConfigError(f"git {args[0]} failed: {message}")
    return done.stdout


def git_error(output: str) -> str:
    """Return the error in git's error output: its line `fatal: …` after the cause that the line before states.

    Git prints advice after the error (`Please make sure you have the correct access rights`), and the cause before
    it where SSH or the server gives one (`Permission denied (publickey)`, `remote: Repository not found.`).
    """
    noise = ("Cloning into", "hint:", "warning:")
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith(noise)]
    fatal = next((index for index, line in enumerate(lines) if line.startswith("fatal:")), None)
    if fatal is None:
        return lines[-1] if lines else "no message"
    return "; ".join(lines[max(0, fatal - 1) : fatal + 1])


def _is_git(root: Path) -> bool:
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--is-inside-work-tree"],
        capture_output=True,
        check=False,
        timeout=30,
    )
    return done.returncode == 0


def commit_at(root: Path, ref: str, *, clone: bool, key: str = "--suite-ref") -> str:
    """Return the full id of the commit that a ref names.

    Args:
        clone: whether the folder is a managed clone.
        key: the option or setting, for messages.

    Raises:
        ConfigError: unknown ref, or the suite is not a git checkout.
    """
    if not _is_git(root):
        raise ConfigError("the suite is not a git checkout, so it has no refs", key=key, found=ref)
    # In a managed clone, branches are the server's; a local branch dates from the creation of the clone.
    if clone and _FULL_COMMIT.fullmatch(ref) and not _has_commit(root, ref):
        # Commits outside the server's branches, as of pull requests from forks, are fetched explicitly.
        with contextlib.suppress(InfraError):
            git(root, "fetch", "--quiet", "origin", ref, network=True)
    for name in (f"origin/{ref}", ref) if clone else (ref,):
        try:
            arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            return git(root, *arguments).decode().strip()
        except ConfigError:
            continue
    raise ConfigError(
        "the suite has no such ref", key=key, found=ref, expected=f"a branch, tag or commit of {root}"
    )


def files_at(root: Path, ref: str, *, clone: bool, top: str = ".") -> tuple[Files, str]:
    """Return the files of the suite at a ref (name relative to the root -> content) and the full commit id.

    Args:
        top: the folder whose files are returned, relative to the root.
    """
    commit = commit_at(root, ref, clone=clone)
    own = git(root, "rev-parse", "--show-prefix").decode().strip()
    prefix = posixpath.normpath(posixpath.join(own, top)).removeprefix(".")
    try:
        # From the top level: in a subfolder, git archive would apply the subfolder twice.
        toplevel = Path(git(root, "rev-parse", "--show-toplevel").decode().strip())
        tar = git(toplevel, "archive", "--format=tar", f"{commit}:{prefix}")
    except ConfigError as error:
        raise ConfigError(
            f"the suite's folder {prefix or '.'} does not exist at that ref", key="--suite-ref", found=ref
        ) from error
    files: Files = {}
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            name = _from_root(member.name, own, prefix)
            if content is not None:
                files[name] = Entry(content.read(), bool(member.mode & 0o100))
            elif member.issym():
                files[name] = Entry(b"", link=member.linkname)
    return files, commit


def _files_now(root: Path, suite: Suite) -> tuple[Files, str]:
    """Return the files of the working tree: tracked and not ignored ones; outside git all but caches."""
    commit = ""
    if suite.git:
        head = git(root, "rev-parse", "--abbrev-ref", "origin/HEAD").decode().strip()
        return files_at(root, head, clone=False, top=suite.top)
    top = Path(os.path.normpath(root / suite.top))
    if _is_git(root):
        names = git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
        commit = git(root, "rev-parse", "--quiet", "--verify", "HEAD").decode().strip() if _has_head(root) else ""
        if git(top, "status", "--porcelain", "--", ".").strip():
            commit += "+local"
    else:
        names = [str(path.relative_to(top)) for path in sorted(top.rglob("*"))]
    files: Files = {}
    for name in names:
        path = top / name
        skipped = any(f"/{name}/".startswith(f"/{part}/") or f"/{part}/" in f"/{name}/" for part in _NEVER)
        if not name or skipped:
            continue
        inside = _from_root(name, suite.below)
        if path.is_symlink():
            files[inside] = Entry(b"", link=str(path.readlink()))
        elif path.is_file():
            files[inside] = Entry(path.read_bytes(), bool(path.stat().st_mode & 0o100))
    if not files:
        raise ConfigError("the suite's folder is empty", key=f"suites/{suite.name}.yaml", found=str(root))
    return files, commit


def _from_root(name: str, root: str, top: str = "") -> str:
    """Return a path below `top` as one relative to `root`; both are relative to the same folder."""
    return name if root.strip("/") == top.strip("/") else posixpath.relpath(posixpath.join(top, name), root)


def _has_commit(root: Path, commit: str) -> bool:
    try:
        git(root, "cat-file", "-e", f"{commit}^{{commit}}")
    except ConfigError:
        return False
    return True


def _has_head(root: Path) -> bool:
    try:
        return bool(git(root, "rev-parse", "--quiet", "--verify", "HEAD"))
    except ConfigError:
        return False


def _pack(files: Files, below: str) -> bytes:
    """Return a tar.gz that is identical for identical files: sorted, without owners and times.

    Args:
        below: the suite's root in the archive.
    """
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(files):
            entry = files[name]
            member = tarfile.TarInfo(posixpath.normpath(posixpath.join(below, name)))
            member.mtime, member.mode = 0, 0o755 if entry.executable else 0o644
            if entry.link:
                member.type, member.linkname = tarfile.SYMTYPE, entry.link
            else:
                member.size = len(entry.data)
            archive.addfile(member, io.BytesIO(entry.data))
    return gzip.compress(raw.getvalue(), compresslevel=6, mtime=0)
