"""Names and files of a job folder."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import sys
from typing import Any, BinaryIO, Dict, cast

Json = Dict[str, Any]
PIECE = 65536  # bytes of log in one event; also reserved for records that a full disk must not prevent
RESERVED = "exit.json.reserved"  # space for the exit record, which is written into it and gets its name
SUMMARY = ("why", "message", "t", "complete", "logs", "files")  # fields of evidence.json that every poll returns
SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,=+-")


def safe_name(name: str) -> str:
    """Return a unique file name for any text: every unusual byte becomes %XX.

    Names longer than 200 bytes are truncated and end in '%-' and a hash.
    """
    text = "".join(chr(b) if chr(b) in SAFE else f"%{b:02X}" for b in name.encode("utf-8", "surrogateescape"))
    text = "%2E" + text[1:] if text.startswith(".") else text or "%"
    if len(text) > 200:
        import hashlib

        text = text[:150] + "%-" + hashlib.sha256(text.encode()).hexdigest()[:16]
    return text


def log_name(leg: str) -> str:
    """Return the log of a leg, relative to the job folder; leg '' is the only command of a step."""
    name = "main" if not leg else "%6Dain" if leg == "main" else safe_name(leg)
    return f"logs/{name}.log"


def job_id(spec: Json) -> str:
    """Return run, step and attempt, which every process of the job carries as TIPCFLOW_JOB."""
    return f"{spec['run']}/{spec['step']}/{spec['attempt']}"


def job_folder(workspace: str, job: str) -> str:
    """Return the folder of the job with that id."""
    # The same as `JobId.parse` of the controller, which no code on a node can import.
    run, rest = job.split("/", 1)
    step, attempt = rest.rsplit("/", 1)
    return "/".join([workspace, "jobs", safe_name(run), safe_name(step), attempt])


def kind_of(mode: int) -> str:
    """Return the type of a non-regular file, '' for a regular file."""
    if stat.S_ISREG(mode):
        return ""
    names = ((stat.S_ISFIFO, "FIFO"), (stat.S_ISSOCK, "socket"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    return next((name for test, name in names if test(mode)), "device")


def special(path: str) -> str:
    """Return why a file must not be opened: it is a FIFO, a socket or a device, or a link to one; '' for all
    others."""
    try:
        kind = kind_of(os.stat(path).st_mode)
    except OSError:
        return ""
    return "" if kind in ("", "folder") else f"not a regular file ({kind})"


def is_replaced(path: str) -> bool:
    """Return whether anything but a regular file is at the path of a log: a link, too, may lead to any file of the
    node."""
    try:
        return bool(kind_of(os.lstat(path).st_mode))
    except OSError:
        return False


def open_regular(path: str, *, follow: bool = True) -> BinaryIO:
    """Open a file for reading; never blocks.

    A command may put any file in the place of a log or an output. Opening a FIFO blocks until it has a
    writer; reading /dev/zero never ends.

    Args:
        follow: whether a link to a regular file counts as that file.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
    """
    found = os.stat(path) if follow else os.lstat(path)  # checked first: opening a FIFO would wake its writer
    if not kind_of(found.st_mode):
        extra = 0 if follow else os.O_NOFOLLOW
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | extra)
        found = os.fstat(file)  # the file may have been replaced meanwhile
        if not kind_of(found.st_mode):
            return os.fdopen(file, "rb")
        os.close(file)
    raise OSError(errno.EINVAL, f"not a regular file ({kind_of(found.st_mode)})", path)


def open_append(path: str) -> BinaryIO:
    """Open a file for appending, unbuffered; create it if necessary. Never blocks.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    file = os.open(path, flags, 0o666)
    if kind_of(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return cast("BinaryIO", os.fdopen(file, "ab", buffering=0))


def load(path: str) -> Any:
    """Return the file's JSON, None if it is missing or incomplete."""
    try:
        with open_regular(path) as handle:
            return json.loads(handle.read().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def save(path: str, text: str) -> None:
    """Write the text atomically."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as handle:
            handle.write(text.encode("utf-8", "surrogateescape"))
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def request_stop(folder: str, reason: str, by: str = "") -> None:
    """Request the end of a job from its runner: on a full disk without the reason, and as a last resort by
    SIGINT.

    Args:
        by: initiator: a value of `stopped_by` in the exit record.
    """
    path = os.path.join(folder, "stop")
    try:
        save(path, json.dumps({"reason": reason, "by": by}))
    except OSError:
        try:
            open_append(path).close()
        except OSError:
            pid = load(os.path.join(folder, "lock")) or 0
            if isinstance(pid, int) and pid > 1 and locked(folder):
                os.kill(pid, signal.SIGINT)


def lines(path: str, offset: int = 0, *, last: int = 1 << 62) -> tuple[list[Json], int]:
    """Return the complete JSON lines from `offset` on (incomplete lines are skipped), and the offset after
    them.

    Args:
        last: maximum number of bytes to read at the end of the file.
    """
    try:
        with open_regular(path) as handle:
            offset = max(offset, os.fstat(handle.fileno()).st_size - last)
            handle.seek(offset)
            data = handle.read()
    except OSError:
        return [], offset
    found, data = [], data[: data.rfind(b"\n") + 1]
    for line in data.splitlines():
        try:
            found.append(json.loads(line.decode("utf-8", "replace")))
        except ValueError:
            continue
    return found, offset + len(data)


def print_event(event: Json) -> None:
    """Print one JSON line on stdout."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def touch_lease(folder: str) -> None:
    """Renew the node lease of an existing job: a controller was connected."""
    path = os.path.join(folder, "lease")
    if os.path.isdir(folder):
        try:
            with open_append(path):
                os.utime(path)
        except OSError as error:
            sys.stderr.write(f"lease: {error}\n")


def locked(folder: str) -> bool:
    """Return whether a running runner (or a start in progress) holds the job folder."""
    try:
        with open_regular(os.path.join(folder, "lock")) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def has_ended(folder: str) -> bool:
    """Return whether the job's runner has written the exit record.

    The runner renames the space that it reserved into the record. While that space exists, an `exit.json` is that
    of another program.
    """
    record, reserved = (os.path.join(folder, name) for name in ("exit.json", RESERVED))
    return os.path.exists(record) and not os.path.exists(reserved)


def describe(folder: str) -> Json:
    """Return the state of a job.

    `state` is absent (never started), staging (locks are being acquired), staged (waiting for `go`),
    running, ended (the exit record exists) or lost (started, no exit record, runner dead).
    """
    held = locked(folder)  # checked first: a runner writes its exit record before it releases the lock
    beat = load(os.path.join(folder, "heartbeat.json"))
    record = load(os.path.join(folder, "exit.json")) if has_ended(folder) else None
    pid = load(os.path.join(folder, "lock")) or 0
    living = beat["state"] if beat else "staging"
    seen = load(os.path.join(folder, "evidence.json")) or {}
    return {
        "state": "ended" if record else living if held else "lost" if pid else "absent",
        "pid": pid,
        "heartbeat": beat,
        "record": record,
        "legs": lines(os.path.join(folder, "legs.jsonl"))[0],
        "artefacts": (load(os.path.join(folder, "artefacts.json")) or []) if record else [],
        "evidence": {
            key: seen[key] for key in ("why", "message", "t", "complete", "logs", "files") if key in seen
        },
    }
