from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tipcflow.domain import Phase
from tipcflow.execute.collect.deduplicate import own_start
from tipcflow.execute.collect.log_archive import compress_logs
from tipcflow.execute.collect.spool import Logged
from tipcflow.parse import Sample, lines_of, parse_training

FIRST = [(1, 0, 2.5), (1, 10, 2.4), (1, 20, 2.3)]
EVAL = " * Acc@1 0.833 Acc@5 4.167\n"


def own_samples(samples: list[Sample], path: Path, folder: Path) -> list[Sample]:
    """Those of the samples that belong to the attempt itself."""
    keys = {(one.metric, one.phase, one.rank): one.unit for one in samples}

    def logged() -> Iterator[Logged]:
        for (metric, phase, rank), unit in keys.items():
            mine = [one for one in samples if (one.metric, one.phase, one.rank) == (metric, phase, rank)]
            columns = (np.array([getattr(one, name) for one in mine]) for name in ("epoch", "iteration", "offset"))
            values = np.array([one.value for one in mine])
            yield Logged(metric, phase, rank, values, *columns, units=((0, unit),))

    start = own_start(logged, path, folder)
    return [one for one in samples if one.offset >= start]


def _log(lines: list[tuple[int, int, float]]) -> str:
    return "".join(f"[Epoch {epoch}, iter: {at}] loss: {value}\n" for epoch, at, value in lines)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a step's second attempt on one node; the first was put aside."""
    own = tmp_path / "a[b]%2Ftrain" / "node-a"
    for path in (own, tmp_path / "a[b]%2Ftrain~1" / "node-a"):
        (path / "files").mkdir(parents=True)
    (tmp_path / "a[b]%2Ftrain~1" / "node-a" / "files" / "train.log").write_text("header\n" + _log(FIRST))
    return own


def _earlier(folder: Path) -> Path:
    return folder.parents[1] / "a[b]%2Ftrain~1" / "node-a" / "files" / "train.log"


def _losses(folder: Path, text: str) -> list[float]:
    path = folder / "files" / "train.log"
    path.write_text(text)
    samples = list(parse_training(lines_of(text), "models"))
    return [one.value for one in own_samples(samples, path, folder) if one.metric == "loss"]


def test_lines_that_an_earlier_attempt_appended_are_left_out(folder: Path) -> None:
    again = [(1, 0, 2.6), (1, 10, 2.2), (1, 20, 2.1), (1, 30, 2.0)]
    assert _losses(folder, "header\n" + _log(FIRST) + "header\n" + _log(again)) == [2.6, 2.2, 2.1, 2.0]


def test_the_earlier_log_may_be_compressed_by_now(folder: Path) -> None:
    compress_logs(folder.parents[1], least=0)
    assert _losses(folder, "header\n" + _log(FIRST) + _log(FIRST)) == [2.5, 2.4, 2.3]


def test_attempt_resumed_from_a_checkpoint_counts_its_own_values(folder: Path) -> None:
    assert _losses(folder, "header\n" + _log(FIRST) + _log([(1, 10, 2.4), (1, 20, 2.2)])) == [2.4, 2.2]


def test_attempt_with_a_single_line_is_skipped(folder: Path) -> None:
    _earlier(folder).write_text(_log(FIRST[:1]))
    assert _losses(folder, _log(FIRST[:1]) + "header\n" + _log(FIRST)) == [2.5, 2.4, 2.3]


def test_attempt_that_ended_within_a_line_is_skipped(folder: Path) -> None:
    torn = _log(FIRST)[:-3]
    _earlier(folder).write_text(torn)
    assert _losses(folder, torn + "\n" + _log(FIRST)) == [2.5, 2.4, 2.3]


def test_an_iteration_in_two_lines_continues(folder: Path) -> None:
    """The earlier log ends between them; it was overwritten, not appended to."""
    lines = _log(FIRST[:1]), "[Epoch 1, iter: 0] ips: 7.0\n", _log(FIRST[1:])
    _earlier(folder).write_text(lines[0])
    assert _losses(folder, "".join(lines)) == [2.5, 2.4, 2.3]
    _earlier(folder).write_text(lines[0] + lines[1])
    assert _losses(folder, lines[0] + lines[1] + "".join(lines)) == [2.5, 2.4, 2.3]


