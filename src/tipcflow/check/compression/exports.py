"""Exports of a run with and without compression."""

from tipcflow.domain import Facts, Status, Step, StepKind, Variant


def compressed_exports(facts: Facts) -> list[Step]:
    """Return the exports that passed and declare a compressed model."""
    return [step for step in _passed(facts) if step.compression]


def plain_exports(facts: Facts, step: Step) -> list[Step]:
    """Return the exports without compression that passed, those whose training is most like the step's first."""
    variants = {variant.id: variant for variant in facts.plan.variants}
    own = variants.get(step.variant)
    plain = [other for other in _passed(facts) if not other.compression]
    return sorted(
        plain, key=lambda other: (-_alike(own, variants.get(other.variant)), other.repeat != step.repeat)
    )


def _passed(facts: Facts) -> list[Step]:
    return [
        step
        for step in facts.plan.steps
        if step.kind is StepKind.EXPORT and facts.step_status.get(step.id) is Status.PASS
    ]


def _alike(own: Variant | None, other: Variant | None) -> int:
    """How many settings two variants share; any two exports without a training are alike."""
    if own is None or other is None:
        return 0
    return sum(
        (own.devices == other.devices, own.node_count == other.node_count, own.precision == other.precision)
    )
