"""Results of the checks of a run."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import delete, insert, select

from tipcflow.domain import CheckResult
from tipcflow.store.base import Part
from tipcflow.store.schema import check_results


class Checks(Part):
    """Table check_results."""

    def replace(self, run_id: str, results: Iterable[CheckResult]) -> None:
        """Store the check results of a judgement; they replace all earlier ones."""
        rows = check_rows(run_id, results)
        with self._write() as connection:
            connection.execute(delete(check_results).where(check_results.c.run == run_id))
            if rows:
                connection.execute(insert(check_results), rows)

    def results(self, run_id: str) -> list[CheckResult]:
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


def check_rows(run_id: str, results: Iterable[CheckResult]) -> list[dict[str, Any]]:
    """Return the rows of check results, in their order."""
    seen: Counter[tuple[str, ...]] = Counter()
    rows = []
    for position, result in enumerate(results):
        question = (result.check, result.step, result.leg, result.metric)
        fields = result.model_dump(exclude={"check", "values"})
        fields |= {"run": run_id, "name": result.check, "details": result.values}
        rows.append({**fields, "position": position, "ordinal": seen[question]})
        seen[question] += 1
    return rows
