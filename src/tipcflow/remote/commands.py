"""All commands that are sent to nodes, as text. No other module quotes for a remote shell.

Each command is a simple command that every login shell parses alike; scripts are run by `/bin/sh -c`.
"""

import json
import posixpath
import shlex
from collections.abc import Mapping, Sequence

from tipcflow.domain import Node, StoppedBy
from tipcflow.remote import paths
from tipcflow.remote.containers import inside
from tipcflow.remote.helping import helper
from tipcflow.remote.slurm.commands import starter_name

_RUNNER = ("-I", "-S", "-X", "utf8")
SHIMS = ("python", "python3", "python3.7", "pip", "pip3", "pip3.7")

ARCHIVE_DAMAGED, NO_SUCH_FILE, NO_PYTHON = 65, 66, 67
"""Special exit codes of these commands: see `unpack`, `read_file` and `check_python`."""

# Deadlines on the node, seconds: longer than the controller waits for the response.
TRANSFER_S, ASKED_S, EVIDENCE_S, LONGER_S = 330.0, 90.0, 60.0, 90.0


def _words(*words: str) -> str:
    return " ".join(shlex.quote(word) for word in words)


def _script(text: str, *arguments: str) -> str:
    """Return a POSIX shell script with its arguments as "$1", "$2" …: no value is ever part of the script's
    text."""
    return _words("/bin/sh", "-c", text.strip(), "tipcflow", *arguments)


def make_workspace(node: Node) -> str:
    """Create the workspace and its folders, readable by their owner alone; fails if it is not writable."""
    return _script(
        """
set -eu
umask 077
mkdir -p "$1"
cd "$1"
mkdir -p bin suites runs jobs slots
: > .writable
rm .writable
""",
        node.workspace,
    )


def check_python(node: Node) -> str:
    """Print the interpreter's version; exits with NO_PYTHON and a reason if it cannot run the runner."""
    return _script(
        f"""
[ -x "$1" ] || {{ echo "$1: no such interpreter" >&2; exit {NO_PYTHON}; }}
exec "$1" -I -S -c 'import sys
if sys.version_info < (3, 7):
    sys.stderr.write("%s is Python %s, 3.7 is needed" % (sys.executable, sys.version.split()[0]))
    sys.exit({NO_PYTHON})
print(sys.version.split()[0])'
""",
        node.python,
    )


def has_file(path: str, sha256: str = "") -> str:
    """Succeed if the file exists; with a hash, if its content has that hash."""
    if not sha256:
        return _words("test", "-f", path)
    return _script(
        """
[ -f "$1" ] || exit 1
got=$(sha256sum < "$1")
[ "${got%% *}" = "$2" ]
""",
        path,
        sha256,
    )


def write_file(path: str, *, mode: int = 0o644, seconds: float = TRANSFER_S) -> str:
    """Write stdin to a file atomically; creates its folder if necessary.

    Args:
        seconds: deadline, because the node may not notice a lost connection.
    """
    text = """
set -eu
umask 077
folder=$(dirname -- "$1"; echo .)
folder=${folder%??}
mkdir -p -- "$folder"
temporary="$1.$$.tmp"
trap 'rm -f -- "$temporary"' EXIT
trap 'exit 1' TERM HUP INT
cat > "$temporary"
chmod "$2" -- "$temporary"
mv -f -- "$temporary" "$1"
trap - EXIT
"""
    words = ["/bin/sh", "-c", text.strip(), "tipcflow", path, f"{mode:o}"]
    return _words(*helper("upload", path, seconds, words))


def read_file(path: str, *, offset: int = 0, limit: int | None = None) -> str:
    """Print a file's bytes from `offset`, at most `limit`; exits with NO_SUCH_FILE if it does not exist."""
    take = 'tail -c "+$2" -- "$1"' + (' | head -c "$3"' if limit is not None else "")
    text = f'[ -f "$1" ] || {{ echo "$1: no such file" >&2; exit {NO_SUCH_FILE}; }}\n{take}'
    words = ["/bin/sh", "-c", text, "tipcflow", path, str(offset + 1), *([] if limit is None else [str(limit)])]
    return _words(*helper("fetch", path, TRANSFER_S, words))


