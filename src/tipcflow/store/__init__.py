"""The metrics database: schema, migrations and `Store`, in parts by what they store (see docs/reference/store.md).

`Store` is loaded on first use, because SQLAlchemy is slow to import and most commands need it late or never.

Public: `__all__`, `engine`, `migrate`, `names`, `outbox`, `recorded`, `rehearsal`, `schema`, `trouble`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tipcflow.store.baselines import Baseline
    from tipcflow.store.leases.queue import Place
    from tipcflow.store.leases.rows import Lease, LeaseRequest
    from tipcflow.store.repository import Store

__all__ = ["Baseline", "Lease", "LeaseRequest", "Place", "Store"]


def __getattr__(name: str) -> Any:
    if name == "Store":
        from tipcflow.store.repository import Store

        return Store
    if name in ("Lease", "LeaseRequest"):
        from tipcflow.store.leases import rows as lease_rows

        return getattr(lease_rows, name)
    if name == "Baseline":
        from tipcflow.store.baselines import Baseline

        return Baseline
    if name == "Place":
        from tipcflow.store.leases.queue import Place

        return Place
    raise AttributeError(name)
