"""`verify` reports any change of a certificate: every single field, and what a forger forgets."""

import copy
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.check.baseline.detector_limits import gate_section
from tipcflow.check.evidence import evidence_section
from tipcflow.config.policy import Policy
from tipcflow.domain import MetricKey, PastRun
from tipcflow.report import as_text, certificate, verify
from tipcflow.report.canonical import sha256
from tipcflow.report.certificate import LINKS, links

Path = tuple[str | int, ...]
_MADE: list[dict[str, Any]] = []


def whole(build: ModuleType) -> dict[str, Any]:
    """A certificate that has something in every section, as a file holds it."""
    if not _MADE:
        past = tuple(
            PastRun(run=f"r{n}", medians={MetricKey("v/train", "", "batch_cost"): 0.05 + n / 1e4})
            for n in range(9)
        )
        facts = build.facts(predictions={**build.predictions(), build.EXPORT: {"a.png": (0.9, 0.1)}})
        results = judge(facts, CheckContext(history=past, run=build.run()))
        status, reason = verdict(facts, results)
        made = certificate(
            facts,
            build.run(status=status, reason=reason),
            results,
            gate=gate_section(past, Policy(name="p"), within_s=0.02),
            evidence=evidence_section(facts, CheckContext(history=past, run=build.run())),
            files={"v_train/alpha/logs/main.log": "aa" * 32},
            versions={"tipcflow": "0.1.0"},
        )
        _MADE.append(json.loads(as_text(made)))
    return _MADE[0]


def places(value: Any, here: Path = ()) -> Iterator[Path]:
    """Every value in a JSON document, containers included."""
    if here:
        yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*here, key))


def at(document: Any, place: Path) -> Any:
    for key in place:
        document = document[key]
    return document


def otherwise(value: Any) -> list[Any]:
    """Values of the same and of other kinds, all of them others."""
    made: list[Any] = [None, True, False, 0, 1.5, "", "pass", [], {}]
    if isinstance(value, bool):
        made.append(not value)
    elif isinstance(value, int | float):
        made += [value + 1, -value, value * (1 + 1e-12)]
    elif isinstance(value, str):
        made += [value + " ", value[:-1], value.upper()]
    elif isinstance(value, list):
        made += [value[:-1], value[::-1], [*value, value[0]] if value else [None]]
    elif isinstance(value, dict):
        made += [dict(list(value.items())[1:]), {**value, "more": 1}]
    return [one for one in made if json.dumps(one) != json.dumps(value)]


def test_complete_certificate_fills_every_section_and_is_valid(build: ModuleType) -> None:
    made = whole(build)
    assert all(made[name] for name in LINKS)
    assert verify(made) == []


@pytest.mark.slow
def test_every_single_field_counts(build: ModuleType) -> None:
    """All of them, each once: removed, or changed a little."""
    made = whole(build)
    every, text = list(places(made)), json.dumps(made)
    assert len(every) > 300
    for number, place in enumerate(every):
        forged = json.loads(text)
        holder, key = at(forged, place[:-1]), place[-1]
        changes = otherwise(holder[key])
        if number % 2:
            holder[key] = changes[number % len(changes)]
        else:
            del holder[key]
        assert verify(forged), place


@pytest.mark.slow
@given(st.data())
def test_any_change_is_found(build: ModuleType, data: st.DataObject) -> None:
    forged = copy.deepcopy(whole(build))
    place = data.draw(st.sampled_from(list(places(forged))))
    holder = at(forged, place[:-1])
    holder[place[-1]] = data.draw(st.sampled_from(otherwise(holder[place[-1]])))
    assert verify(forged), place


@pytest.mark.parametrize("section", LINKS)
def test_a_new_hash_over_the_whole_does_not_hide_a_changed_section(build: ModuleType, section: str) -> None:
    forged = copy.deepcopy(whole(build))
    forged[section] = otherwise(forged[section])[-1]
    forged["sha256"] = sha256({key: value for key, value in forged.items() if key != "sha256"})
    assert f"section {section} was changed after the certificate was written" in verify(forged)


def resealed(forged: dict[str, Any]) -> dict[str, Any]:
    forged["links"] = links(forged)
    forged["sha256"] = sha256({key: value for key, value in forged.items() if key != "sha256"})
    return forged


def test_resealed_certificate_with_a_forged_verdict_is_detected(build: ModuleType) -> None:
    forged = copy.deepcopy(whole(build))
    forged["legs"][0]["status"] = "failed"
    problems = verify(resealed(forged))
    assert "stored verdict pass; content evaluates to failed" in problems
    assert "the verdict's counts do not match its steps, legs and checks" in problems
    fewer = copy.deepcopy(whole(build))
    fewer["checks"].pop()
    assert verify(resealed(fewer)) == ["the verdict's counts do not match its steps, legs and checks"]


def test_certificates_from_before_the_gate_hold(build: ModuleType) -> None:
    older = copy.deepcopy(whole(build))
    del older["gate"]
    assert verify(resealed(older)) == []
    assert [one["section"] for one in older["links"]] == [name for name in LINKS if name != "gate"]