def unpack(node: Node, run: str, sha256: str, *, below: str = "") -> str:
    """Create the run's root from the suite's archive, once; exits with ARCHIVE_DAMAGED if its hash is wrong.

    Args:
        below: the suite's root in the archive.
    """
    return _script(
        f"""
set -eu
archive=$1 want=$2 root=$3
if [ -d "$root" ] && [ "$(cat -- "$root.sha256" 2>/dev/null)" = "$want" ]; then exit 0; fi
got=$(sha256sum < "$archive")
if [ "${{got%% *}}" != "$want" ]; then
    echo "$archive: sha256 is ${{got%% *}}, not $want" >&2
    rm -f -- "$archive"
    exit {ARCHIVE_DAMAGED}
fi
rm -rf -- "$root" "$root.unpacking"
mkdir -p -- "$root.unpacking"
tar -xzof "$archive" -C "$root.unpacking"
mv -- "$root.unpacking" "$root"
{_link_root(node, run, below)}printf '%s\\n' "$want" > "$root.sha256"
""",
        paths.suite_archive(node, sha256),
        sha256,
        paths.run_top(node, run, below),
    )


def _link_root(node: Node, run: str, below: str) -> str:
    """Return the line that makes the run's root a link to the suite's root in the unpacked archive."""
    if not below:
        return ""
    target = posixpath.join(posixpath.basename(paths.run_top(node, run, below)), below)
    return f"ln -sfn -- {shlex.quote(target)} {shlex.quote(paths.run_root(node, run))}\n"


def inherit(
    node: Node,
    run: str,
    of: str,
    sha256: str,
    *,
    needs: Sequence[str] = (),
    without: Sequence[str] = (),
    below: str = "",
) -> str:
    """Create the run's root from another run's root, once; exits with NO_SUCH_FILE if that no longer exists.

    Files are hard links where possible, because data and checkpoints may be large.

    Args:
        of: the other run, of the same code.
        needs: files or globs relative to the root; at least one match of each is required.
        without: files that the run writes itself: the other run's files are not changed.
        below: the suite's root in the archive.
    """
    return _script(
        f"""
set -eu
from=$1 root=$2 want=$3 needs=$4
shift 4
if [ -d "$root" ] && [ "$(cat -- "$root.sha256" 2>/dev/null)" = "$want" ]; then exit 0; fi
if [ ! -d "$from" ] || [ "$(cat -- "$from.sha256" 2>/dev/null)" != "$want" ]; then
    echo "$from no longer exists" >&2
    exit {NO_SUCH_FILE}
fi
IFS=
while [ "$needs" -gt 0 ]; do
    found=
    for one in "$from"/$1; do if [ -e "$one" ]; then found=1; fi; done
    if [ -z "$found" ]; then
        echo "$from/$1 no longer exists" >&2
        exit {NO_SUCH_FILE}
    fi
    shift
    needs=$((needs - 1))
done
rm -rf -- "$root" "$root.unpacking"
mkdir -p -- "${{root%/*}}"
if ! cp -al -- "$from" "$root.unpacking" 2>/dev/null; then
    rm -rf -- "$root.unpacking"
    cp -a -- "$from" "$root.unpacking"
fi
for one; do rm -f -- "$root.unpacking/$one"; done
mv -- "$root.unpacking" "$root"
{_link_root(node, run, below)}printf '%s\\n' "$want" > "$root.sha256"
""",
        paths.run_top(node, of, below),
        paths.run_top(node, run, below),
        sha256,
        str(len(needs)),
        *(posixpath.join(below, path) for path in (*needs, *without)),
    )


def make_shims(node: Node, run: str, names: Sequence[str] = SHIMS) -> str:
    """Create `python`, `pip` … in the run's bin folder, which run the node's interpreter.

    They are scripts, because a symbolic link to a virtual environment's interpreter loses the environment.
    """
    interpreter = shlex.quote(node.step_python)
    lines = ["set -eu", 'mkdir -p -- "$1"', 'cd -- "$1"']
    for name in names:
        module = " -m pip" if name.startswith("pip") else ""
        body = shlex.quote(f'#!/bin/sh\nexec {interpreter}{module} "$@"\n')
        lines.append(f"printf %s {body} > {shlex.quote(name)}.tmp")
        lines.append(f"chmod 755 {shlex.quote(name)}.tmp; mv -f {shlex.quote(name)}.tmp {shlex.quote(name)}")
    return _script("\n".join(lines), paths.run_bin(node, run))


def make_download_shim(node: Node, run: str) -> str:
    """Create `wget` in the run's bin folder, which keeps files in the node's cache."""
    settings = {
        "TIPCFLOW_CACHE": node.cache_folder,
        "TIPCFLOW_MIRRORS": json.dumps(node.mirrors),
        "TIPCFLOW_RUN": paths.run_dir(node, run),
    }
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())
    words = _words(node.step_python, "-I", paths.runner_path(node), "wget")
    body = shlex.quote(f'#!/bin/sh\n{exports}exec {words} "$@"\n')
    lines = ["set -eu", 'mkdir -p -- "$1"', 'cd -- "$1"']
    lines += [f"printf %s {body} > wget.tmp", "chmod 755 wget.tmp; mv -f wget.tmp wget"]
    return _script("\n".join(lines), paths.run_bin(node, run))


