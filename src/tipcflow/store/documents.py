"""Small JSON documents of a run, node facts and check results."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import delete, insert, select

from tipcflow.domain import CheckResult, NodeFacts
from tipcflow.store.base import StoreBase, upsert
from tipcflow.store.schema import check_results, documents, environments, runs


class DocumentsMixin(StoreBase):
    """Tables documents, environments and check_results."""

    def put_document(self, run_id: str, name: str, obj: Any) -> None:
        """Store a JSON value or domain type under a name (`predictions`, `certificate` …), replacing an earlier
        one."""
        row = {"run": run_id, "name": name, "body": obj, "updated_at": time.time()}
        with self._write() as connection:
            connection.execute(upsert(connection, documents), row)

    def merge_document(
        self, run_id: str, name: str, entries: Mapping[str, Any], *, without: Collection[str] = ()
    ) -> None:
        """Merge entries into a document that is a JSON object; concurrent writers lose no entries.

        Args:
            without: keys whose earlier entries are removed, unless `entries` replaces them.
        """
        if not entries and not without:
            return
        mine = (documents.c.run == run_id, documents.c.name == name)
        with self._write() as connection:
            # Lock the run's row: the document itself may not exist yet.
            connection.execute(select(runs.c.id).where(runs.c.id == run_id).with_for_update())
            before = connection.execute(select(documents.c.body).where(*mine)).scalar() or {}
            kept = {key: value for key, value in before.items() if key not in without}
            if not entries and kept == before:
                return
            row = {"run": run_id, "name": name, "body": {**kept, **entries}, "updated_at": time.time()}
            connection.execute(upsert(connection, documents), row)

    def document(self, run_id: str, name: str) -> Any:
        """Return the document, None if it does not exist."""
        query = select(documents.c.body).where(documents.c.run == run_id, documents.c.name == name)
        with self._read() as connection:
            return connection.execute(query).scalar()

    def several_documents(self, run_id: str, names: Iterable[str]) -> dict[str, Any]:
        """Return the existing documents of these names."""
        query = select(documents.c.name, documents.c.body)
        query = query.where(documents.c.run == run_id, documents.c.name.in_(list(names)))
        with self._read() as connection:
            return {name: body for name, body in connection.execute(query) if body is not None}

    def documents(self, run_id: str) -> list[str]:
        """Return the names of a run's documents, sorted."""
        query = select(documents.c.name).where(documents.c.run == run_id)
        with self._read() as connection:
            return sorted(connection.execute(query).scalars())

    def save_node_facts(self, run_id: str, facts: NodeFacts | Iterable[NodeFacts]) -> None:
        """Store facts of nodes; new facts of a node replace its earlier ones."""
        several = [facts] if isinstance(facts, NodeFacts) else facts
        rows = [_environment(run_id, node) for node in several]
        if rows:
            with self._write() as connection:
                connection.execute(upsert(connection, environments), rows)

    def node_facts(self, run_id: str) -> list[NodeFacts]:
        """Return the facts of the run's nodes, by node name."""
        query = select(environments.c.facts).where(environments.c.run == run_id).order_by(environments.c.node)
        with self._read() as connection:
            return [NodeFacts.model_validate(facts) for facts in connection.execute(query).scalars()]

    def set_check_results(self, run_id: str, results: Iterable[CheckResult]) -> None:
        """Store the check results of a judgement; they replace all earlier ones."""
        seen: Counter[tuple[str, ...]] = Counter()
        rows = []
        for position, result in enumerate(results):
            question = (result.check, result.step, result.leg, result.metric)
            fields = result.model_dump(exclude={"check", "values"})
            fields |= {"run": run_id, "name": result.check, "details": result.values}
            rows.append({**fields, "position": position, "ordinal": seen[question]})
            seen[question] += 1
        with self._write() as connection:
            connection.execute(delete(check_results).where(check_results.c.run == run_id))
            if rows:
                connection.execute(insert(check_results), rows)

    def check_results(self, run_id: str) -> list[CheckResult]:
        """Return the check results of the last judgement, in its order."""
        query = select(check_results).where(check_results.c.run == run_id).order_by(check_results.c.position)
        with self._read() as connection:
            rows = connection.execute(query).mappings().all()
        return [
            CheckResult(
                check=row["name"],
                values=row["details"],
                **{name: row[name] for name in CheckResult.model_fields if name in row},
            )
            for row in rows
        ]


def _environment(run_id: str, facts: NodeFacts) -> dict[str, Any]:
    columns = {name: getattr(facts, name) for name in NodeFacts.model_fields if name in environments.c}
    models = sorted({str(gpu.get("name") or gpu.get("model") or "") for gpu in facts.gpus} - {""})
    return columns | {
        "run": run_id,
        "gpu_model": ", ".join(models),
        "gpu_count": len(facts.gpus),
        "facts": facts,
    }
