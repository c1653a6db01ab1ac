"""Step construction from fields and legs."""

from collections.abc import Callable, Iterator
from typing import Any

from tipcflow.domain import Leg, Step, StepKind
from tipcflow.plan.source.hosts import Host
from tipcflow.plan.source.options import PlanOptions


def plain_step(**fields: Any) -> Step:
    """Return a step of the given fields."""
    return Step(**fields)


def prepared_step(options: PlanOptions, **fields: Any) -> Step:
    """Return a step of the given fields, by default after preparation."""
    first = () if fields["kind"] is StepKind.PREPARE or not options.prepare else ("prepare",)
    return plain_step(deadline_s=options.step_deadline_s, **{"after": first, **fields})


def infer_steps(
    name: str,
    legs: list[Leg],
    host: Host,
    *,
    after: tuple[str, ...],
    step: Callable[..., Step],
    **common: Any,
) -> Iterator[Step]:
    """Yield one step per device with legs; a step is `not_run` if all of its legs are."""
    for kind, device in ((StepKind.INFER_CPU, "cpu"), (StepKind.INFER_GPU, "gpu")):
        device_legs = tuple(leg for leg in legs if leg.device == device)
        if not device_legs:
            continue
        reasons = {leg.not_run for leg in device_legs}
        yield step(
            id=f"{name}/{kind.value}",
            kind=kind,
            nodes=(host.name,),
            legs=device_legs,
            after=after,
            not_run="; ".join(sorted(reasons)) if "" not in reasons else "",
            **common,
        )
