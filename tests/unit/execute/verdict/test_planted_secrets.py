"""Secrets in texts that programs of a suite or a node print are in neither the database nor the certificate."""

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.support.stories import INFER, TRAIN, a_plan, a_record, a_run, open_store, some_facts

from tipcflow.domain import CheckResult, ExitRecord, NodeFacts, RankReport, Status
from tipcflow.domain.keys import LegKey, PartKey
from tipcflow.domain.run.exit_record import GpuProcess, ModelContent, OutputFile, ProcessReport
from tipcflow.domain.run_documents import (
    AutologDocument,
    CutDocument,
    Document,
    EngineDocument,
    JudgementDocument,
    LeftoversDocument,
    PredictionsDocument,
    RanksDocument,
    ReportersDocument,
)
from tipcflow.execute.verdict.judge import write_certificate
from tipcflow.parse.reports.inference import parse_inference
from tipcflow.store import Store

WORD = "hunter2planted"
PLANTED = f"https://ci:{WORD}@host/a"
LEG = LegKey(INFER, "cpu_onednn_on")
# Given by the plan and the cluster, or words of the kernel.
OURS = {"run", "step", "leg", "node", "path", "sha256", "errno", "cpu_flags"}
LOG = f"""[2026/11/21 07:24:02] root INFO: ---------------------- Env info ----------------------
[2026/11/21 07:24:02] root INFO:  OS_version: Ubuntu 16.04
[2026/11/21 07:24:02] root INFO: ---------------------- Model info ----------------------
[2026/11/21 07:24:02] root INFO:  model_name: {PLANTED}
[2026/11/21 07:24:02] root INFO:  hub_password: {WORD}
[2026/11/21 07:24:02] root INFO: ----------------------- Perf info -----------------------
[2026/11/21 07:24:02] root INFO: preprocess_time(ms): 1.0, inference_time(ms): 2.0, postprocess_time(ms): 0.1
engine: device={PLANTED} precision=fp32 api_key={WORD}
reporter: {PLANTED}
{PLANTED}\t{{"class_id": 0, "scores": [0.9, 0.1]}}
"""


def texts(kind: type[BaseModel]) -> dict[str, Any]:
    """A planted text for each field of a record that takes text of another program."""
    planted: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        values = typing.get_args(field.annotation)
        if name not in OURS and field.annotation is str:
            planted[name] = PLANTED
        elif (
            name not in OURS
            and typing.get_origin(field.annotation) is tuple
            and (values and "str" in str(values[0]))
        ):
            planted[name] = ({"a": PLANTED},) if "dict" in str(values[0]) else (PLANTED,)
        elif typing.get_origin(field.annotation) is dict and "str" in str(values[1]):
            planted[name] = {"a": PLANTED}
    return planted


def a_planted_record() -> ExitRecord:
    content = ModelContent(**texts(ModelContent))
    output = OutputFile(path="a", exists=True, content=content, **texts(OutputFile))
    process = ProcessReport(**texts(ProcessReport) | {"predictors": ()})
    gpu = GpuProcess(gpu=0, pid=1, size_bytes=1, **texts(GpuProcess))
    fields = texts(ExitRecord)
    return a_record("r", step=TRAIN, outputs=(output,), processes=(process,), gpu_processes=(gpu,), **fields)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


@pytest.fixture
def planted_run(store: Store) -> str:
    run = a_run("r")
    store.runs.create(run, a_plan())
    store.nodes.save(run.id, [some_facts(node, **texts(NodeFacts)) for node in run.nodes])
    number = store.attempts.open(run.id, TRAIN, run.nodes, run.created_at)
    store.attempts.close(run.id, TRAIN, number, Status.FAILED, PLANTED, [a_planted_record()], run.created_at + 1)
    store.steps.set(run.id, TRAIN, Status.FAILED, PLANTED)
    store.checks.replace(
        run.id,
        [CheckResult(check="a", status=Status.FAILED, reason=PLANTED, values={"password": WORD, "b": [PLANTED]})],
    )
    log = parse_inference(LOG)
    rank = RankReport(node="node-a", rank=0, world_size=1, **texts(RankReport))
    documents: dict[type[Document], dict[Any, Any]] = {
        AutologDocument: {LEG: log.autolog},
        EngineDocument: {LEG: log.engine},
        ReportersDocument: {LEG: log.reporter},
        PredictionsDocument: {PartKey(str(LEG)): log.predictions},
        RanksDocument: {TRAIN: (rank,)},
        CutDocument: {TRAIN: (PLANTED,)},
    }
    assert all(WORD in str(entry) for entry in (log.autolog, log.engine, log.reporter))
    for kind, entries in documents.items():
        store.documents.merge(run.id, kind, entries)
    store.documents.put(run.id, LeftoversDocument((PLANTED,)))
    store.documents.put(run.id, JudgementDocument(status=Status.FAILED, reason=PLANTED, parts=(PLANTED,)))
    store.runs.finish(run.id, Status.FAILED, PLANTED, run.created_at + 2)
    return run.id


def test_texts_of_programs_are_stored_and_certified_masked(store: Store, tmp_path: Path, planted_run: str) -> None:
    path = write_certificate(store, planted_run, tmp_path)
    assert "host/a" in path.read_text()
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} >= {".json", ".db"}
    for file in files:
        data = file.read_bytes()
        at = data.find(WORD.encode())
        assert at < 0, f"{file.name}: {data[max(0, at - 200) : at + 40]!r}"
    facts = store.nodes.facts(planted_run)[0]
    assert facts.hostname == facts.gpus[0]["a"] == "https://ci:***@host/a"
