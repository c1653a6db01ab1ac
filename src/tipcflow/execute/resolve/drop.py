"""Legs that a run leaves out on request, for example because of the budget of a pull request."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from tipcflow.domain import ConfigError, LegKey, Plan, Step
from tipcflow.domain.numbers.units import first_names

DROPPED = "dropped by the request"
_SHOWN = 4


def without_legs(plan: Plan, globs: Sequence[str]) -> Plan:
    """Return the plan in which the legs `step/leg` that match a glob are `not_run`.

    Raises:
        ConfigError: a glob matches no leg.
    """
    if not globs:
        return plan
    names = [str(LegKey(step.id, leg.id)) for step in plan.steps for leg in step.legs]
    for glob in globs:
        if not any(_matches(name, glob) for name in names):
            expected = first_names(names, _SHOWN) or "a file with inference legs"
            raise ConfigError("no leg matches", key="drop", found=glob, expected=expected)
    return plan.model_copy(update={"steps": tuple(_without(step, globs) for step in plan.steps)})


def _without(step: Step, globs: Sequence[str]) -> Step:
    legs = tuple(
        leg.model_copy(update={"not_run": DROPPED})
        if not leg.not_run and any(_matches(str(LegKey(step.id, leg.id)), glob) for glob in globs)
        else leg
        for leg in step.legs
    )
    return step.model_copy(update={"legs": legs})


def _matches(name: str, glob: str) -> bool:
    return name == glob or fnmatchcase(name, glob)
