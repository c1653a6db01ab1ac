"""Whose log tells why: these are what Paddle 3.3.1 wrote when one of two ranks on a node failed."""

from pathlib import Path

import pytest

from tipcflow.domain import EndReason, ExitRecord, FailureClass
from tipcflow.execute.classify import class_of
from tipcflow.execute.telling import Telling, telling

LOGS = Path(__file__).parents[2] / "golden" / "parse" / "failures"


def read(what: str, *, blamed: str = "") -> Telling:
    """`blamed`: whom the launcher blames instead: it depends on whose end it notices first."""
    folder = LOGS / what
    output = (folder / "output.log").read_text()
    if blamed:
        lines = output.splitlines(keepends=True)
        found = next(line for line in lines if line.startswith("Container rank"))
        output = output.replace(found, f"Container rank 0 status failed cmd ['x'] code 1 log {blamed}\n")
    workers = {rank: (folder / f"workerlog.{rank}").read_text() for rank in (0, 1)}
    return telling(output, {2 + rank: text for rank, text in workers.items()}, 2)


def kind_of(told: Telling, code: int = 1) -> FailureClass | None:
    record = ExitRecord(run="r", step="s", node="b", reason=EndReason.EXITED, exit_code=code)
    return class_of(record, told)


@pytest.mark.parametrize("blamed", ["", "log/workerlog.0"])
@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("raise", FailureClass.CODE_ERROR),
        ("kill", FailureClass.KILLED),
        ("segv", FailureClass.CODE_ERROR),
    ],
)
def test_the_rank_that_failed_by_itself_is_told_whomever_the_launcher_blames(
    what: str, kind: FailureClass, blamed: str
) -> None:
    told = read(what, blamed=blamed)
    assert (told.silent if told.silent >= 0 else told.rank) == 3
    assert not told.victim
    assert kind_of(told) is kind


def test_a_node_whose_ranks_all_say_that_a_peer_went_away_is_a_victim() -> None:
    victim = (LOGS / "kill" / "workerlog.0").read_text()
    told = telling("LAUNCH INFO 2026-11-21 16:04:36,220 Pod failed\n", {0: victim, 1: victim})
    assert told.victim
    for code in (1, 250, 241):
        assert kind_of(told, code) is FailureClass.COMMUNICATION


def test_without_workers_the_output_tells() -> None:
    told = telling("loading\nOSError: [Errno 28] No space left on device\n", {})
    assert (told.rank, kind_of(told)) == (-1, FailureClass.DISK)
    assert telling("", {}) == Telling()
