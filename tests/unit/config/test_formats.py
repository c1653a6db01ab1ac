"""Custom formats: errors in them are reported when they are loaded."""

from pathlib import Path

import pytest

from tipcflow.config.formats import definition, load_format
from tipcflow.config.suite import load_suite
from tipcflow.domain import ConfigError, Phase
from tipcflow.parse import Sample, last_training_line, lines_of, parse_training

PATTERN = r"step (?P<iteration>\d+) of epoch (?P<epoch>\d+): loss=(?P<loss>\S+) speed=(?P<ips>[0-9.]+)"
SAMPLE = "step 10 of epoch 1: loss=0.25 speed=120.5"


def write(folder: Path, pattern: str = PATTERN, sample: str = SAMPLE, more: str = "") -> Path:
    path = folder / "formats" / "tea.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"name: tea\nrules:\n  - pattern: '{pattern}'\n    sample: '{sample}'\n{more}")
    return path


def test_lines_of_an_own_format_are_read(tmp_path: Path) -> None:
    write(tmp_path, more="    units: {ips: cups/s}\n    pairs: true\n")
    form = definition("tea", tmp_path)
    log = "noise\nstep 3 of epoch 2: loss=nan speed=12.5 heat: 90 C\n"
    loss, ips, heat = parse_training(lines_of(log), form)
    assert (loss.metric, repr(loss.value), loss.epoch, loss.iteration, loss.offset) == ("loss", "nan", 2, 3, 6)
    assert ips == Sample("ips", 12.5, "cups/s", Phase.TRAIN, 2, 3, 6)
    assert (heat.metric, heat.value) == ("heat", 90.0)
    assert last_training_line(log, form).startswith("step 3")


def test_a_suite_brings_its_format_along(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "s.yaml").write_text("name: s\nfolder: .\ndialects: [models]\nlog_format: tea\n")
    form = load_suite("s", tmp_path).log_format
    (tmp_path / "formats" / "tea.yaml").unlink()
    assert [one.value for one in parse_training(lines_of(SAMPLE), form)] == [0.25, 120.5]


@pytest.mark.parametrize(
    ("pattern", "sample", "result"),
    [
        ("loss=(?P<loss>[0-9.+", SAMPLE, "is not a valid regular expression"),
        ("loss=([0-9.]+)", SAMPLE, "has no named group"),
        (r"step (?P<iteration>\d+)", SAMPLE, "names no metric"),
        ("cost=(?P<loss>[0-9.]+)", SAMPLE, "does not find its own sample"),
        (r"loss=(?P<loss>\S+ speed)", SAMPLE, "which is not a number"),
        (r"loss=(?P<loss>\S+) ((?P<x>\d+|\d+x)+)+$", "loss=0.25 1", "takes more than 0.1 s"),
        (r"(\w+\s?)*loss=(?P<loss>\d+)$", "foo bar loss=1", "takes more than 0.1 s"),
    ],
)
def test_errors_name_their_line(tmp_path: Path, pattern: str, sample: str, result: str) -> None:
    path = write(tmp_path, pattern, sample)
    with pytest.raises(ConfigError, match=r"rules\.0") as error:
        load_format(path)
    assert result in str(error.value)
    assert str(error.value).startswith(f"{path}:3: ")


@pytest.mark.slow
def test_a_line_that_takes_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the check at loading could not foresee costs a log some lines, never its reader."""
    monkeypatch.setattr("tipcflow.config.formats._CHOKING", ())
    monkeypatch.setattr("tipcflow.config.formats._PUMPED", 0)
    write(tmp_path, r"^(?P<loss>\d+)(?:(?:a|a|ab)*)*(?P<top1>\d)\1$", "1a11")
    form = definition("tea", tmp_path)
    log = "\n".join(["1a11", *["1" + "a" * 5000 + "c"] * 3, "2a12"])
    assert [one.value for one in parse_training(lines_of(log), form)] == [1.0, 1.0, 2.0, 1.0]


def test_a_format_has_the_name_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path)
    other = path.rename(path.with_name("coffee.yaml"))
    with pytest.raises(ConfigError, match=r"coffee\.yaml: name: is not the name of the file"):
        load_format(other)
