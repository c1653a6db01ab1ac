"""Whole plans as a user reads them: approved files in tests/golden/plan."""

from collections.abc import Callable

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.domain import Cluster, Compat, Plan
from tipcflow.plan import plan_rows

from .conftest import GOLDEN


def written(plan: Plan) -> str:
    """A plan as text: rows, commands, legs, substitutions and quirks."""
    out = [f"{plan.dialect} {plan.mode} {plan.compat.value} on {plan.cluster or 'no cluster'}", ""]
    for row in plan_rows(plan):
        refused = "".join(f", {count} not run: {reason}" for reason, count in row.not_run.items())
        legs = f", {row.legs} legs{refused}" if row.legs or refused else ""
        out.append(f"{row.step}: {row.kind} on {' '.join(row.nodes)} x{row.processes}{legs}")
    for step in plan.steps:
        out += ["", f"[{step.id}] after {' '.join(step.after) or '-'}"]
        out += [f"expects {path}" for path in step.expects] + [f"fetches {path}" for path in step.artefacts]
        for node, command in step.commands.items():
            env = "".join(f"{key}={value} " for key, value in command.env.items())
            out.append(f"{node}$ {env}{command.text.rstrip()}")
        for leg in step.legs:
            env = "".join(f"{key}={value} " for key, value in leg.command.env.items())
            out.append(f"{leg.id}$ {env}{leg.command.text.rstrip()}{f'  # {leg.not_run}' if leg.not_run else ''}")
    out += ["", *(f"{each.what}: {each.found} -> {each.used} ({each.because})" for each in plan.substitutions)]
    out += [f"line {each.line} {each.id}: bash: {each.bash}; spec: {each.spec}" for each in plan.quirks]
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("name", ["short", "norm"])
@pytest.mark.parametrize("compat", list(Compat))
@pytest.mark.parametrize("where", ["cpu", "gpu", "nowhere"])
def test_plan_equals_the_golden_file(
    request: pytest.FixtureRequest,
    plan: Callable[..., Plan],
    cluster: Callable[..., Cluster],
    name: str,
    compat: Compat,
    where: str,
) -> None:
    text = request.getfixturevalue(f"{name}_text")
    made = plan(text, compat=compat, cluster=None if where == "nowhere" else cluster(device=where))
    golden = GOLDEN / f"{name}_{compat.value}_{where}.txt"
    assert_golden(golden, written(made))
