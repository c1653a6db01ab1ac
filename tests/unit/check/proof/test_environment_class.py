"""A lost or a new environment class is named, and is not silently a new history."""

from dataclasses import replace
from types import ModuleType

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.check.proof.environment import environment_class
from tipcflow.config.policy import ComparisonRule, Policy
from tipcflow.domain import PastRun, Status

OTHER = "cpu/amd-epyc-2/2-nodes/2-ranks"
NOW = "cpu/amd-epyc-0/2-nodes/2-ranks"


def _context(build: ModuleType, count: int, rule: str = "allow") -> CheckContext:
    policy = Policy(name="x", comparison=ComparisonRule(new_environment=rule))
    return CheckContext(policy=policy, elsewhere=(OTHER, count), run=build.run(environment=NOW))


def test_missing_facts_are_an_infra_failure(build: ModuleType) -> None:
    whole = build.facts().node_facts
    late = (whole[0].model_copy(update={"unfinished": ("machine",)}), *whole[1:])
    facts = build.facts(node_facts=late)
    (result,) = environment_class(facts, CheckContext())
    assert (result.status, result.gating) == (Status.INFRA_FAILURE, True)
    assert result.reason.startswith("node alpha did not report its machine in time")
    status, reason = verdict(facts, judge(facts, CheckContext()))
    assert status is Status.INFRA_FAILURE
    assert reason.startswith("node alpha did not report")


def test_a_dropped_history_is_reported_first(build: ModuleType) -> None:
    facts, context = build.facts(), _context(build, 5)
    (result,) = environment_class(facts, context)
    assert result.status is Status.INSUFFICIENT_DATA
    output = "new environment; not compared with 5 accepted runs of another one: hardware amd-epyc-0"
    status, reason = verdict(facts, judge(facts, context))
    assert status is Status.PASS
    assert reason.startswith(output)


def test_a_policy_may_refuse_a_new_environment(build: ModuleType) -> None:
    context = _context(build, 5, "fail")
    (result,) = environment_class(build.facts(), context)
    assert result.status is Status.INFRA_FAILURE
    (result,) = environment_class(build.facts(), replace(context, history=(PastRun(run="first"),)))
    assert result.status is Status.INSUFFICIENT_DATA, "its first run was accepted"


def test_a_young_chain_has_left_nothing_behind(build: ModuleType) -> None:
    assert environment_class(build.facts(), _context(build, 4)) == []
    assert environment_class(build.facts(), CheckContext(run=build.run())) == []
