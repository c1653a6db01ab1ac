"""Adds the last error in a step's logs to the reasons of checks: a script may print it and exit with 0."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tipcflow.check.evidence.result import NAME
from tipcflow.domain import CheckResult, Status
from tipcflow.domain.masking import mask
from tipcflow.execute.collect.collect import tail
from tipcflow.execute.collect.folders import step_folder
from tipcflow.parse.failures.excerpt import last_error
from tipcflow.parse.failures.failure import find_failure

_LONGEST = 300


def with_log_errors(results: Sequence[CheckResult], run: str, home: Path) -> tuple[CheckResult, ...]:
    """Return the results; those about missing evidence of a step that exited with 0 end with the last error in its
    logs, if there is one."""
    return tuple(
        result.model_copy(update={"reason": f"{result.reason}; last error in the log: {error}"})
        if result.check == NAME
        and result.status is Status.FAILED
        and result.step
        and (error := next(_errors(step_folder(home, run, result.step)), ""))
        else result
        for result in results
    )


def _errors(folder: Path) -> Iterator[str]:
    """Yield the last error of each log that has one, the logs of ranks first; not of legs, which are other
    processes."""
    for path in (*sorted(folder.rglob("workerlog.*")), *sorted(folder.rglob("main.log"))):
        node = folder / path.relative_to(folder).parts[0]
        text = tail(path, node)
        failure = find_failure(text)
        if error := failure.log_line if failure else last_error(text.splitlines()):
            yield mask(error.strip())[:_LONGEST]
