"""The stored record of the nodes that a run had before it moved to others."""

from collections.abc import Sequence
from typing import ClassVar

from tipcflow.domain.run_documents import Fields


class MovedDocument(Fields):
    """The nodes of a run before it moved to others.

    Attributes:
        planned: names of the nodes of its first plan, in its order.
    """

    NAME: ClassVar[str] = "moved"
    planned: tuple[str, ...] = ()

    def node(self, name: str, nodes: Sequence[str]) -> str:
        """Return the node that a node of the first plan has become.

        Args:
            nodes: the nodes of the plan.
        """
        return nodes[self.planned.index(name)] if name in self.planned else name
