"""The result of one check of the doctor."""

from tipcflow.domain import Frozen, TipcflowError


class Finding(Frozen):
    """The result of one check.

    Attributes:
        where: `here`, or the node.
        what: the subject of the check.
        ok: whether the check passed.
        found: the actual state.
        fix: how to fix it, '' when the check passed.
    """

    where: str
    what: str
    ok: bool
    found: str = ""
    fix: str = ""

    @property
    def word(self) -> str:
        """`ok` or `fix`."""
        return "ok" if self.ok else "fix"

    @property
    def text(self) -> str:
        """The actual state, and the fix."""
        return ": ".join(part for part in (self.found, self.fix) if part)


def of_error(where: str, what: str, error: TipcflowError) -> Finding:
    """The finding of an error."""
    return Finding(where=where, what=what, ok=False, found=error.message, fix=error.hint)
