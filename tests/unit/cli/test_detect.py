"""`tipcflow detect`: JSON lines on stdout, and one clear error for invalid series."""

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tipcflow.cli.main import app
from tipcflow.domain import ConfigError

POINT = {"run": "r", "node": "n", "samples": [1.0]}


def detect(path: Path, *more: str) -> str:
    result = CliRunner().invoke(
        app, ["detect", "--series", str(path), "--policy", "pr", *more], catch_exceptions=False
    )
    assert result.exit_code == 0
    return result.stdout


def series(**changes: object) -> str:
    value = {"id": "a", "unit": "s", "direction": "lower", "points": [POINT], **changes}
    return json.dumps({key: one for key, one in value.items() if one is not None})


def test_detect_prints_a_line_per_series_in_order(tmp_path: Path) -> None:
    values = [1.0, 1.01, 0.99, 1.005, 0.995] * 5 + [1.2, 1.21, 1.19, 1.2]
    points = [{"run": f"r{at}", "node": "n", "samples": [value] * 3} for at, value in enumerate(values)]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join((series(id="b"), series(id="é", points=points), series(points=[]))))
    lines = [json.loads(line) for line in detect(path, "--json").splitlines()]
    assert [one["id"] for one in lines] == ["b", "é", "a"]
    assert [len(one["alerts"]) for one in lines] == [0, 1, 0]
    (alert,) = lines[1]["alerts"]
    assert sorted(alert) == ["confidence", "direction", "index", "size"]
    assert (alert["index"], alert["direction"]) == (26, "worse")
    assert alert["size"] == pytest.approx(0.2, abs=0.02)
    assert "worse by +20.5 % at point 26 (run r26), since point 25" in detect(path)


@pytest.mark.parametrize("confirm", [[], None])
def test_a_confirm_run_without_samples_is_none(tmp_path: Path, confirm: object) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({**json.loads(series()), "points": [{**POINT, "confirm": confirm}]}))
    assert detect(path, "--json") == '{"id": "a", "alerts": []}\n'


def test_detect_reads_lone_surrogates(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(series(id="\ud800"))
    assert json.loads(detect(path, "--json"))["id"] == "\ud800"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", ":2: is not JSON"),
        ("[]", ":2: is not a JSON object; found '[]'"),
        (series(direction="up"), ":2: direction: unknown; found 'up'; expected higher or lower"),
        (series(id=None), ":2: id: is missing"),
        (series(unit=3), ":2: unit: is not a JSON string; found '3'"),
        (series(points={}), ":2: points: is not a JSON array"),
        (series(points=[POINT, 3]), ":2: points[1]: is not a JSON object"),
        (series(points=[{"run": "r", "node": "n"}]), ":2: points[0].samples: is missing"),
        (
            series(points=[{**POINT, "samples": [1, "x"]}]),
            """:2: points[0].samples[1]: is not a JSON number; found 'x'""",
        ),
        (
            series(points=[{**POINT, "samples": [True]}]),
            ":2: points[0].samples[0]: is not a JSON number; found 'true'",
        ),
        (series(points=[{**POINT, "samples": [float("nan")]}]), ":2: points[0].samples[0]: is not finite"),
        (series(points=[{**POINT, "samples": [10**400]}]), ":2: points[0].samples[0]: is not finite"),
        (series(points=[{**POINT, "confirm": 1.0}]), ":2: points[0].confirm: is not a JSON array; found '1.0'"),
        (series(points=[{**POINT, "confirm": [1, float("inf")]}]), ":2: points[0].confirm[1]: is not finite"),
    ],
)
def test_invalid_series_is_an_error_with_its_line(
    tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f"{series()}\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        detect(path, "--json")
    assert f"{path}{words}" in str(caught.value)
    assert capsys.readouterr().out == "", "nothing is said of the series before it"


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe"])
def test_missing_files_and_series_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "s.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"cannot be read|contains no series"):
        detect(path)


def test_a_metric_is_judged_as_by_the_checks(tmp_path: Path) -> None:
    """With --metric its floor and the confirm runs decide; without it the detector with `detect.floor`."""
    values = [1.0, 1.001, 0.999, 1.0005, 0.9995] * 5 + [1.3, 1.301, 1.299, 1.3]
    points = [{"run": f"r{at}", "node": "n", "samples": [value]} for at, value in enumerate(values)]
    confirmed = [{**one, "confirm": [1.3]} if at >= 25 else one for at, one in enumerate(points)]
    path = tmp_path / "s.jsonl"
    path.write_text(series(points=points) + "\n" + series(id="b", points=confirmed))

    def output(*more: str) -> list[tuple[list[int], list[int] | None]]:
        lines = [json.loads(line) for line in detect(path, "--json", *more).splitlines()]
        return [([alert["index"] for alert in one["alerts"]], one.get("unconfirmed")) for one in lines]

    assert output() == [([26], None), ([25], None)]
    assert output("--metric", "batch_cost") == [([], []), ([], [])], "pr: 50 %"
    assert output("--metric", "peak_rss") == [([], [25, 26, 27, 28]), ([25], [])]
    assert "  unconfirmed: point 25 (run r25)\n" in detect(path, "--metric", "peak_rss")
    assert "worse by +30.0 % at point 25 (run r25), since point 25" in detect(path, "--metric", "peak_rss")
    with pytest.raises(ConfigError, match="does not evaluate this metric"):
        detect(path, "--metric", "nonsense")


def noisy_then_slower() -> list[float]:
    """A change of 2.5 % at 1 % noise: too small to be seen against 16 runs."""
    source = random.Random(1)
    return [source.gauss(1.025 if at >= 50 else 1.0, 0.01) for at in range(60)]


def noisy_then_quiet() -> list[float]:
    """40 noisy runs, 20 equal ones, and a change that is small for the noise of the first ones."""
    return [1 + 0.02 * (-1) ** at for at in range(40)] + [1.0] * 20 + [1.06]


@pytest.mark.parametrize(
    ("more", "values", "default", "other"),
    [([], noisy_then_slower(), 60, 16), (["--metric", "loss"], noisy_then_quiet(), 20, 60)],
)
def test_the_window_is_an_option_with_the_policys_default(
    tmp_path: Path, more: list[str], values: list[float], default: int, other: int
) -> None:
    points = [{"run": f"r{at}", "node": "n", "samples": [one]} for at, one in enumerate(values)]
    path = tmp_path / "s.jsonl"
    path.write_text(series(points=points))
    found = detect(path, "--json", *more)
    assert found == detect(path, "--json", "--window", str(default), *more)
    assert found != detect(path, "--json", "--window", str(other), *more)
