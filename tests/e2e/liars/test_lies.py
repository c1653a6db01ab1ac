"""No lie is green, and each verdict names the lie (docs/liars.md)."""

import re
from pathlib import Path

import pytest
from tests.e2e.liars.conftest import adopt
from tests.support.certify import Site
from tests.support.liars.lie import Lie
from tests.support.liars.table import LIES, saw

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def _param(lie: Lie) -> object:
    marks = () if lie.everyday else (pytest.mark.full,)
    return pytest.param(lie, id=re.sub(r"\W+", "_", lie.name), marks=marks)


def test_at_least_forty_lies_are_listed() -> None:
    assert len(LIES) >= 40
    assert len({lie.name for lie in LIES}) == len(LIES)


@pytest.mark.parametrize("lie", [_param(lie) for lie in LIES])
def test_a_lie_is_not_green_and_is_named(lie: Lie, site: Site, histories: dict[str, Path]) -> None:
    policy = lie.options.get("policy", "pr")
    if lie.history:
        adopt(site, histories[policy])
    lie.apply(site)
    report = site.run(**lie.options)
    with site.store() as store:
        run = next(one for one in store.runs.newest(limit=5) if one.trigger == "cli")
    saw(lie, str(run.status), run.reason)
    assert report.code != 0, f"green: {run.status}\n{report.output}"
    assert run.status in lie.statuses, f"{run.status}: {run.reason}"
    missing = [pattern for pattern in lie.named if not re.search(pattern, run.reason, re.IGNORECASE)]
    assert not missing, f"the reason does not match {missing}: {run.reason}"
