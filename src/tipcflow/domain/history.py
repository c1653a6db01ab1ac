"""What is remembered of an earlier run when a later one is judged."""

from tipcflow.domain.base import Frozen


class PastRun(Frozen):
    """One accepted run of the same chain, mode and environment class.

    Attributes:
        seed, framework, suite_sha256: what has to be equal before losses can be expected to be.
        medians: 'step|leg|metric' -> median over all samples of the run, in the metric's unit.
        losses: 'step|node|rank' -> the training losses in the order they were logged.
    """

    run: str
    seed: int | None = None
    framework: str = ""
    suite_sha256: str = ""
    medians: dict[str, float] = {}
    losses: dict[str, tuple[float, ...]] = {}
