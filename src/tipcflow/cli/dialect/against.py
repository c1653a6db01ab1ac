"""`tipcflow dialect check --against`: compares the dialect's commands with those that the suite's script runs."""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tipcflow.cli.dialect.sandbox import Recorded, Sandbox
from tipcflow.domain import ConfigError
from tipcflow.params import Dialect, parse_params
from tipcflow.params.modes import BENCHMARK
from tipcflow.plan import plan_commands
from tipcflow.plan.source.files import ListedFiles

# Names of the suites' scripts below test_tipc, by a dialect's family.
_SCRIPTS = {
    "": "test_train_inference_python.sh",
    "dy2static": "test_train_dy2static_python.sh",
    "paddle2onnx": "test_paddle2onnx.sh",
    "pipeline": "test_pipeline_infer_python.sh",
    "ptq": "test_ptq_inference_python.sh",
}
_PARAMS = "test_tipc/configs"


@dataclass(frozen=True)
class Comparison:
    """One params file in one mode.

    Attributes:
        commands: number of commands that the script ran.
        difference: the first difference; '' if all commands are equal.
    """

    params: str
    mode: str
    commands: int
    difference: str = ""


def check_against(
    dialect: Dialect,
    root: Path,
    *,
    params: Sequence[str],
    modes: Sequence[str],
    script: str,
    report: Callable[[Comparison], None],
) -> list[Comparison]:
    """Run the suite's script over params files and compare its commands with the dialect's.

    Args:
        root: the suite's folder, which contains `test_tipc`.
        params: files, and folders for the files in them that match the line map, relative to `root`; empty for
            test_tipc/configs.
        modes: empty for the dialect's first mode.
        script: path relative to `root`; '' for the known name of the dialect's script.
        report: receives each comparison.

    Raises:
        ConfigError: the folder, the script, a file or a mode does not exist, or the script does not end.
    """
    root = root.resolve()
    script = script or f"test_tipc/{_SCRIPTS.get(dialect.family, '')}"
    if not (root / script).is_file():
        scripts = sorted(path.name for path in (root / "test_tipc").glob("*.sh"))
        raise ConfigError(
            "no such script",
            file=str(root),
            key="--script",
            found=script,
            expected="a script of the suite, for example " + (", ".join(scripts) or "test_tipc/NAME.sh"),
        )
    chosen = _modes(dialect, modes)
    files = [file for name in params or [_PARAMS] for file in _files(dialect, root, name)]
    listed = ListedFiles([os.path.relpath(path, root) for path in root.rglob("*") if ".git" not in path.parts])
    made = []
    with tempfile.TemporaryDirectory(prefix="tipcflow-script-") as work:
        sandbox = Sandbox(root, Path(work))
        for name in files:
            text = (root / name).read_text(encoding="utf-8", errors="replace")
            for mode in chosen:
                planned = [
                    Recorded(command.text, command.cwd, command.env.get("CUDA_VISIBLE_DEVICES"))
                    for command in plan_commands(text, file=name, dialect=dialect, mode=mode, files=listed)
                ]
                ran = sandbox.run(script, name, mode)
                made.append(Comparison(name, mode, len(ran), first_difference(ran, planned)))
                report(made[-1])
    return made


def first_difference(ran: Sequence[Recorded], planned: Sequence[Recorded]) -> str:
    """Return how the first unequal command differs, in lines; '' if all are equal. Runs of spaces count as one."""
    for number, (real, ours) in enumerate(zip(ran, planned, strict=False), 1):
        for what, theirs, own in (
            ("command", _collapsed(real.text), _collapsed(ours.text)),
            ("folder", real.cwd, ours.cwd),
            ("CUDA_VISIBLE_DEVICES", _shown(real.cuda), _shown(ours.cuda)),
        ):
            if theirs != own:
                place = f"command {number} of {len(ran)}" + (f", {what}" if what != "command" else "")
                return f"{place}\n  script   {theirs}\n  dialect  {own}"
    if len(ran) == len(planned):
        return ""
    longer, whose = (ran, "script") if len(ran) > len(planned) else (planned, "dialect")
    extra = longer[min(len(ran), len(planned))]
    return (
        f"the script runs {len(ran)} commands, the dialect has {len(planned)}; the first extra one\n"
        f"  {whose:<8} {_collapsed(extra.text)}"
    )


def _collapsed(text: str) -> str:
    return re.sub(r"[ \t\n]+", " ", text).strip(" ")


def _shown(cuda: str | None) -> str:
    return "not set" if cuda is None else repr(cuda)


def _modes(dialect: Dialect, modes: Sequence[str]) -> list[str]:
    known = [mode for mode in dialect.run_modes if mode != BENCHMARK]
    wrong = next((mode for mode in modes if mode not in known), None)
    if wrong is not None:
        raise ConfigError("unknown mode", key="--mode", found=wrong, expected="one of " + ", ".join(known))
    return list(modes) or known[:1]


def _files(dialect: Dialect, root: Path, name: str) -> Iterator[str]:
    """Return a params file, relative to the suite's folder in which the script reads it; of a folder, the files
    that match the dialect's line map."""
    path = next((path for path in (root / name, Path(name)) if path.exists()), None)
    if path is None or not path.resolve().is_relative_to(root):
        raise ConfigError("no such params file or folder", file=name, expected=f"a path below {root}")
    if path.is_file():
        yield os.path.relpath(path.resolve(), root)
        return
    for file in sorted(path.resolve().rglob("*.txt")):
        inside = os.path.relpath(file, root)
        try:
            parse_params(file.read_text(encoding="utf-8", errors="replace"), file=inside, dialect=dialect)
        except ConfigError:
            continue
        yield inside
