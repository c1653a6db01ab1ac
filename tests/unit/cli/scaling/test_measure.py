"""`tipcflow scaling run`: input that is refused before anything starts; tests/cluster/scaling trains."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tipcflow.store import Store

ROOT = Path(__file__).parents[4]
PARAMS = "test_tipc/benchmark/mobilenet_v3_small/train_benchmark.txt"
NODE = "  - {name: %s, address: 192.0.2.%d, slots: 2, python: /p, workspace: /w, frameworks: [%s]}\n"
B = ("--batch-size-per-device", "4")
BOTH = "--batch-size-per-device, --global-batch-size: "


@pytest.fixture
def refused(tipcflow: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The only line that a refused command prints; nothing has started."""
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(ROOT / "configs"))

    def run(*words: str, params: str = PARAMS, framework: str = "paddlepaddle") -> str:
        nodes = "".join(NODE % (f"node-{number}", number, framework) for number in (1, 2))
        (tmp_path / "lab.yaml").write_text(f"name: lab\nnodes:\n{nodes}")
        where = ("--suite", "mobilenet_v3_small_benchmark", "--cluster", str(tmp_path / "lab.yaml"))
        output = tipcflow("scaling", "run", params, *where, *words)
        assert (output.code, output.out) == (2, "")
        with Store.open() as store:
            assert store.runs.newest(limit=1) == []
        (line,) = [line for line in output.err.splitlines() if not line.startswith("  hint:")]
        return str(line)

    return run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*B, "--topology", "2x8"), "--topology: unknown topology; found '2x8'"),
        (
            (*B, "-t", "1n1g", "-t", "4n1g"),
            "the cluster does not have 4n1g; found '4 nodes needed, cluster lab has 2'",
        ),
        (
            (*B, "-t", "1n4g"),
            "the cluster does not have 1n4g; found '4 devices per node needed, node node-1 has 2'",
        ),
        (
            (*B, "--precision", "fp8"),
            "--precision: unknown precision; found 'fp8'; expected one of fp32, amp (fp_items",
        ),
        ((*B, "--precision", "amp"), "Paddle ignores mixed precision (amp) and trains in fp32"),
        (
            ("--global-batch-size", "6"),
            "4 devices of 2n2g do not divide the batch; found '6'; expected a multiple of 4",
        ),
        (
            (*B, "--take", "101"),
            "the training has 150 iterations; found '50 + 101'; expected at most 150 together",
        ),
        ((), f"{BOTH}exactly one of the two is required; found 'neither'"),
        ((*B, "--global-batch-size", "8"), f"{BOTH}exactly one of the two is required; found 'both'"),
        ((*B, "--policy", "hourly"), "unknown policy; found 'hourly'"),
    ],
)
def test_invalid_input_is_one_error(refused: Callable[..., str], words: tuple[str, ...], message: str) -> None:
    line = refused(*words)
    assert line.startswith("config_error: ")
    assert message in line


def test_cluster_without_the_framework_is_refused(refused: Callable[..., str]) -> None:
    line = refused(*B, framework="torch")
    assert "suite mobilenet_v3_small_benchmark needs paddlepaddle; found 'cluster lab has no paddlepaddle'" in line


def test_file_without_a_benchmark_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    text = (ROOT / "examples" / "mobilenet_v3_small" / PARAMS).read_text()
    file = tmp_path / "toy" / "plain.txt"
    file.parent.mkdir()
    file.write_text(text.partition("===========================train_benchmark_params")[0])
    assert "train_benchmark_params: no trainings to measure" in refused(*B, params=str(file))
