"""`sitecustomize` of a job's Python processes: stack dumps on a signal, the framework probe, and opened files.

PYTHONFAULTHANDLER is not sufficient: Paddle handles SIGABRT itself, and the process would end.
"""

from __future__ import annotations

import os
import signal

from . import opened_files
from .files import Json, load, save

NUMBER = signal.SIGRTMAX - 3  # unused: libraries and launchers use the first and the last real-time signals
PLACE = os.path.join("python", "reports")
MOST = 16
MAX_BYTES = 16 * 1024
WORDS = ("framework", "version", "script", "rank", "backend", "device", "dtype", "placed")
MOST_CLASSES = 512
NUMBERS = ("world_size", "steps", "static_runs", "parallel", "predictions", "dropped")
LISTS = ("first", "last", "saved", "loaded", "exported", "notes")
LONGEST, ENTRIES, GREATEST = 200, 320, 1 << 53
SOURCES = (
    ("opened_files", "tipcflow_opened"),
    ("probe_tensors", "tipcflow_tensors"),
    ("framework_probe", "tipcflow_probe"),
)
# Runs in every Python of the job, of any version; the environment's own module of that name runs, too.
HOOK = f"""# Written by tipcflow.
import sys


def probe():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    # Not imported: Paddle reads the file names of its callers' frames, and fails on a comma in the job's path.
    for name in ("tipcflow_opened", "tipcflow_tensors", "tipcflow_probe"):
        with open(os.path.join(here, name + ".py")) as source:
            code = compile(source.read(), "<" + name + ">", "exec")
        sys.modules[name] = module = type(sys)(name)
        exec(code, module.__dict__)
    module.install(os.path.join(here, "reports"))
    if ROOT:
        sys.modules["tipcflow_opened"].install(os.path.join(os.path.dirname(here), {opened_files.NAME!r}), ROOT)


def dump_on_signal():
    import _signal
    import faulthandler

    if _signal.getsignal({int(NUMBER)}) == _signal.SIG_DFL:
        faulthandler.register({int(NUMBER)}, all_threads=True)


def chain():
    import os

    here, ours = os.path.dirname(os.path.abspath(__file__)), sys.modules.pop(__name__)
    sys.path[:] = [place for place in sys.path if place != here]
    try:
        import sitecustomize  # the environment's own
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)


for part in (PARTS):
    try:
        part()
    except Exception:  # an old Python, no stderr: neither stacks nor a report
        pass
chain()
"""


def prepare(
    env: dict[str, str], folder: str, *, stacks: bool = True, probe: bool = False, source: str = ""
) -> None:
    """Change an environment so that its Python processes load the parts of tipcflow.

    Args:
        folder: the job's; no change if its path contains a colon, which would split the PYTHONPATH entry.
        stacks: the processes can dump their stacks on request.
        probe: they report what a framework does in them, and which files below `source` they open.
        source: the suite's folder; '' records no opened files.
    """
    place = os.path.join(folder, "python")
    if ":" in place or not (stacks or probe):
        return
    parts = "".join(name for name, wanted in (("dump_on_signal, ", stacks), ("probe, ", probe)) if wanted)
    try:
        os.makedirs(os.path.join(place, "reports"), exist_ok=True)
        if probe:
            for module, name in SOURCES:
                with open(os.path.join(os.path.dirname(__file__), f"{module}.py"), "rb") as handle:
                    text = handle.read().decode().replace("from .probe_tensors", "from tipcflow_tensors")
                save(os.path.join(place, f"{name}.py"), text)
        save(os.path.join(place, "sitecustomize.py"), HOOK.replace("PARTS", parts).replace("ROOT", repr(source)))
    except OSError:
        return
    env["PYTHONPATH"] = ":".join([place, *[part for part in [env.get("PYTHONPATH", "")] if part]])
    env["TIPCFLOW_PYTHON"] = place  # for a container, whose image may have its own PYTHONPATH
    if stacks:
        env["PYTHONFAULTHANDLER"] = env.get("PYTHONFAULTHANDLER") or "1"


def handles_signal(pid: int) -> bool:
    """Return whether the process handles the signal, which would end any other process."""
    try:
        with open(f"/proc/{pid}/status") as handle:
            caught = next(line for line in handle if line.startswith("SigCgt:"))
    except (OSError, StopIteration):
        return False
    return bool(int(caught.split()[1], 16) >> (NUMBER - 1) & 1)


def clear(folder: str) -> None:
    """Delete the reports of an earlier command."""
    place = os.path.join(folder, PLACE)
    try:
        for name in os.listdir(place):
            os.unlink(os.path.join(place, name))
    except OSError:
        pass  # no folder, or something that is not a report and is not read either


def collect(folder: str) -> list[Json]:
    """Return the reports, those of ranks first; what has no report's form is left out."""
    place = os.path.join(folder, PLACE)
    try:
        names = sorted(name for name in os.listdir(place) if name.endswith(".json"))[:1000]
    except OSError:
        return []
    found = []
    for name in names:
        try:
            small = os.stat(os.path.join(place, name)).st_size <= MAX_BYTES
        except OSError:
            continue
        report = load(os.path.join(place, name)) if small else None
        if isinstance(report, dict):
            found.append(clean(report))
    found.sort(key=lambda one: (not one["rank"], int(one["rank"] or 0), not one["steps"]))
    return found[:MOST]


def number(value: object) -> int:
    """Return a number of a report; 0 for anything else."""
    return value if isinstance(value, int) and 0 <= value < GREATEST else 0


def is_class(value: object) -> bool:
    """Whether a value of a report is a class, or -1 for an output without a single highest value."""
    return isinstance(value, int) and not isinstance(value, bool) and -1 <= value < GREATEST


def clean(report: Json) -> Json:
    """Return a report with the known fields only, each of its type and a limited size."""
    one: Json = {name: str(report.get(name) or "")[:LONGEST] for name in WORDS}
    one["rank"] = one["rank"] if one["rank"].isdigit() and len(one["rank"]) < 10 else ""
    one.update({name: number(report.get(name)) for name in NUMBERS}, initialized=report.get("initialized") is True)
    for name in LISTS:
        values = report.get(name)
        one[name] = [str(value)[:LONGEST] for value in values[:ENTRIES]] if isinstance(values, list) else []
    for name, values in (("collectives", [report.get("collectives")]), ("predictors", report.get("predictors"))):
        dicts = [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
        one[name] = [{str(key)[:40]: number(value[key]) for key in list(value)[:ENTRIES]} for value in dicts[:8]]
    one["collectives"] = one["collectives"][0] if one["collectives"] else {}
    classes = report.get("classes")
    valid = isinstance(classes, list) and len(classes) <= MOST_CLASSES and all(map(is_class, classes))
    one["classes"] = classes if valid else []
    return one
