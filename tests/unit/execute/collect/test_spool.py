"""What a run reads of a log in bulk is what reading it line by line gives, whatever the log is made of."""

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.bulk import GOLDEN, LINES, redrawn

from tipcflow.domain import InfraError, LogLines, Measurement, Series
from tipcflow.execute.collect.log_reader import Deadline, Origin, read_numbers
from tipcflow.execute.collect.spool import Spool
from tipcflow.parse import lines_of, parse_ranks, parse_training, to_measurements
from tipcflow.parse.bulk.columns import Columns, batches
from tipcflow.parse.training.formats import FORMATS, line_formats

ORIGIN = Origin("r", "s", 1, "a", "a/log")


def flat(one: Series) -> Iterator[Measurement]:
    units, unit = dict(one.units), one.unit
    for at, value in enumerate(one.values.tolist()):
        unit = units.get(at, unit)
        yield Measurement(
            run=one.run, step=one.step, leg=one.leg, attempt=one.attempt, node=one.node, rank=one.rank,
            metric=one.metric, phase=one.phase, ordinal=at, value=value, unit=unit, source=one.source,
            epoch=one.epoch[at], iteration=one.iteration[at], offset=one.offset[at],
        )  # fmt: skip


def exactly(one: Measurement) -> tuple[object, ...]:
    value = "nan" if one.value != one.value else struct.pack("<d", one.value)
    return (one.rank, one.metric, one.phase, one.ordinal, value, one.unit, one.epoch, one.iteration, one.offset)


def by_line(data: bytes, form: str, rank: int = 3) -> list[tuple[object, ...]]:
    samples = parse_training(lines_of(data), form)
    return sorted(map(exactly, to_measurements(samples, run="r", step="s", node="a", rank=rank)), key=repr)


