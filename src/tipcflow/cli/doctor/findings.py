"""What the doctor says about one thing."""

from tipcflow.domain import Frozen, InfraError


class Finding(Frozen):
    """One thing that was looked at.

    Attributes:
        where: `here`, or the node.
        what: the thing.
        ok: whether it is as it should be.
        found: what there is.
        mend: what to do about it, '' when it is fine.
    """

    where: str
    what: str
    ok: bool
    found: str = ""
    mend: str = ""

    @property
    def word(self) -> str:
        """`ok` or `mend`."""
        return "ok" if self.ok else "mend"

    @property
    def text(self) -> str:
        """What there is, and what to do."""
        return ": ".join(part for part in (self.found, self.mend) if part)


def of_error(where: str, what: str, error: InfraError) -> Finding:
    """A failure as a finding."""
    return Finding(where=where, what=what, ok=False, found=error.message, mend=error.hint)
