"""The sample suite's compressed variants on real nodes: pruned, quantized in training and after training."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import certify
from tests.support.samples.site import sample_site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import CheckResult, Status

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900)]

SUITE = "mobilenet_v3_small"
FOLDER = f"test_tipc/configs/{SUITE}"
FLEET = f"{FOLDER}/train_linux_gpu_fleet_{{}}_infer_python_linux_gpu_cpu.txt"
FLAGS = {"avx512_vnni", "amx_int8"}
LACKS = "has neither avx512_vnni nor amx_int8, which int8 needs"


@pytest.fixture
def site(
    make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> certify.Site:
    """An installation whose suite `mobilenet_v3_small` is a copy of the shipped one."""
    monkeypatch.setattr(certify, "DEADLINE_S", 800)
    return sample_site(tmp_path / "site", make_nodes(tmp_path / "nodes", python=node_python), SUITE)


def has_int8() -> bool:
    """Whether this machine, on which all nodes are, computes in int8."""
    return bool(FLAGS.intersection(Path("/proc/cpuinfo").read_text().split()))


def certified(site: certify.Site, params: str, **options: str) -> dict[str, list[CheckResult]]:
    """The results of a run that passes, by check; leaves nothing behind."""
    outcome = site.run(params=params, suite=SUITE, **options)
    assert outcome.code == 0, outcome.output
    assert outcome.run.status is Status.PASS
    assert site.left_behind() == []
    found: dict[str, list[CheckResult]] = {}
    with site.store() as store:
        for result in store.checks.results(outcome.run.id):
            found.setdefault(result.check, []).append(result)
    return found


def statuses(site: certify.Site) -> dict[str, tuple[Status, str]]:
    """Status and reason of each leg of the last run."""
    with site.store() as store:
        (run,) = store.runs.newest(limit=1)
        planned = {
            f"{step.id}/{leg.id}": (Status.NOT_RUN, leg.not_run)
            for step in store.plans.get(run.id).steps
            for leg in step.legs
        }
        return {**planned, **{str(key): value for key, value in store.steps.leg_statuses(run.id).items()}}


def test_a_pruned_variant_passes_with_fewer_parameters(site: certify.Site) -> None:
    found = certified(site, FLEET.format("fpgm"))
    (result,) = found["ran.compression"]
    assert result.status is Status.PASS, result
    assert result.reason.startswith("173930 parameters instead of 208762 (-17%)"), result.reason
    assert {one.status for one in found["parity.chain"]} == {Status.PASS}
    assert found["compression.speed"]


def test_a_variant_quantized_in_training_passes_with_int8_legs(site: certify.Site) -> None:
    found = certified(site, FLEET.format("pact"))
    (result,) = found["ran.compression"]
    assert result.status is Status.PASS, result
    assert result.reason.startswith("43 of 54 layers with weights have quantized inputs"), result.reason
    assert result.values["model"]["types"]["int8"] > 170_000
    int8 = {key: status for key, status in statuses(site).items() if "/cpu_" in key and "pact" in key}
    assert int8
    if has_int8():
        assert {status for status, _ in int8.values()} == {Status.PASS}
        assert found["compression.speed"]
    else:
        assert {status for status, _ in int8.values()} == {Status.NOT_RUN}
        assert all(LACKS in reason for _, reason in int8.values())


def test_quantization_after_training_passes_on_one_node(site: certify.Site) -> None:
    found = certified(site, f"{FOLDER}/train_ptq_infer_python.txt", mode="whole_infer")
    (result,) = found["ran.compression"]
    assert (result.step, result.status) == ("infer_1/export", Status.PASS), result
    assert result.reason.startswith("54 of 54 layers with weights have quantized inputs"), result.reason
    if has_int8():
        assert {one.status for one in found["parity.chain"]} == {Status.PASS}


def test_a_file_for_quantization_is_refused_in_training_modes(site: certify.Site) -> None:
    outcome = site.run(params=f"{FOLDER}/train_ptq_infer_python.txt", suite=SUITE)
    assert outcome.code == 2
    assert "a file of quantization after training does not run in this mode" in outcome.output
