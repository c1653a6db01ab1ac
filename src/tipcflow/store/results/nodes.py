"""Facts of the nodes of a run."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from tipcflow.domain import NodeFacts
from tipcflow.store.base import Part, upsert
from tipcflow.store.schema import environments


class Nodes(Part):
    """Table environments."""

    def save(self, run_id: str, facts: NodeFacts | Iterable[NodeFacts]) -> None:
        """Store facts of nodes; new facts of a node replace its earlier ones."""
        all_facts = [facts] if isinstance(facts, NodeFacts) else facts
        rows = [environment_row(run_id, node) for node in all_facts]
        if rows:
            with self._write() as connection:
                connection.execute(upsert(connection, environments), rows)

    def facts(self, run_id: str) -> list[NodeFacts]:
        """Return the facts of the run's nodes, by node name."""
        query = select(environments.c.facts).where(environments.c.run == run_id).order_by(environments.c.node)
        with self._read() as connection:
            return [NodeFacts.model_validate(facts) for facts in connection.execute(query).scalars()]


def environment_row(run_id: str, facts: NodeFacts) -> dict[str, Any]:
    """Return the row of a node's facts."""
    columns = {name: getattr(facts, name) for name in NodeFacts.model_fields if name in environments.c}
    models = sorted({str(gpu.get("name") or gpu.get("model") or "") for gpu in facts.gpus} - {""})
    return columns | {
        "run": run_id,
        "gpu_model": ", ".join(models),
        "gpu_count": len(facts.gpus),
        "facts": facts,
    }
