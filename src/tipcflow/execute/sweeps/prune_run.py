"""Removal of all files of one run, such as logs with a secret: on this machine, in the object store, on its nodes.

Rows of the database stay. What cannot be reached from here is named.
"""

import contextlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError, Frozen, InfraError, Node, Run
from tipcflow.domain.node import SlurmSource
from tipcflow.domain.numbers.units import counted, size
from tipcflow.domain.run_documents import AirflowDocument, ClusterDocument
from tipcflow.execute.collect.kept_files import kept_by_attempt
from tipcflow.execute.node.link import Connect
from tipcflow.execute.node.listing import jobs_with_processes
from tipcflow.execute.node.session import NodeSession
from tipcflow.execute.objects import copies
from tipcflow.execute.objects.object_store import ObjectStore
from tipcflow.execute.objects.shared_events import OBJECTS as EVENTS
from tipcflow.execute.sweeps.prune import RUNS, file_sizes
from tipcflow.remote import housekeeping

if TYPE_CHECKING:
    from tipcflow.store import Store

AT_ONCE = 8


class Place(Frozen):
    """A place with files of the run.

    Attributes:
        name: the folder, object store, node or component.
        files: files that were found there, as text; '' if none were, or if the place was not searched.
        remains: why files stay there, '' if none do.
        failed: whether they stay because of an error, so that another call may remove them.
    """

    name: str
    files: str = ""
    remains: str = ""
    failed: bool = False


def refuse_active(store: "Store", run: Run) -> None:
    """Refuse a run that still writes files.

    Raises:
        ConfigError: the run has no status, or holds slots of a lease that has not expired.
    """
    now = store.now()
    is_held = any(lease.run == run.id and lease.live(now) for lease in store.leases.all())
    if run.status is None or is_held:
        raise ConfigError(
            f"run {run.id} {'holds slots' if run.status else 'has no status yet'}: it may still write files",
            key="--run",
            found=run.id,
            expected="a run that has ended",
            hint="stop the run first",
        )


def places_of_run(
    store: "Store", run: Run, home: Path, objects: ObjectStore | None, connect: Connect, *, remove: bool
) -> list[Place]:
    """Find the files of a run, whatever its age and whatever refers to it, and remove them.

    Args:
        home: TIPCFLOW_HOME of this machine.
        objects: the object store, None without one.
        remove: otherwise files are only counted, and nodes are named without a connection.
    """
    cluster = store.documents.get(run.id, ClusterDocument)
    nodes = [node for node in cluster.root.nodes if node.name in run.nodes or not run.nodes] if cluster else []
    places = [_folder(home, run, remove=remove), _copies(store, home, run, remove=remove)]
    if objects is not None:
        places.append(_objects(objects, run, remove=remove))
    if cluster is not None and cluster.root.slurm is not None:
        places.append(_allocated(cluster.root.slurm, run))
    else:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            places += pool.map(lambda node: _node(node, run, connect, remove=remove), nodes)
    return [*places, *_elsewhere(store, home, objects, run)]


def _folder(home: Path, run: Run, *, remove: bool) -> Place:
    folder = home / RUNS / run.id
    sizes = file_sizes(folder)
    files = _text(sizes, "file")
    try:
        if remove and folder.is_dir():
            shutil.rmtree(folder)
    except OSError as error:
        return Place(name=str(folder), files=files, remains=_reason(error), failed=True)
    return Place(name=str(folder), files=files)


def _copies(store: "Store", home: Path, run: Run, *, remove: bool) -> Place:
    """Copies of the run's objects, by the hashes of its files."""
    folder = home / copies.FOLDER
    hashes = {sha256 for files in kept_by_attempt(store, run.id).values() for sha256 in files.values()}
    paths = [path for sha256 in sorted(hashes) for path in (folder / sha256).glob("*") if path.is_file()]
    sizes = [path.stat().st_size for path in paths]
    try:
        for path in paths if remove else ():
            path.unlink(missing_ok=True)
    except OSError as error:
        return Place(name=str(folder), files=_text(sizes, "file"), remains=_reason(error), failed=True)
    return Place(name=str(folder), files=_text(sizes, "file"))


def _objects(objects: ObjectStore, run: Run, *, remove: bool) -> Place:
    name = f"{RUNS}/{run.id} and {EVENTS}/{run.id} in {objects.url}"
    files = ""
    try:
        stored = [each for prefix in (RUNS, EVENTS) for each in objects.below(f"{prefix}/{run.id}")]
        files = _text([each.bytes for each in stored], "object")
        if remove:
            objects.remove(each.name for each in stored)
    except InfraError as error:
        return Place(name=name, files=files, remains=error.message, failed=True)
    return Place(name=name, files=files)


def _node(node: Node, run: Run, connect: Connect, *, remove: bool) -> Place:
    name = f"{_folders(run)} in {node.workspace} of node {node.name} ({node.address})"
    if not remove:
        return Place(name=name, files="folders, if they exist")
    with contextlib.closing(NodeSession(node, connect)) as session:
        try:
            # Without creating a workspace: a node without the run is not changed.
            listing = session.call(housekeeping.list_runs(node), "list its run folders")
            if run.id not in listing.decode(errors="replace").splitlines():
                return Place(name=name)
            session.prepare()
            if jobs_with_processes(session.list_ours(), run.id):
                why = "the run has processes there; `tipcflow nodes reap` ends them"
                return Place(name=name, files="folders", remains=why, failed=True)
            session.remove_run(run.id)
        except InfraError as error:
            return Place(name=name, remains=error.message, failed=True)
    return Place(name=name, files="folders")


def _allocated(source: SlurmSource, run: Run) -> Place:
    name = f"{_folders(run)} in {source.workspace} of {', '.join(run.nodes) or 'its nodes'}"
    why = "the nodes are reachable within an allocation of Slurm only: remove the run's folders there yourself"
    return Place(name=name, remains=why)


def _folders(run: Run) -> str:
    return f"{RUNS}/{run.id} and jobs/{run.id}"


def _elsewhere(store: "Store", home: Path, objects: ObjectStore | None, run: Run) -> list[Place]:
    """Return the places that no command reaches from here."""
    if objects is None:
        machines = f"on other machines, if {home} is not the TIPCFLOW_HOME of all: repeat the command there"
    else:
        machines = (
            "workers, triggerers and api-servers have copies in their own TIPCFLOW_HOME: repeat the command there"
        )
    places = [Place(name="other machines", remains=machines)]
    dag_run = store.documents.get(run.id, AirflowDocument)
    if dag_run is not None:
        folder = f"AIRFLOW_HOME/logs/dag_id={dag_run.dag_id}/run_id={dag_run.run_id}"
        why = "the output of jobs is also in task logs, with *** for secrets that were recognized"
        places.append(Place(name=folder, remains=why))
    rows = "results, the certificate, and lines of logs in reasons and evidence, with *** for recognized secrets"
    places.append(Place(name="metrics database", remains=rows))
    return [*places, Place(name="backups", remains="what they have of the run")]


def _text(sizes: list[int], noun: str) -> str:
    return f"{counted(len(sizes), noun)} ({size(sum(sizes))})" if sizes else ""


def _reason(error: OSError) -> str:
    return f"{error.strerror or error} ({error.filename})"
