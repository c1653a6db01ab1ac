"""The shipped suite file PaddleOCR, unmodified, with a repository of PaddleOCR's layout and code of this project.

Training on two nodes, export, inference and the comparison with stored results, as its compare_results.py does it.
PaddleOCR's own code does not run here: its repository is too large for the machine that these tests come from.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.suites.public_site import NODE_PYTHON, PublicSite
from tests.e2e.suites.synthetic import icdar2015
from tests.support.certify import Outcome
from tests.support.samples.ocr import FLEET, FLEET_AMP, IMAGES, ocr_repository

from devcluster.local_nodes.nodes import LocalNodes, local_nodes
from tipcflow.domain import CheckResult, Phase, Status, StepKind
from tipcflow.domain.run_documents import PredictionsDocument

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1800)]

FP32 = "python_ppocr_det_mobile_results_fp32.txt"


@pytest.fixture(scope="module")
def ocr_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalNodes]:
    with local_nodes(tmp_path_factory.mktemp("nodes"), python=NODE_PYTHON) as nodes:
        yield nodes


@pytest.fixture
def ocr(ocr_nodes: LocalNodes, tmp_path: Path) -> PublicSite:
    site = PublicSite(tmp_path, ocr_nodes)
    site.clones["PaddleOCR"] = ocr_repository(tmp_path / "PaddleOCR")
    site.serve(IMAGES, icdar2015())
    return site


def results_of(site: PublicSite, outcome: Outcome, check: str) -> list[CheckResult]:
    with site.store() as store:
        return [result for result in store.checks.results(outcome.run.id) if result.check == check]


Boxes = list[list[list[float]]]


def boxes_of(site: PublicSite, outcome: Outcome) -> dict[str, dict[str, Boxes]]:
    """Leg -> image -> corners of the printed boxes."""
    with site.store() as store:
        document = store.documents.get(outcome.run.id, PredictionsDocument)
    assert document
    return {
        str(leg): {
            key.source: [
                [list(row[corner : corner + 2]) for corner in range(box, box + 8, 2)]
                for box in range(0, len(row), 8)
            ]
            for key, row in found.items()
        }
        for leg, found in document.root.items()
        if found
    }


def write_results(path: Path, boxes: dict[str, Boxes]) -> None:
    """A file of results as a maintainer of the suite stores it."""
    path.write_text("".join(f"{image}\t{json.dumps(found)}\n" for image, found in sorted(boxes.items())))


def record(site: PublicSite, path: Path) -> None:
    done = site.tipcflow("golden", "record", "latest", "--results", str(path), "--because", "boxes were inspected")
    assert done.returncode == 0, done.stderr


def test_stored_results_decide_over_a_training_on_two_nodes(ocr: PublicSite, tmp_path: Path) -> None:
    first = ocr.run("PaddleOCR", FLEET)
    assert first.run.status is Status.PASS, first.output
    (golden,) = results_of(ocr, first, "golden.results")
    assert golden.status is Status.INSUFFICIENT_DATA
    with ocr.store() as store:
        losses = store.measurements.of(first.run.id, metric="loss")
        speeds = store.measurements.of(first.run.id, metric="ips")
        measured = store.measurements.of(first.run.id, metric="hmean")
    assert len([sample for sample in losses if sample.phase is Phase.TRAIN]) == 50, (
        "every second of 100 iterations"
    )
    assert {sample.unit for sample in speeds} == {"samples/s"}
    assert measured[-1].value > 0.9
    boxes = next(iter(boxes_of(ocr, first).values()))
    assert sorted(boxes) == [f"img_{number}.jpg" for number in (1, 2, 3, 4)]
    assert [len(boxes[image]) for image in sorted(boxes)] == [2, 3, 1, 2]

    results = tmp_path / FP32
    write_results(results, boxes)
    record(ocr, results)
    second = ocr.run("PaddleOCR", FLEET)
    assert second.run.status is Status.PASS, second.output
    (golden,) = results_of(ocr, second, "golden.results")
    assert (golden.status, golden.values["golden_leg"]) == (Status.PASS, FP32), golden

    boxes["img_2.jpg"][0][3][0] += 10
    write_results(results, boxes)
    record(ocr, results)
    third = ocr.run("PaddleOCR", FLEET)
    assert third.run.status is Status.FAILED, third.output
    wrong = rf"golden\.results .*values differ by 10, .*image img_2\.jpg: result 1, against the golden of {FP32}"
    assert re.search(wrong, third.run.reason), third.run.reason


def test_legs_in_other_precisions_than_fp32_are_not_run(ocr: PublicSite, tmp_path: Path) -> None:
    outcome = ocr.run("PaddleOCR", FLEET_AMP)
    assert outcome.run.status is Status.PASS, outcome.output
    with ocr.store() as store:
        plan = store.plans.get(outcome.run.id)
        statuses = store.steps.statuses(outcome.run.id)
        evaluated = [one for one in store.measurements.of(outcome.run.id, metric="hmean") if "/eval" in one.step]
    trainings = {step.id: statuses[step.id] for step in plan.steps if step.kind is StepKind.TRAIN}
    assert [status for name, (status, _) in trainings.items() if "autocast_amp" in name] == ["not_run"]
    assert evaluated, "tools/eval.py runs on CPUs with a configuration for GPUs"
    assert evaluated[-1].value > 0.9
    legs = {
        leg.id: leg
        for step in plan.steps
        if step.kind is StepKind.INFER_CPU and "autocast_fp32" in step.id
        for leg in step.legs
    }
    ran = sorted(name for name, leg in legs.items() if not leg.not_run)
    assert ran == sorted(name for name in legs if name.startswith("cpu_") and name.endswith("precision_fp32"))
    half = next(leg for name, leg in legs.items() if name.startswith("cpu_") and leg.precision == "fp16")
    assert half.not_run == "Paddle has no fp16 inference on CPUs (node a): it would run fp32 or bf16"
    (parity,) = results_of(ocr, outcome, "parity.onednn")
    assert parity.status is Status.PASS
    assert parity.reason.startswith("4 results")

    # Results for another precision than any leg has, of no precision, and none.
    (tmp_path / "results_bf16.txt").write_text("img_1.jpg\t[[[1, 2]]]\n")
    for name, message in (("results_bf16.txt", "no leg has this precision"), (FP32, "cannot be read")):
        words = ("golden", "record", "latest", "--results", str(tmp_path / name), "--because", "x")
        done = ocr.tipcflow(*words)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
