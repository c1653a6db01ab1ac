"""What runs recorded for the selection of chains: files that they opened, and regressions that it would miss."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import select

from tipcflow.config.run_documents import OpenedDocument, SelectorDocument
from tipcflow.domain import Run
from tipcflow.store.base import Part
from tipcflow.store.schema import documents, runs

_AT_ONCE = 500


@dataclass(frozen=True)
class MeasuredRun:
    """A run that got worse, and what the selection would have done."""

    run: Run
    measured: SelectorDocument


class OpenedFiles(Part):
    """Read-only queries over the documents `opened` and `selector`."""

    def has(self, chain: str, mode: str, commit: str) -> bool:
        """Return whether a run of the chain recorded the files of that commit."""
        query = select(runs.c.id).join(documents, documents.c.run == runs.c.id)
        query = query.where(documents.c.name == OpenedDocument.NAME, documents.c.body.is_not(None))
        query = query.where(runs.c.chain == chain, runs.c.mode == mode, runs.c.suite_commit == commit)
        with self._read() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def newest(self, chains: Iterable[str], modes: Iterable[str]) -> dict[str, OpenedDocument]:
        """Return chain -> its newest record in the first of the modes that has one."""
        wanted, order = sorted(set(chains)), tuple(dict.fromkeys(modes))
        newest: dict[tuple[str, str], str] = {}
        with self._read() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                query = (
                    select(runs.c.chain, runs.c.mode, runs.c.id)
                    .join(documents, documents.c.run == runs.c.id)
                    .where(documents.c.name == OpenedDocument.NAME, documents.c.body.is_not(None))
                    .where(runs.c.chain.in_(wanted[start : start + _AT_ONCE]), runs.c.mode.in_(order))
                    .order_by(runs.c.created_at, runs.c.id)
                )
                newest.update({(chain, mode): run for chain, mode, run in connection.execute(query)})
            best = {
                chain: next(run for mode in order if (run := newest.get((chain, mode))))
                for chain in {chain for chain, _ in newest}
            }
            query = select(documents.c.run, documents.c.body).where(documents.c.name == OpenedDocument.NAME)
            bodies: dict[str, object] = {}
            ids = sorted(best.values())
            for start in range(0, len(ids), _AT_ONCE):
                some = query.where(documents.c.run.in_(ids[start : start + _AT_ONCE]))
                bodies.update({row.run: row.body for row in connection.execute(some)})
        return {chain: OpenedDocument.load(run, bodies[run]) for chain, run in best.items()}

    def measured(self, since: float) -> list[MeasuredRun]:
        """Return the runs since a time (seconds since the epoch) whose selection was measured, newest first."""
        query = (
            select(runs, documents.c.body)
            .join(documents, documents.c.run == runs.c.id)
            .where(documents.c.name == SelectorDocument.NAME, documents.c.body.is_not(None))
            .where(runs.c.created_at >= since)
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        )
        with self._read() as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
        return [
            MeasuredRun(Run.model_validate(row), SelectorDocument.load(row["id"], body))
            for row in rows
            for body in [row.pop("body")]
        ]
