"""Catalogs of many chains for benchmarks: variations of the sample suite's params file."""

import shutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = "mobilenet_v3_small"
PARAMS = ROOT / "configs" / "chains" / SAMPLE / SAMPLE / "train_infer_python.txt"
# Tasks of a chain's DAG: seven around the variants, five in each.
AROUND, PER_VARIANT = 7, 5
# Plain DAGs for comparison: the same number of the cheapest tasks, without params, docs or groups.
PEER = '''"""{chains} plain Airflow DAGs of {tasks} EmptyOperators each."""

from airflow.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator

for number in range({chains}):
    with DAG(dag_id=f"plain_{{number:04d}}", schedule=None, catchup=False) as dag:
        last = None
        for place in range({tasks}):
            task = EmptyOperator(task_id=f"task_{{place}}")
            if last is not None:
                last >> task
            last = task
    globals()[dag.dag_id] = dag
'''


class Made(NamedTuple):
    """A generated catalog.

    Attributes:
        configs: TIPCFLOW_CONFIG_DIR.
        dags: the DAGs folder.
        stubs: its files.
        tasks: of each DAG.
    """

    configs: Path
    dags: Path
    stubs: tuple[Path, ...]
    tasks: int


def make_chains(folder: Path, *, chains: int, variants: int, suites: int = 1) -> Made:
    """Chains, spread evenly over suites, each suite with its stub file."""
    configs, dags = folder / "configs", folder / "dags"
    shutil.copytree(ROOT / "configs", configs, ignore=shutil.ignore_patterns("chains", SAMPLE + ".yaml"))
    dags.mkdir(parents=True)
    stub = (ROOT / "dags" / f"chains_{SAMPLE}.py").read_text()
    described = (ROOT / "configs" / "suites" / f"{SAMPLE}.yaml").read_text()
    stubs = []
    for number in range(suites):
        suite = f"suite_{number}"
        (configs / "suites" / f"{suite}.yaml").write_text(described.replace(SAMPLE, suite))
        stubs.append(dags / f"chains_{suite}.py")
        stubs[-1].write_text(stub.replace(SAMPLE, suite))
    for number in range(chains):
        model = f"model_{number:04d}"
        path = configs / "chains" / f"suite_{number % suites}" / model / "train_infer_python.txt"
        path.parent.mkdir(parents=True)
        path.write_text(params_file(number, variants))
    return Made(configs, dags, tuple(stubs), AROUND + PER_VARIANT * variants)


def make_peer(folder: Path, *, chains: int, tasks: int) -> Made:
    """The same number of plain DAGs in one file."""
    folder.mkdir(parents=True)
    path = folder / "plain.py"
    path.write_text(PEER.format(chains=chains, tasks=tasks))
    return Made(ROOT / "configs", folder, (path,), tasks)


def params_file(number: int, variants: int) -> str:
    """The sample's params file with another model name, other epochs and one device group per variant."""
    text = PARAMS.read_text().replace(SAMPLE, f"model_{number:04d}").replace("=5|", f"={2 + number % 40}|")
    groups = "|".join(("0", "0,1", "0,1,2,3")[:variants])
    return text.replace("gpu_list:0\n", f"gpu_list:{groups}\n")