def test_epochs_decide_without_iterations(folder: Path) -> None:
    path = folder / "files" / "train.log"

    def samples(text: str) -> list[float]:
        path.write_text(text)
        rows = [row.split() for row in text.splitlines()]
        offsets = [len("".join(text.splitlines(True)[:number])) for number in range(len(rows))]
        found = [
            Sample("loss", float(value), "", Phase.TRAIN, epoch=int(epoch), offset=offset)
            for (epoch, value), offset in zip(rows, offsets, strict=True)
        ]
        return [one.value for one in own_samples(found, path, folder)]

    _earlier(folder).write_text("1 2.5\n2 2.4\n")
    assert samples("1 2.5\n2 2.4\n1 2.6\n2 2.2\n") == [2.6, 2.2]
    assert samples("1 2.5\n2 2.4\n2 2.6\n") == [2.6], "resumed"
    assert samples("1 2.5\n2 2.4\n3 2.3\n") == [2.5, 2.4, 2.3], "overwritten"


class Lines:
    """A log of one line per sample, all lines of the same length."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "files" / "train.log"
        self.folder = folder

    def own(self, earlier: list[tuple[int, int, int]], now: list[tuple[int, int, int]]) -> int:
        """How many of the samples (epoch, iteration, rank) of now count."""
        _earlier(self.folder).write_text(self.text(earlier))
        self.path.write_text(self.text(now))
        length = len(self.text(now[:1]))
        samples = [
            Sample("loss", 1.0, "", Phase.TRAIN, epoch=epoch, iteration=at, rank=rank, offset=number * length)
            for number, (epoch, at, rank) in enumerate(now)
        ]
        return len(own_samples(samples, self.path, self.folder))

    @staticmethod
    def text(rows: list[tuple[int, int, int]]) -> str:
        return "".join(f"{epoch:6} {at:6} {rank:6}\n" for epoch, at, rank in rows)


@pytest.mark.parametrize("cut", range(1, 12))
@pytest.mark.parametrize("named", [True, False])
def test_two_ranks_can_share_an_overwritten_log(folder: Path, cut: int, named: bool) -> None:
    """Wherever the earlier attempt died: also between two ranks' lines of one iteration."""
    rows = [(1, at, rank if named else -1) for at in range(6) for rank in range(2)]
    assert Lines(folder).own(rows[:cut], rows) == 12


@pytest.mark.parametrize("cut", range(2, 12))
def test_two_ranks_in_one_log_that_was_appended_to(folder: Path, cut: int) -> None:
    rows = [(1, at, rank) for at in range(6) for rank in range(2)]
    assert Lines(folder).own(rows[:cut], rows[:cut] + rows) == 12
    assert Lines(folder).own(rows[:cut], rows[:cut] + rows[cut - 1 :]) == 13 - cut, "resumed"


@pytest.mark.parametrize("cut", range(1, 12))
def test_an_epoch_can_have_several_lines_without_iterations(folder: Path, cut: int) -> None:
    rows = [(epoch, -1, -1) for epoch in range(3) for _ in range(4)]
    assert Lines(folder).own(rows[:cut], rows) == 12, "overwritten"
    if cut > 4:
        assert Lines(folder).own(rows[:cut], rows[:cut] + rows) == 12, "appended to"
    else:
        assert Lines(folder).own(rows[:cut], rows[:cut] + rows) == cut + 12, "it cannot be told: all of it counts"


def test_a_log_can_contain_two_earlier_attempts(folder: Path) -> None:
    second = folder.parents[1] / "a[b]%2Ftrain~2" / "node-a" / "files"
    second.mkdir(parents=True)
    (second / "train.log").write_text("header\n" + _log(FIRST) + _log(FIRST[:2]))
    third = [(1, 0, 2.9), (1, 10, 2.8)]
    assert _losses(folder, "header\n" + _log(FIRST) + _log(FIRST[:2]) + _log(third)) == [2.9, 2.8]


def test_an_overwritten_log_counts_completely(folder: Path) -> None:
    """A deterministic training: the second one begins like the first, and continues."""
    assert _losses(folder, "header\n" + _log([*FIRST, (1, 30, 2.2)])) == [2.5, 2.4, 2.3, 2.2]
    assert _losses(folder, "header\n" + _log(FIRST) + EVAL + _log([(2, 0, 2.2)])) == [2.5, 2.4, 2.3, 2.2]
    assert _losses(folder, "header\n" + _log(FIRST)) == [2.5, 2.4, 2.3]
    assert _losses(folder, "other\n" + _log(FIRST) + _log(FIRST)) == [2.5, 2.4, 2.3] * 2


def test_a_first_attempt_counts_whole(folder: Path) -> None:
    (folder.parents[1] / "a[b]%2Ftrain~1" / "node-a" / "files" / "train.log").unlink()
    assert _losses(folder, _log(FIRST) + _log(FIRST)) == [2.5, 2.4, 2.3] * 2
