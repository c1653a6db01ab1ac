"""Reasons about missing evidence quote the step's log."""

from pathlib import Path

import pytest
from tests.support.stories import INFER, a_run, open_store, record_run

from tipcflow.check.evidence.result import NAME
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import CheckResult, Status
from tipcflow.execute.collect.folders import step_folder
from tipcflow.execute.verdict.judge import judge_run
from tipcflow.execute.verdict.log_errors import with_log_errors

SHORT = "rank 0 logged 1 of 2 epochs"
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
PROGRESS = "[Epoch 1, iter: 5] loss: 0.5\n"


def reason(home: Path, logs: dict[str, str], **fields: object) -> str:
    for name, text in logs.items():
        path = step_folder(home, "r", "v/train") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    result = CheckResult(check=NAME, status=Status.FAILED, reason=SHORT, step="v/train")
    return with_log_errors([result.model_copy(update=fields)], "r", home)[0].reason


@pytest.mark.parametrize(
    ("logs", "error"),
    [
        (
            {"a/logs/main.log": f"{PROGRESS}{TRACEBACK}RuntimeError: CUDA error: out of memory\n"},
            "RuntimeError: CUDA error: out of memory",
        ),
        (
            {
                "a/logs/main.log": f"{TRACEBACK}ValueError: of the launcher\n",
                "a/logs/workerlog.0": f"{TRACEBACK}ValueError: of the rank\n",
            },
            "ValueError: of the rank",
        ),
        (
            {
                "a/logs/main.log": f"{PROGRESS}",
                "b/logs/main.log": f"ERROR: no data at https://x/?token=SECRET123\n{PROGRESS}",
            },
            "ERROR: no data at https://x/?token=***",
        ),
    ],
)
def test_reason_of_a_short_training_quotes_the_last_error(
    tmp_path: Path, logs: dict[str, str], error: str
) -> None:
    assert reason(tmp_path, logs) == f"{SHORT}; last error in the log: {error}"


@pytest.mark.parametrize("fields", [{"status": Status.INFRA_FAILURE}, {"check": "ran.training"}, {"step": ""}])
def test_other_reasons_quote_no_log(tmp_path: Path, fields: dict[str, object]) -> None:
    assert reason(tmp_path, {"a/logs/main.log": f"{TRACEBACK}ValueError: x\n"}, **fields) == SHORT


def test_log_without_an_error_is_not_quoted(tmp_path: Path) -> None:
    assert reason(tmp_path, {"a/logs/main.log": PROGRESS}) == SHORT
    assert reason(tmp_path / "none", {}) == SHORT


def test_the_stored_reason_of_a_run_quotes_its_log(tmp_path: Path) -> None:
    path = step_folder(tmp_path, "r", INFER) / "node-a" / "logs" / "main.log"
    path.parent.mkdir(parents=True)
    path.write_text(f"{TRACEBACK}RuntimeError: CUDA error: out of memory\n")
    with open_store(tmp_path / "own.db") as store:
        run = record_run(store, a_run("r"))
        judge_run(store, run.id, rules=Policy(name="p"), references=References(suite="s"), home=tmp_path)
        reasons = [result.reason for result in store.checks.results(run.id) if result.check == NAME]
    assert reasons[0].endswith("; last error in the log: RuntimeError: CUDA error: out of memory")
