"""`tipcflow scaling` of runs in the metrics database, and of folders of logs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.scaling import kept, trained
from tests.support.stories import a_record

from tipcflow.domain import Status, Substitution
from tipcflow.domain.run.exit_record import Observed, ObservedRank
from tipcflow.store import Store

pytestmark = pytest.mark.slow

Tipcflow = Callable[..., Any]
B = ("--batch-size-per-device", "128")
# Topology -> repeats -> speed of all devices.
SPEEDS = {
    "1n1g": (397.44, 398.05, 397.64),
    "1n4g": (1555.18, 1534.62, 1539.66),
    "2n4g": (2900.0, 2910.0, 2950.0),
}


def rows(result: Any) -> dict[str, Any]:
    assert result.code == 0, result.err
    return dict(json.loads(result.out)["models"]["r50"])


@pytest.mark.parametrize("rule", ["printed", "time"])
@pytest.mark.parametrize("every", [1, 10])
def test_runs_on_several_topologies(tipcflow: Tipcflow, database: Path, rule: str, every: int) -> None:
    with Store.open() as store:
        for topology, speeds in SPEEDS.items():
            plan = trained(int(topology[0]), int(topology[2]), len(speeds))
            kept(store, f"20261121t093005-r50-{topology}", plan, speeds, every=every)
    runs = [f"20261121t093005-r50-{topology}" for topology in SPEEDS]
    result = tipcflow("scaling", *runs, *B, "--rule", rule, "--json")
    assert {
        name: (row["average_speed"], row["median_speed"], row["speedup"], row["repeats"])
        for name, row in rows(result).items()
    } == {
        "1n1g": (397.71, 397.64, 1.0, 3),
        "1n4g": (1543.15, 1539.66, 3.87, 3),
        "2n4g": (2920.0, 2910.0, 7.32, 3),
    }
    assert json.loads(result.out)["notes"] == []


def test_several_runs_of_one_topology_are_repeats(tipcflow: Tipcflow, database: Path) -> None:
    with Store.open() as store:
        for number, speed in enumerate((100.0, 110.0, 150.0)):
            kept(store, f"20261121t093005-r50-{number}", trained(1, 1, 1), [speed])
    runs = [f"20261121t093005-r50-{number}" for number in (0, 1, 2, 0)]
    row = rows(tipcflow("scaling", *runs, *B, "--json"))["1n1g"]
    assert (row["repeats"], row["average_speed"], row["median_speed"]) == (3, 120.0, 110.0)


def test_a_run_whose_first_rank_alone_prints(tipcflow: Tipcflow, database: Path) -> None:
    with Store.open() as store:
        kept(store, "20261121t093005-r50-a", trained(2, 4, 1), [800.0], ranks=[0])
    result = tipcflow("scaling", "20261121t093005-r50-a", *B, "--json")
    assert rows(result)["2n4g"]["median_speed"] == 800.0
    assert json.loads(result.out)["notes"] == [
        "20261121t093005-r50-a norm_train_repeat_1/train: 1 of 8 ranks print a speed; assumed for all",
        "r50: no speed-up, because no run used 1n1g",
    ]


def test_a_run_that_ended_too_early_is_refused(tipcflow: Tipcflow, database: Path) -> None:
    with Store.open() as store:
        kept(store, "20261121t093005-r50-a", trained(1, 1, 1), [800.0])
    result = tipcflow("scaling", "20261121t093005-r50-a", *B, "--skip", "150")
    assert result.code == 2
    assert "has no ips after the first 150 iterations" in result.err


def write(folder: Path, topology: str, repeat: int, ips: float) -> None:
    path = folder / topology / f"r50_b128_fp32_{repeat}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(f"[Epoch 1, iter: {step}] loss: 1.0, avg_ips: {ips} images/s\n" for step in range(150))
    )


def test_folder_of_logs_is_read_with_notes(tipcflow: Tipcflow, tmp_path: Path) -> None:
    for topology, ips in (("1n1g", 100.0), ("2n8g", 1500.0)):
        for repeat in (1, 2):
            write(tmp_path / "logs", topology, repeat, ips + repeat)
    (tmp_path / "logs" / "README.md").write_text("no log\n")
    (tmp_path / "logs" / "2n8g" / "nccl.log").write_text("NCCL INFO\n")
    result = tipcflow("scaling", str(tmp_path / "logs"), *B, "--json")
    assert {name: (row["median_speed"], row["repeats"]) for name, row in rows(result).items()} == {
        "1n1g": (101.5, 2),
        "2n8g": (1501.5, 2),
    }
    (note,) = json.loads(result.out)["notes"]
    assert "nccl.log: has no training line" in note


def test_a_folder_without_logs(tipcflow: Tipcflow, tmp_path: Path) -> None:
    result = tipcflow("scaling", str(tmp_path), *B)
    assert (result.code, result.out) == (2, "")
    assert "is a folder without a log that has both speed and topology (0 logs)" in result.err


def test_log_of_a_shell_script_has_the_speed_of_all_ranks(tipcflow: Tipcflow, database: Path) -> None:
    change = Substitution(what="launch", found="ips", used="script", because="`launch` of suite or cluster")
    plan = trained(2, 2, 1, substitutions=(change,))
    with Store.open() as store:
        # Both nodes print; each log has a quarter of the given speed per rank.
        kept(store, "20261121t093005-r50-a", plan, [400.0], ranks=(0, 2))
    result = tipcflow("scaling", "20261121t093005-r50-a", *B, "--json")
    assert rows(result)["2n2g"]["speeds"] == {"1": 100.0}
    assert not any("assumed for all" in note for note in json.loads(result.out)["notes"])


def test_idle_rank_of_a_run_is_named(tipcflow: Tipcflow, database: Path) -> None:
    plan = trained(1, 2, 1)
    run, step = "20261121t093005-r50-a", plan.steps[0].id
    with Store.open() as store:
        kept(store, run, plan, [400.0])
        ranks = tuple(ObservedRank(rank=rank, seconds=60.0, cpu_s=58.0 if rank else 2.0) for rank in (0, 1))
        record = a_record(run, step, plan.nodes[0], observed=Observed(ranks=ranks))
        store.attempts.close(run, step, 1, Status.PASS, "", [record], 1_795_000_100.0)
    notes = json.loads(tipcflow("scaling", run, *B, "--json").out)["notes"]
    assert (
        f"{run} {step}: rank 0 on {plan.nodes[0]} idles: it used 3 % of a CPU core, the other ranks 97 %" in notes
    )
