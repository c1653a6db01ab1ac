"""bash against spec."""

from collections.abc import Callable

from tipcflow.domain import Cluster, Compat, Plan
from tipcflow.plan import differences

Make = Callable[..., Plan]


def test_only_differences_are_listed(plan: Make, short_text: str) -> None:
    bash, spec = plan(short_text, compat=Compat.BASH), plan(short_text)
    found = differences(bash, spec)
    leg = next(each for each in found if each.leg == "cpu_batch_1")
    assert "--img-path" in (leg.spec or "")
    assert "--img-path" not in (leg.bash or "")
    assert [quirk.id for quirk in leg.reasons] == ["image-dropped"]
    assert "prepare" not in {each.step for each in found}
    assert differences(spec, spec) == []


def test_a_node_that_one_side_lacks_is_listed(plan: Make, norm_text: str) -> None:
    text = norm_text.replace("192.168.0.1,192.168.0.2;0,1|0", "10.0.0.1,10.0.0.2;0,1")
    lost = [each for each in differences(plan(text, compat=Compat.BASH), plan(text)) if each.node == 1]
    assert {each.step.rpartition("/")[2] for each in lost} == {"train"}
    assert all(each.bash is None and each.spec for each in lost)
    assert all([quirk.id for quirk in each.reasons] == ["ips-by-length"] for each in lost)


def test_gpus_that_become_processes_are_a_reason(
    plan: Make, norm_text: str, cluster: Callable[..., Cluster]
) -> None:
    both = (plan(norm_text, compat=compat, cluster=cluster()) for compat in (Compat.BASH, Compat.SPEC))
    found = differences(*both)
    train = next(each for each in found if each.step.endswith("gpus_0,1_autocast_null/train"))
    assert "--nproc_per_node=2" in (train.spec or "")
    assert "cpu-nodes" in {quirk.id for quirk in train.reasons}
    assert [each.step for each in found if not each.reasons] == []
