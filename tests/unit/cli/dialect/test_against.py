"""`tipcflow dialect check --against`: the dialect's commands and those of a script."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tipcflow.cli.dialect.against import first_difference
from tipcflow.cli.dialect.sandbox import Recorded
from tipcflow.params import load_dialect
from tipcflow.plan import plan_commands

INPUT = Path(__file__).parents[3] / "golden" / "plan" / "inputs" / "short_fleet.txt"
DIALECT, MODE = "models/mobilenetv3_prod", "lite_train_lite_infer"
PARAMS = "test_tipc/configs/net/train_infer_python.txt"


def suite(folder: Path, change: Callable[[list[str]], None] = lambda lines: None) -> Path:
    """A suite whose script runs the dialect's commands for a params file, except for a change."""
    (folder / PARAMS).parent.mkdir(parents=True)
    (folder / PARAMS).write_text(INPUT.read_text())
    lines = []
    for one in plan_commands(INPUT.read_text(), file=PARAMS, dialect=load_dialect(DIALECT), mode=MODE):
        cuda = one.env.get("CUDA_VISIBLE_DEVICES")
        before = "unset CUDA_VISIBLE_DEVICES" if cuda is None else f"export CUDA_VISIBLE_DEVICES={cuda}"
        text = one.text.replace("$ROOT", "$PWD")
        folders = " ".join(Path(log).parent.as_posix() for log in re.findall(r"> (\S+)", text))
        lines.append(f"mkdir -p {folders or '.'}; {before}; (cd {one.cwd} && eval {shlex.quote(text)} >/dev/null)")
    change(lines)
    (folder / "test_tipc" / "test_train_inference_python.sh").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.process
def test_equal_commands_pass_the_check(tipcflow: Callable[..., Any], tmp_path: Path) -> None:
    done = tipcflow("dialect", "check", DIALECT, "--against", str(suite(tmp_path)))
    assert done.code == 0, done.err
    assert f"{PARAMS}  {MODE}: 5 commands, equal" in done.out
    assert done.out.endswith("1 of 1 runs of the script have the commands of the dialect\n")


@pytest.mark.process
def test_the_first_difference_is_shown(tipcflow: Callable[..., Any], tmp_path: Path) -> None:
    def change(lines: list[str]) -> None:
        lines[1] = lines[1].replace("2>&1", "2>/dev/null", 1)

    root = suite(tmp_path, change)
    done = tipcflow("dialect", "check", DIALECT, PARAMS, "--against", str(root), "--mode", MODE)
    assert done.code == 1
    assert "differs: command 2 of 5\n  script   " in done.out
    assert "0 of 1 runs" in done.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--against", "/nowhere"], ["/nowhere", "--against", "no such folder", "the suite's folder"]),
        (["--mode", MODE], ["--mode", "requires --against"]),
        (
            ["--against", "{root}", "--script", "x.sh"],
            ["no such script", "x.sh", "test_train_inference_python.sh"],
        ),
        (["--against", "{root}", "--mode", "fast"], ["unknown mode", "fast", MODE]),
        (["no.txt", "--against", "{root}"], ["no.txt", "no such params file or folder"]),
    ],
)
def test_invalid_input_is_an_error(
    tipcflow: Callable[..., Any], tmp_path: Path, options: list[str], words: list[str]
) -> None:
    root = str(suite(tmp_path / "suite"))
    done = tipcflow("dialect", "check", DIALECT, *(each.replace("{root}", root) for each in options))
    assert done.code == 2
    assert [word for word in words if word not in done.err] == []


A, B = Recorded("python a.py  -x", ".", None), Recorded("python b.py", "deploy", "0")


@pytest.mark.parametrize(
    ("ran", "planned", "words"),
    [
        ([A], [Recorded(" python a.py -x ", ".", None)], ""),
        ([A, B], [A, Recorded(B.text, ".", "0")], "command 2 of 2, folder\n  script   deploy\n  dialect  ."),
        (
            [A, B],
            [A, Recorded(B.text, "deploy", None)],
            "command 2 of 2, CUDA_VISIBLE_DEVICES\n  script   '0'\n  dialect  not set",
        ),
        (
            [A],
            [A, B],
            "the script runs 1 commands, the dialect has 2; the first extra one\n  dialect  python b.py",
        ),
    ],
)
def test_first_difference_of_commands_is_named(ran: list[Recorded], planned: list[Recorded], words: str) -> None:
    assert first_difference(ran, planned) == words
