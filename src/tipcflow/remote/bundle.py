"""The node runner as one Python file, built from the modules of `tipcflow.remote.runner`."""

import functools
import hashlib
from importlib import resources

from tipcflow.remote.runner.unmet import DISK, DISK_ERRORS, EXIT_CODES, NODE

# On its first run the file writes its modules into a folder next to it: Python caches compiled modules, and most
# calls of the runner take less time than compiling it. It runs on every Python version that the runner supports.
_HEAD = '''\
"""tipcflow's node runner: docs/reference/job-folder.md. Made from tipcflow.remote.runner; do not edit."""

import os
import sys

SOURCES = {}
'''
_TAIL = """
def unpack(home):
    \"\"\"Write the modules, all or none of them.\"\"\"
    aside = "%s.%d.tmp" % (home, os.getpid())
    try:
        os.makedirs(os.path.join(aside, "runner"))
        for name, text in SOURCES.items():
            with open(os.path.join(aside, "runner", name), "wb") as handle:
                handle.write(text.encode("utf-8"))
        os.rename(aside, home)
    except OSError as error:
        import shutil

        shutil.rmtree(aside, ignore_errors=True)
        if not os.path.isdir(home):  # else another call was quicker
            sys.stderr.write("cannot unpack the runner into %s: %s\\n" % (home, error.strerror))
            sys.exit(EXIT_DISK if error.errno in DISK_ERRORS else EXIT_NODE)


def whole(home):
    \"\"\"Whether the modules are there as they were written: after a loss of power they may be empty.\"\"\"
    try:
        for name, text in SOURCES.items():
            with open(os.path.join(home, "runner", name), "rb") as handle:
                if handle.read() != text.encode("utf-8"):
                    return False
    except OSError:
        return False
    return True


home = os.path.abspath(__file__)[: -len(".py")]
if os.path.isdir(home) and not whole(home):
    import shutil

    aside = "%s.%d.damaged" % (home, os.getpid())
    try:
        os.rename(home, aside)
    except OSError:
        pass  # another call was quicker
    shutil.rmtree(aside, ignore_errors=True)
if not os.path.isdir(home):
    unpack(home)
sys.path.insert(0, home)
from runner.main import main  # noqa: E402

main()
"""
_CODES = f"""
DISK_ERRORS = {DISK_ERRORS}
EXIT_DISK, EXIT_NODE = {EXIT_CODES[DISK]}, {EXIT_CODES[NODE]}
"""


@functools.cache
def runner_bytes() -> bytes:
    """Return the file that is installed on every node: equal bytes for equal sources."""
    folder = resources.files("tipcflow.remote") / "runner"
    texts = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".py")}
    parts = [_HEAD]
    for name, text in sorted(texts.items()):
        if "'''" in text:
            raise ValueError(f"{name} contains ''', which delimits it in the runner's file")
        parts.append(f"SOURCES[{name!r}] = r'''{text}'''\n")
    return "".join([*parts, _CODES, _TAIL]).encode()


def runner_name() -> str:
    """Return its file name on the node, derived from its content: `runner-<12 hexadecimal digits>.py`."""
    return f"runner-{hashlib.sha256(runner_bytes()).hexdigest()[:12]}.py"
