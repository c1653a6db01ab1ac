"""Earlier runs, put straight into the database: a history without the weeks that it takes."""

from tipcflow.domain import Run, Status
from tipcflow.execute.verdict.judge import FOUND
from tipcflow.store import Store


def remember(store: Store, like: Run, *, runs: int, chain: str = "", probes: bool = False) -> None:
    """Earlier accepted runs in which everything was as in this one.

    Args:
        chain: whose runs they are; '' for the run's own.
        probes: whether they have the probes of their nodes: without these no busy node explains anything.
    """
    like = like.model_copy(update={"chain": chain or like.chain})
    plan = store.plan(like.id).model_copy(update={"chain": like.chain})
    measured = [one for one in store.measurements(like.id) if probes or not one.metric.startswith("probe.")]
    for number in range(1, runs + 1):
        run = f"{like.chain.rpartition('/')[2]}-{number}-{like.id}"
        at = like.created_at - 1000.0 * (runs + 1 - number)
        store.create_run(like.model_copy(update={"id": run, "created_at": at, "status": None, "ended_at": None}))
        store.replace_plan(run, plan)
        for step in {one.step for one in measured}:
            store.open_attempt(run, step, like.nodes, at)
        store.add_measurements([one.model_copy(update={"run": run}) for one in measured])
        for name in (FOUND, "lines"):
            if kept := store.document(like.id, name):
                store.put_document(run, name, kept)
        store.finish_run(run, Status.PASS, "", at + 60)
