"""Evidence of all nodes: late evidence is left out, of the result and of the folder."""

import json
import threading
from pathlib import Path
from typing import Any

from tipcflow.domain import InfraError, JobSpec
from tipcflow.execute.job.evidence import EVIDENCE, gather, gathered
from tipcflow.execute.job.member import Member

SEEN = {"why": "hang", "message": "no progress"}


class Asked:
    """A session that returns once it is released."""

    def __init__(self, *, late: bool = False, away: bool = False) -> None:
        self.may, self.done, self.away = threading.Event(), threading.Event(), away
        if not late:
            self.may.set()

    def evidence(self, spec: JobSpec, seconds: float) -> dict[str, Any]:
        assert self.may.wait(60)
        if self.away:
            raise InfraError("it does not respond")
        return SEEN


class Part:
    """The part of a member that the collection of evidence uses."""

    spec = None

    def __init__(self, name: str, session: Asked) -> None:
        self.name, self.session = name, session


def ask(folder: Path, *members: Part, seconds: float = 0.3) -> dict[str, str]:
    made: list[Member] = list(members)  # type: ignore[arg-type]
    return gather(made, folder, seconds=seconds)


def test_every_node_is_queried_and_silent_nodes_are_named(tmp_path: Path) -> None:
    parts = [Part("a", Asked()), Part("b", Asked(away=True))]
    assert ask(tmp_path, *parts, seconds=60) == {"b": "it does not respond"}
    seen, files = gathered(tmp_path, ["a", "b"])
    assert seen == {"a": SEEN}
    assert files == [tmp_path / "a" / EVIDENCE]


def test_late_evidence_is_not_written(tmp_path: Path) -> None:
    """The folder may be the next attempt's by then."""
    late = Asked(late=True)
    before = set(threading.enumerate())
    assert ask(tmp_path, Part("a", Asked()), Part("b", late)) == {"b": "no response within 0.3 s"}
    left = [thread for thread in threading.enumerate() if thread not in before]
    late.may.set()
    for thread in left:
        thread.join(60)
    assert not (tmp_path / "b").exists()
    assert json.loads((tmp_path / "a" / EVIDENCE).read_text()) == SEEN
