"""The node runner as one file: a zip archive that Python runs as it is."""

import functools
import hashlib
import io
import zipfile
from importlib import resources

_MAIN = "from runner.main import main\n\nmain()\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@functools.cache
def runner_bytes() -> bytes:
    """The file that is put on every node: equal bytes for equal sources; not compressed, so it can be read."""
    folder = resources.files("tipcflow.remote") / "runner"
    sources = {f"runner/{item.name}": item.read_bytes() for item in folder.iterdir() if item.name.endswith(".py")}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in [("__main__.py", _MAIN.encode()), *sorted(sources.items())]:
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return buffer.getvalue()


def runner_name() -> str:
    """Its file name on the node, by content: `runner-<12 hexadecimal digits>.pyz`."""
    return f"runner-{hashlib.sha256(runner_bytes()).hexdigest()[:12]}.pyz"
