"""Earlier runs, put straight into the database: a history without the weeks that it takes."""

from tipcflow.domain import Run, Status
from tipcflow.domain.run_documents import FoundDocument, LinesDocument
from tipcflow.store import Store


def remember(store: Store, like: Run, *, runs: int, chain: str = "", probes: bool = False) -> None:
    """Earlier accepted runs in which everything was as in this one.

    Args:
        chain: whose runs they are; '' for the run's own.
        probes: whether they have the probes of their nodes: without these no busy node explains anything.
    """
    like = like.model_copy(update={"chain": chain or like.chain})
    plan = store.plans.get(like.id).model_copy(update={"chain": like.chain})
    measured = [one for one in store.measurements.of(like.id) if probes or not one.metric.startswith("probe.")]
    for number in range(1, runs + 1):
        run = f"{like.chain.rpartition('/')[2]}-{number}-{like.id}"
        at = like.created_at - 1000.0 * (runs + 1 - number)
        store.runs.create(like.model_copy(update={"id": run, "created_at": at, "status": None, "ended_at": None}))
        store.plans.replace(run, plan)
        for step in {one.step for one in measured}:
            store.attempts.open(run, step, like.nodes, at)
        store.measurements.add([one.model_copy(update={"run": run}) for one in measured])
        for kind in (FoundDocument, LinesDocument):
            if kept := store.documents.get(like.id, kind):
                store.documents.put(run, kept)
        store.runs.finish(run, Status.PASS, "", at + 60)
