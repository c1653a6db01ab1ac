"""CPU use of a real dag-processor with many chains at the shipped settings, and missing DAGs.

The scheduler, the api-server and a metadata database in SQLite run beside it; no run is started. For some
minutes all cores are busy with something else, and a reading of all files falls into that time when it is long
enough.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from many_dags_catalog import Made

from devcluster.airflow.settings_file import read_settings
from devcluster.airflow.stack import Stack, airflow_stack

COMPONENTS = ("dag-processor", "scheduler", "api-server")
AIM_CORES = 0.5
POLL_S = 5.0
LOAD_S = 120.0
LISTED_DEADLINE_S = 600.0
INTERVAL = "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL"
_TICKS = os.sysconf("SC_CLK_TCK")


def processor(made: Made, folder: Path, *, minutes: float, chains: int) -> dict[str, Any]:
    """Run it for the given time and print a summary. Returns the figures and which goals they meet.

    The time begins when the components are healthy: the first reading of all files is part of the average.
    """
    interval = next(float(s.value) for s in read_settings(made.configs / "airflow.env") if s.key == INTERVAL)
    total = minutes * 60
    load_at = max(0.0, min(interval - LOAD_S / 2, total - LOAD_S))
    with airflow_stack(
        folder / "airflow", dags=made.dags, configs=made.configs, components=COMPONENTS, report=print
    ) as stack:
        looks = list(watch(stack, total, load_at))
    report = summary(looks, chains, interval, load_at)
    show(report)
    return report


def watch(stack: Stack, total: float, load_at: float) -> Iterator[dict[str, Any]]:
    """One sample every few seconds; a load on all cores starts at `load_at`."""
    begun = time.monotonic()
    with httpx.Client(base_url=stack.url, timeout=LISTED_DEADLINE_S) as client:
        login(client, stack)
        while (now := time.monotonic() - begun) < total:
            loaded = load_at <= now < load_at + LOAD_S
            with busy(loaded):
                until = min(total, load_at + LOAD_S if loaded else load_at if now < load_at else total)
                yield from looking(client, stack, begun, until, loaded)


def looking(
    client: httpx.Client, stack: Stack, begun: float, until: float, loaded: bool
) -> Iterator[dict[str, Any]]:
    """Sample until a time, in seconds since `begun`."""
    while (now := time.monotonic() - begun) < until:
        stack.check()
        requested = time.monotonic()
        listed = count(client, stack)
        yield {
            "at_s": now,
            "loaded": loaded,
            "listed": listed,
            "response_s": time.monotonic() - requested,
            "cpu_s": {name: tree_cpu(pid) for name, pid in stack.pids.items() if name in COMPONENTS},
            "mib": {name: tree_memory(pid) for name, pid in stack.pids.items() if name in COMPONENTS},
        }
        time.sleep(max(0.0, min(POLL_S, until - (time.monotonic() - begun))))


@contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Keep all cores busy."""
    spinning = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range((os.cpu_count() or 1) if wanted else 0)
    ]
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.wait()


def login(client: httpx.Client, stack: Stack) -> None:
    """A token for the REST API."""
    response = client.post("/auth/token", json={"username": stack.user, "password": stack.password})
    response.raise_for_status()
    client.headers["Authorization"] = f"Bearer {response.json()['access_token']}"


def count(client: httpx.Client, stack: Stack) -> int:
    """Number of chains that Airflow lists, without those marked as missing."""
    response = client.get("/api/v2/dags", params={"limit": 1, "dag_id_pattern": "suite_%", "exclude_stale": True})
    if response.status_code == 401:
        login(client, stack)
        return count(client, stack)
    response.raise_for_status()
    return int(response.json()["total_entries"])


def tree_cpu(root: int) -> float:
    """CPU seconds of a process, its running descendants, and the children that it waited for."""
    ticks = 0
    for pid in tree(root):
        fields = stat(pid)
        ticks += sum(map(int, fields[11:15])) if fields else 0
    return ticks / _TICKS


def tree_memory(root: int) -> float:
    """Resident memory of a process and its descendants in MiB; shared memory is counted once (PSS)."""
    total = 0.0
    for pid in tree(root):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return total


def tree(root: int) -> list[int]:
    """A process and its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := stat(int(entry.name))):
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, rest = [], [root]
    while rest:
        pid = rest.pop()
        found.append(pid)
        rest += parents.get(pid, [])
    return found


def stat(pid: int) -> list[str]:
    """Fields of /proc/<pid>/stat from the state on; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def summary(looks: list[dict[str, Any]], chains: int, interval: float, load_at: float) -> dict[str, Any]:
    """The figures of all samples."""
    last = looks[-1]
    seconds = last["at_s"] - looks[0]["at_s"]
    complete = next((number for number, look in enumerate(looks) if look["listed"] >= chains), None)
    after = [look["listed"] for look in looks[complete:]] if complete is not None else []
    cores = {name: (last["cpu_s"][name] - looks[0]["cpu_s"][name]) / seconds for name in COMPONENTS}
    stayed = bool(after) and min(after) >= chains
    return {
        "minutes": seconds / 60,
        "cores": cores,
        "all_listed_s": looks[complete]["at_s"] if complete is not None else None,
        "least_listed_after": min(after, default=0),
        "response_s": {
            "median": statistics.median(look["response_s"] for look in looks),
            "longest": max(look["response_s"] for look in looks),
        },
        "peak_mib": {name: max(look["mib"][name] for look in looks) for name in COMPONENTS},
        "min_file_process_interval_s": interval,
        "loaded_from_s": load_at,
        "aims": {
            f"dag-processor under {AIM_CORES} cores on average": stayed and cores["dag-processor"] < AIM_CORES,
            f"all {chains} chains are listed, and stay": stayed,
        },
        "looks": [
            {"at_s": look["at_s"], "listed": look["listed"], "loaded": look["loaded"], "cpu_s": look["cpu_s"]}
            for look in looks
        ],
    }


def show(report: dict[str, Any]) -> None:
    """Print the summary."""
    print(f"\n{'component':<16}{'cores':>7}{'MiB (most)':>12}   over {report['minutes']:.1f} min")
    for name in COMPONENTS:
        print(f"{name:<16}{report['cores'][name]:>7.2f}{report['peak_mib'][name]:>12.0f}")
    listed = report["all_listed_s"]
    print(f"all listed after {f'{listed:.0f} s' if listed is not None else '(never)'}")
    print(f"fewest listed from then on: {report['least_listed_after']}")
    took = report["response_s"]
    print(f"an API response: {took['median']:.2f} s, the longest {took['longest']:.2f} s")
