"""The mark of runs that no node executed: `tipcflow demo --history` generates them."""

from typing import ClassVar

from tipcflow.domain.run_documents import Fields


class GeneratedDocument(Fields):
    """A run with this document is synthetic: its numbers were drawn, not measured; `by` is the command."""

    NAME: ClassVar[str] = "generated"
    by: str
