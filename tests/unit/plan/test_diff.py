"""bash against spec."""

from collections.abc import Callable

from tipcflow.domain import Compat, Plan
from tipcflow.plan import plan_diff

Make = Callable[..., Plan]


def test_only_what_differs_is_listed(plan: Make, short_text: str) -> None:
    bash, spec = plan(short_text, compat=Compat.BASH), plan(short_text)
    rows = plan_diff(bash, spec)
    leg = next(row for row in rows if row.leg == "cpu_batch_1")
    assert "--img-path" in leg.spec
    assert "--img-path" not in leg.bash
    assert "prepare" not in {row.step for row in rows}
    assert plan_diff(spec, spec) == []


def test_a_step_that_one_side_lacks_is_listed(plan: Make, norm_text: str) -> None:
    text = norm_text.replace("192.168.0.1,192.168.0.2;0,1|0", "10.0.0.1,10.0.0.2;0,1")
    rows = plan_diff(plan(text, compat=Compat.BASH), plan(text))
    lost = [row for row in rows if row.step.endswith("_nodes_2/train")]
    assert lost
    assert all(row.bash == "" and row.spec for row in lost)