def remove_run(node: Node, run: str) -> str:
    """Remove a run's folder and its job folders."""
    jobs = f"{node.workspace}/jobs/{paths.safe_name(run)}"
    return _words("rm", "-rf", "--", paths.run_dir(node, run), jobs)


def _runner(node: Node, *words: str, seconds: float = ASKED_S) -> str:
    runner = [node.python, *_RUNNER, paths.runner_path(node), *words]
    starter = starter_name(node) if words[0] in ("start", "begin") else ""
    return _words(*helper(words[0], words[1], seconds, runner, timed=False, starter=starter))


def start(node: Node, job: str) -> str:
    """Start the job of this folder, or find it running or ended; prints what `poll` prints."""
    return _runner(node, "start", job)


def begin(node: Node, job: str, *, seconds: float, resume: Mapping[str, int] | None = None) -> str:
    """As `start`, with the job specification on stdin, which is stored unless one exists; then as `watch`.

    Prints what `start` prints as an event `response`, then the job's events.
    """
    seen = json.dumps(dict(resume or {}), separators=(",", ":"))
    words = ["begin", job, "--for", f"{seconds:g}", "--resume", seen, "--files"]
    return _runner(node, *words, seconds=seconds + ASKED_S + LONGER_S)


def poll(node: Node, job: str) -> str:
    """Print the job's state, heartbeat, exit record and legs; renews its node lease."""
    return _runner(node, "poll", job)


def go(node: Node, job: str) -> str:
    """Let a staged job start its commands."""
    return _runner(node, "go", job)


def stop(node: Node, job: str, reason: str, by: StoppedBy) -> str:
    """Request the end of the job from its runner."""
    return _runner(node, "stop", job, reason, "--by", by.value)


def report_peers(node: Node, job: str, *, active: bool) -> str:
    """Report to the runner of a silent job whether its peers make progress: then its silence is not a hang."""
    return _runner(node, "peers", job, "active" if active else "silent")


def finish(node: Node, job: str) -> str:
    """Request the end of the job's parameter servers: the trainers of all nodes have succeeded."""
    return _runner(node, "finish", job)


def evidence(node: Node, job: str) -> str:
    """Print the evidence of a running job that may hang, as one JSON object of at most 256 KiB.

    It contains log progress, stacks of Python processes, sockets, kernel messages and GPU state, and takes up to
    40 s. The job keeps running; without py-spy its stacks appear in its logs. Renews the node lease.
    """
    return _runner(node, "evidence", job, seconds=EVIDENCE_S)


def watch(
    node: Node, job: str, *, seconds: float, resume: Mapping[str, int] | None = None, files: bool = False
) -> str:
    """Print the job's events as JSON lines, for at most `seconds`; renews its node lease.

    Args:
        resume: leg -> number of log bytes that the controller has.
        files: also print the small files that the job leaves, before its end.
    """
    seen = json.dumps(dict(resume or {}), separators=(",", ":"))
    words = ["watch", job, "--for", f"{seconds:g}", "--resume", seen, *(["--files"] if files else [])]
    return _runner(node, *words, seconds=seconds + LONGER_S)


def list_ours(node: Node) -> str:
    """Print every process with this workspace's mark, and every job folder with its state."""
    return _runner(node, "list", node.workspace)


def reap(
    node: Node,
    *,
    job: str = "",
    living: bool = False,
    helpers: bool = False,
    by: StoppedBy = StoppedBy.CONTROLLER,
) -> str:
    """End the processes of jobs that have ended.

    Args:
        job: `run/step/attempt`: only this job, even if it is running.
        living: all jobs of the workspace, including running ones.
        helpers: instead of jobs, only abandoned commands of controllers.
        by: initiator for jobs that are still running.
    """
    words = ["--job", job] if job else ["--living"] if living else ["--helpers"] if helpers else []
    who = [] if by is StoppedBy.CONTROLLER else ["--by", by.value]
    return _runner(node, "reap", node.workspace, *words, *who, seconds=ASKED_S + LONGER_S)


def facts(node: Node, peers: Mapping[str, str], *, port: int = 22) -> str:
    """Print the facts of the node, or of its container if it has one, because steps run there.

    Args:
        peers: name -> address (or address:port) of the nodes that it must reach.
        port: ssh port of peers whose address names none.
    """
    addresses = ",".join(f"{name}={address}" for name, address in peers.items())
    words = ["facts", node.workspace, "--python", node.step_python, "--peers", addresses, "--port", str(port)]
    return _words(*inside(node, [node.step_python, *_RUNNER, paths.runner_path(node), *words]))