def in_bulk(data: bytes, form: str, folder: Path, *, piece: int = 1 << 16, in_memory: int = 1 << 30) -> object:
    with Spool(folder, rank=3, in_memory=in_memory) as spool:
        pieces = (data[at : at + piece] for at in range(0, len(data), piece))
        for batch in batches(pieces, Columns(line_formats(form))):
            spool.add(batch)
        found = [exactly(item) for one in spool.series() for item in flat(ORIGIN.series(one))]
    return sorted(found, key=repr)


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.log")))
@pytest.mark.parametrize("form", ["auto", *sorted(FORMATS)])
def test_bulk_and_single_lines_are_equal_for_every_sample_log(name: str, form: str, tmp_path: Path) -> None:
    data = (GOLDEN / name).read_bytes()
    assert in_bulk(data, form, tmp_path) == by_line(data, form)
    assert in_bulk(data, form, tmp_path, piece=700, in_memory=0) == by_line(data, form), "spilled to files"


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.integers(1, 3000), st.sampled_from([0, 5000, 1 << 30]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_mixes_of_lines(tmp_path: Path, rng: random.Random, piece: int, in_memory: int) -> None:
    chosen = [line for line in rng.choices(LINES, k=rng.randint(1, 6)) if line.count(b": ") < 100]
    data = b"\n".join(redrawn(rng.choice(chosen or LINES), rng) for _ in range(rng.randint(1, 60)))
    assert in_bulk(data, "auto", tmp_path, piece=piece, in_memory=in_memory) == by_line(data, "auto")


def test_a_metric_that_changes_its_unit(tmp_path: Path) -> None:
    data = b"".join(
        b"[Epoch 1, iter: %d] loss: 1.5, batch_cost: %d %s\n" % (at, at, (b"s", b"ms")[at % 3 == 0])
        for at in range(200)
    )
    assert {row[5] for row in by_line(data, "models")} == {"", "s", "ms"}
    for in_memory in (0, 1 << 30):
        assert in_bulk(data, "models", tmp_path, piece=1000, in_memory=in_memory) == by_line(data, "models")


def read(tmp_path: Path, text: bytes, form: str = "models", deadline: Deadline | None = None) -> list[Measurement]:
    folder = tmp_path / "step" / "a"
    path = folder / "files" / "log" / "workerlog.0"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    found: list[Measurement] = []

    def keep(several: Iterator[Series]) -> None:
        found.extend(item for one in several for item in flat(one))

    read_numbers(path, folder, ORIGIN, form, rank=0, deadline=deadline or Deadline(), keep=keep)
    return found


def line(at: int, loss: str) -> bytes:
    return f"[Epoch 1, iter: {at}] loss: {loss}\n".encode()


@pytest.mark.slow
def test_a_loss_behind_70_mb_is_read(tmp_path: Path) -> None:
    noise = b"I1122 08:00:00.000000  7 operator.cc:12] nothing to see here\n" * 16_000
    data = line(1, "0.5") + noise * 72 + line(2, "nan")
    assert len(data) > 70_000_000
    assert [repr(one.value) for one in read(tmp_path, data)] == ["0.5", "nan"]


@pytest.mark.parametrize("length", [100, 30_000, 3_000_000])
def test_a_training_line_behind_a_progress_bar_is_read(tmp_path: Path, length: int) -> None:
    bar = b"".join(b"\r%6d/999999 [=====>....]" % at for at in range(length // 25)) + b"\r"
    data = line(10, "0.5") + bar + line(20, "nan") + line(30, "0.25")
    assert [(one.iteration, repr(one.value)) for one in read(tmp_path, data)] == [
        (10, "0.5"),
        (20, "nan"),
        (30, "0.25"),
    ]


def test_a_bar_that_redraws_training_lines_counts_its_last_state(tmp_path: Path) -> None:
    bar = b"\r".join(line(at, f"0.{at}").strip() for at in range(1, 11))
    assert [(one.iteration, one.value) for one in read(tmp_path, bar + b"\n")] == [(10, 0.1)]


def test_non_finite_and_colored_numbers_are_read(tmp_path: Path) -> None:
    texts = ["nan", "inf", "-inf", "1e400", "-1e400", "NaN", "\x1b[31mnan\x1b[0m", "0.5\x1b[0m"]
    data = b"".join(line(at, text) for at, text in enumerate(texts)) * 40
    found = [repr(one.value) for one in read(tmp_path, data, "auto")]
    assert found == ["nan", "inf", "-inf", "inf", "-inf", "nan", "nan", "0.5"] * 40


def test_the_last_rank_line_speaks_for_the_process(tmp_path: Path) -> None:
    path = tmp_path / "a" / "files" / "workerlog.1"
    path.parent.mkdir(parents=True)
    text = (
        b"rank 0 of 2, backend gloo, device cpu, seed 1\n"
        + line(1, "2")
        + b"rank 1 of 2, backend gloo, device cpu, seed 2\n"
    )
    path.write_bytes(text)
    ranks, _ = read_numbers(path, tmp_path / "a", ORIGIN, "models", rank=1, deadline=Deadline(), keep=list)
    assert ranks == parse_ranks(text, node="a")


def test_recognised_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a" / "files" / "workerlog.0"
    path.parent.mkdir(parents=True)
    other = b"rank 0 of 1, backend gloo, device cpu, seed 1\n\n  \nstep 3 of 9: loss is now about 0.5 or so\n"
    path.write_bytes(line(1, "2") + other + line(2, "nan") + b"a warning\n")
    read = read_numbers(path, tmp_path / "a", ORIGIN, "auto", rank=0, deadline=Deadline(), keep=list)
    assert read.lines == LogLines(recognised=2, unknown=2)


def test_lines_of_an_earlier_attempt_are_not_counted(tmp_path: Path) -> None:
    folder = tmp_path / "step" / "a"
    earlier = tmp_path / "step~1" / "a" / "files" / "workerlog.0"
    path = folder / "files" / "workerlog.0"
    old = b"".join(line(at, "0.5") for at in range(1, 9)) + b"old warning\n"
    for where, text in ((earlier, old), (path, old + line(1, "0.5") + line(2, "0.4") + b"new warning\n")):
        where.parent.mkdir(parents=True)
        where.write_bytes(text)
    read = read_numbers(path, folder, ORIGIN, "auto", rank=0, deadline=Deadline(), keep=list)
    assert read.lines == LogLines(recognised=2, unknown=1)


def test_reading_has_a_deadline(tmp_path: Path) -> None:
    now = iter(range(0, 10_000, 100))
    with pytest.raises(InfraError, match=r"workerlog.0: read 4194304 of \d+ bytes within 250 s"):
        read(tmp_path, line(1, "2") * 400_000, deadline=Deadline(250, clock=lambda: next(now)))
