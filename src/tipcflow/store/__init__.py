"""The metrics database: schema, migrations and one repository class (see docs/architecture.md).

`Store` is loaded on first use, because SQLAlchemy is slow to import and most commands need it late or never.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tipcflow.store.leases import Lease
    from tipcflow.store.repository import Store

__all__ = ["Lease", "Store"]


def __getattr__(name: str) -> Any:
    if name == "Store":
        from tipcflow.store.repository import Store

        return Store
    if name == "Lease":
        from tipcflow.store.leases import Lease

        return Lease
    raise AttributeError(name)
