"""Cost of 1,000 chains as Airflow DAGs, compared with plain DAGs of the same number of EmptyOperators.

Generated variations of the sample's params file, with one variant (12 tasks) and with two (17), in one stub file
and in four. Every number is of a fresh process, in turn, --rounds times: CPU seconds of reading the files as the
dag-processor does and of serialising the DAGs, the memory for it; and CPU seconds that a process of one task pays
for its DAG, forked from our executor and from a stock one, with and without `get_parsing_context`.

--processor MINUTES also runs a real dag-processor for that time (`many_dags_processor.py`).

Prints tables and writes benchmarks/results/many_dags.json and many_dags_processor.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from many_dags_catalog import ROOT, Made, make_chains, make_peer
from many_dags_processor import processor

MEASURE = Path(__file__).with_name("many_dags_measure.py")
DEADLINE_S = 900
BUILD_AIM_S, TASK_AIM_S = 10.0, 0.1
SPREAD = 4
Rows = dict[str, dict[str, list[float]]]


def measured(made: Made, home: Path, *arguments: object) -> dict[str, float]:
    """One measurement in a fresh process."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW_", "_AIRFLOW"))}
    env |= {"AIRFLOW_HOME": str(home), "TIPCFLOW_CONFIG_DIR": str(made.configs), "TIPCFLOW_HOME": str(home)}
    # CPU time is measured: a busy machine must not end the reading of a large file.
    env["AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT"] = str(DEADLINE_S)
    command = [sys.executable, str(MEASURE), *map(str, arguments)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def generate(folder: Path, chains: int, most: int) -> dict[str, Made]:
    """Measurements by name, of DAGs with up to `most` variants."""
    made = {}
    for variants, word in ((1, "one variant"), (2, "two variants"))[:most]:
        for suites, files in ((1, "one file"), (SPREAD, f"{SPREAD} files")):
            place = folder / f"chains-{variants}-{suites}"
            made[f"{word}, {files}"] = make_chains(place, chains=chains, variants=variants, suites=suites)
        tasks = made[f"{word}, one file"].tasks
        made[f"plain, {tasks} tasks"] = make_peer(folder / f"plain-{tasks}", chains=chains, tasks=tasks)
    return made


def measure_all(made: dict[str, Made], home: Path, chains: int, build: Rows, task: Rows) -> None:
    """One round."""
    for name, each in made.items():
        add(build[name], measured(each, home, "build", *each.stubs))
    one, plain = made["one variant, one file"], next(each for name, each in made.items() if "plain" in name)
    number = chains // 2
    ours = f"suite_0.model_{number:04d}.train_infer_python"
    for label, more in {"our executor": (), "stock executor": ("--cold",)}.items():
        add(task[label], measured(one, home, "task", one.stubs[0], ours, *more))
    spread = made[f"one variant, {SPREAD} files"]
    own = f"suite_{number % SPREAD}.model_{number:04d}.train_infer_python"
    add(task[f"our executor, {SPREAD} files"], measured(spread, home, "task", spread.stubs[number % SPREAD], own))
    once = ("--times", 1)
    label = "without get_parsing_context"
    add(task[label], measured(one, home, "task", one.stubs[0], ours, "--no-context", *once))
    add(task["plain DAGs"], measured(plain, home, "task", plain.stubs[0], f"plain_{number:04d}", *once))


def add(row: dict[str, list[float]], reported: dict[str, float]) -> None:
    """Record the values of one round."""
    for key, value in reported.items():
        row[key].append(value)


def show_build(build: Rows, made: dict[str, Made]) -> None:
    """Medians, and the ratio to plain DAGs with the same number of tasks in the same round."""
    print(
        f"\n{'CPU s':<26}{'tasks':>7}{'build':>8}{'ratio':>7}{'serialise':>11}{'ratio':>7}{'MiB':>6}{'KiB/DAG':>9}"
    )
    for name, row in build.items():
        peer = build[f"plain, {made[name].tasks} tasks"]
        print(
            f"{name:<26}{statistics.median(row['tasks']):>7.0f}"
            f"{statistics.median(row['build_s']):>8.2f}{ratio(row['build_s'], peer['build_s']):>7.2f}"
            f"{statistics.median(row['serialise_s']):>11.2f}{ratio(row['serialise_s'], peer['serialise_s']):>7.2f}"
            f"{statistics.median(row['peak_mib']):>6.0f}{statistics.median(row['kib_per_dag']):>9.1f}"
        )


def show_task(task: Rows) -> None:
    """Medians, and the ratio to plain DAGs in one file, which every task process reads completely."""
    peer = task["plain DAGs"]["dag_s"]
    print(f"\n{'CPU s of one task':<30}{'its DAG':>9}{'ratio':>8}{'imports':>9}")
    for name, row in task.items():
        print(
            f"{name:<30}{statistics.median(row['dag_s']):>9.3f}{ratio(row['dag_s'], peer):>8.3f}"
            f"{statistics.median(row['imports_s']):>9.3f}"
        )


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Median of the ratios of all rounds."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def aims(build: Rows, task: Rows) -> dict[str, bool]:
    """Goal -> whether it is met."""
    return {
        f"one-variant DAGs built in {BUILD_AIM_S:.0f} s of CPU": statistics.median(
            build["one variant, one file"]["build_s"]
        )
        <= BUILD_AIM_S,
        f"a task's DAG in {TASK_AIM_S} s of CPU, our executor": statistics.median(task["our executor"]["dag_s"])
        <= TASK_AIM_S,
        f"a task's DAG in {TASK_AIM_S} s of CPU, stock executor": statistics.median(
            task["stock executor"]["dag_s"]
        )
        <= TASK_AIM_S,
    }


def main() -> None:
    """Run the rounds, print the tables, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chains", type=int, default=1000)
    parser.add_argument("--variants", type=int, choices=(1, 2), default=2, help="1: only DAGs of one variant")
    parser.add_argument("--processor", type=float, nargs="?", const=10.0, metavar="MINUTES")
    wanted = parser.parse_args()
    about = {"cores": os.cpu_count(), "chains": wanted.chains}
    with tempfile.TemporaryDirectory(prefix="tipcflow-bench-") as name:
        folder = Path(name)
        made = generate(folder, wanted.chains, wanted.variants)
        if wanted.rounds:
            build: Rows = defaultdict(lambda: defaultdict(list))
            task: Rows = defaultdict(lambda: defaultdict(list))
            for number in range(wanted.rounds):
                measure_all(made, folder / "home", wanted.chains, build, task)
                print(f"round {number + 1} of {wanted.rounds}", flush=True)
            show_build(build, made)
            show_task(task)
            report("many_dags", about | {"build": build, "task": task, "aims": aims(build, task)})
        if wanted.processor:
            reported = processor(
                made["one variant, one file"], folder, minutes=wanted.processor, chains=wanted.chains
            )
            report("many_dags_processor", about | reported)


def report(name: str, facts: dict[str, Any]) -> None:
    """Print which goals are met; write benchmarks/results/<name>.json."""
    print()
    for aim, held in facts["aims"].items():
        print(f"goal: {aim}: {'met' if held else 'missed'}")
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
