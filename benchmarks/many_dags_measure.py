"""Cost of DAG files in a fresh process; prints one JSON object as its last line.

`build FILE...` reads the files as Airflow's dag-processor does, and serializes their DAGs; `task FILE DAG TASK`
reads one as the process of a task does, forked from one that is warm: our executor's, or with `--cold` one that
has imported only what Airflow itself needs there.
"""

import argparse
import importlib
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

MIB = 1024


def bag(path: Path) -> dict[str, Any]:
    """DAG ID -> DAG of a file; exits if the file cannot be read."""
    from airflow.dag_processing.dagbag import BundleDagBag

    found = BundleDagBag(
        dag_folder=str(path),
        bundle_path=path.parent,
        bundle_name="benchmark",
        safe_mode=False,
        load_op_links=False,
    )
    if found.import_errors:
        sys.exit(f"{path} cannot be imported: {found.import_errors}")
    return dict(found.dags)


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, and the result of the work."""
    begun = time.process_time()
    done = work()
    return time.process_time() - begun, done


def build(files: list[Path]) -> dict[str, float]:
    """Read, then serialize. Imports are separate, because the dag-processor does them before it forks."""
    from airflow.serialization.serialized_objects import DagSerialization

    imports, _ = cpu(lambda: importlib.import_module("tipcflow_operators.chain.dag"))
    dags: list[Any] = []
    seconds, _ = cpu(lambda: [dags.extend(bag(path).values()) for path in files])
    built = peak()
    # Drop each dictionary after counting it, so that a thousand of them do not count as memory.
    sizes: list[int] = []
    serialised, _ = cpu(lambda: [sizes.append(len(json.dumps(DagSerialization.to_dict(dag)))) for dag in dags])
    return {
        "dags": len(dags),
        "tasks": sum(len(dag.tasks) for dag in dags),
        "imports_s": imports,
        "build_s": seconds,
        "serialise_s": serialised,
        "built_mib": built,
        "peak_mib": peak(),
        "kib_per_dag": sum(sizes) / len(sizes) / 1024,
    }


def peak() -> float:
    """Peak resident memory of this process, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB


def task(path: Path, dag_id: str, *, context: bool, times: int) -> dict[str, float]:
    """Median CPU time of a forked process that reads the file for one task."""
    report = [forked(lambda: read_for_task(path, dag_id, context=context)) for _ in range(times)]
    return {key: statistics.median(each[key] for each in report) for key in report[0]}


def read_for_task(path: Path, dag_id: str, *, context: bool) -> dict[str, float]:
    """The work of Airflow's task runner on the file; imports, which the task needs anyway, are separate."""
    from airflow.sdk.definitions._internal.dag_parsing_context import _airflow_parsing_context_manager

    imports = 0.0
    if "operators" in path.read_text():
        imports, _ = cpu(lambda: importlib.import_module("tipcflow_operators.chain.dag"))
    with _airflow_parsing_context_manager(dag_id=dag_id, task_id="resolve") if context else nullcontext():
        seconds, found = cpu(lambda: bag(path))
    if dag_id not in found:
        sys.exit(f"{path} has no DAG {dag_id}")
    return {"imports_s": imports, "dag_s": seconds}


def forked(work: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The result of the work in a child of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writer, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as report:
        response = report.read()
    os.waitpid(child, 0)
    if not response:
        sys.exit("the child that reads the file failed")
    return dict(json.loads(response))


def get_warm(*, cold: bool) -> None:
    """Import the modules that are loaded before a task is forked."""
    if not cold:
        from tipcflow_operators.airflow.executor import warm

        warm()
        return
    for name in ("airflow.dag_processing.dagbag", "airflow.sdk.execution_time.task_runner"):
        importlib.import_module(name)
    importlib.import_module("airflow.executors.local_executor")


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    building = kinds.add_parser("build")
    building.add_argument("files", type=Path, nargs="+")
    reading = kinds.add_parser("task")
    reading.add_argument("file", type=Path)
    reading.add_argument("dag_id")
    reading.add_argument("--cold", action="store_true")
    reading.add_argument("--no-context", action="store_true")
    reading.add_argument("--times", type=int, default=9)
    wanted = parser.parse_args()
    if wanted.kind == "build":
        report = build(wanted.files)
    else:
        get_warm(cold=wanted.cold)
        report = task(wanted.file, wanted.dag_id, context=not wanted.no_context, times=wanted.times)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
