"""Daily tasks of users, done by clicks in a real browser on the sample history."""

import json
import re
from collections.abc import Iterator

import pytest
from tests.ui import chromium, server

from devcluster.sample_history.fill import fill

pytestmark = [pytest.mark.process, pytest.mark.full]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.ApiServer]:
    home = tmp_path_factory.mktemp("home")
    fill(f"sqlite:///{home / 'tipcflow.db'}", lambda line: None, weeks=12)
    with server.running(tmp_path_factory.mktemp("airflow") / "home", home) as running:
        yield running


@pytest.fixture
def page(url: server.ApiServer) -> Iterator[chromium.Page]:
    """The start page."""
    with chromium.running() as page:
        page.log_in(url.url, url.token())
        page.show(1280, 800)
        page.open(f"{url.url}/certification/")
        page.wait("document.querySelector('h1') && document.readyState === 'complete'")
        yield page


def click(page: chromium.Page, selector: str) -> None:
    """Click the first such element, and wait for the page that follows."""
    before = page.evaluate("location.href")
    wanted = f"document.querySelector({json.dumps(selector)})"
    page.wait(wanted)
    page.evaluate(f"({wanted}.click(), true)")
    page.wait(f"location.href !== {json.dumps(before)} && document.readyState === 'complete' && document.body")


def menu(page: chromium.Page, name: str) -> None:
    click(page, f"nav a[href$='/certification/{name}']")


def text(page: chromium.Page, selector: str = "main") -> str:
    return str(page.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))


def test_does_the_newest_build_pass_on_all_models(page: chromium.Page) -> None:
    menu(page, "today")
    assert "chains pass on paddlepaddle-gpu 3.4.0" in text(page, ".sentences")
    assert re.search(r"\d chains share the change", text(page, "#new"))


def test_user_finds_when_a_chain_became_slower_and_the_change(page: chromium.Page) -> None:
    menu(page, "changes")
    assert "generated_clas/ResNet" in text(page)
    assert "+11.0 %" in text(page)
    click(page, "a[href*='/chains/generated_clas/ResNet']")
    assert "worse" in text(page, "#metrics")
    click(page, "figcaption a")
    assert "batch_cost" in text(page)


def test_user_finds_flaky_chains(page: chromium.Page) -> None:
    menu(page, "flaky")
    assert "chains with repeated runs ended differently" in text(page)
    click(page, "#chains a.name")
    assert "generated_" in text(page, "table.list")


def test_user_finds_degraded_nodes(page: chromium.Page) -> None:
    menu(page, "nodes")
    assert text(page, ".gantts th[scope=row]") == "generated-v100-3"


def test_load_of_the_cluster_is_shown(page: chromium.Page) -> None:
    menu(page, "nodes")
    assert "No run waits for slots." in text(page, "#queue")
    assert "%" in text(page, ".gantts td[data-name=busy]")


def test_user_finds_uncovered_declarations(page: chromium.Page) -> None:
    menu(page, "coverage")
    click(page, "#gaps a.name")
    assert "shown below" in text(page, "#gaps")
    assert "generated_" in text(page, "#chains") or "train" in text(page, "#chains")


def test_user_compares_two_runs(page: chromium.Page) -> None:
    click(page, "a[href*='/chains/generated_']")
    boxes = "[...document.querySelectorAll('#runs input[type=checkbox]')].slice(0, 2)"
    page.evaluate(f"({boxes}.forEach(one => one.click()), true)")
    click(page, "#runs form button")
    assert page.evaluate("document.querySelectorAll('#runs tbody tr').length") == 2


def test_cause_of_a_failure_is_shown(page: chromium.Page) -> None:
    click(page, "table.list a.name")
    assert text(page, "h1 .st") in ("config_error", "failed")
    assert text(page, "#head .reason, #head .reasons")


def test_changes_by_a_pull_request_are_shown(page: chromium.Page) -> None:
    menu(page, "pulls")
    click(page, "main h2 a[href*='number=']")
    assert re.search(r"Pull request \d+ of ", text(page, "h1"))
    click(page, "main a[href*='/compare?run=']")
    assert page.evaluate("document.querySelectorAll('#runs tbody tr').length") == 2


def test_accuracy_over_weeks_is_shown_with_its_target(page: chromium.Page) -> None:
    click(page, "a[href*='/chains/generated_clas/']")
    assert "top1" in text(page, "#metrics")
    assert "target" in text(page, "#metrics")


def test_speed_up_from_one_to_four_nodes_is_shown(page: chromium.Page) -> None:
    menu(page, "scaling")
    assert {"1n1g", "2n8g", "4n8g"} <= set(text(page, "table.list").split())
    assert page.evaluate(
        "[...document.querySelectorAll('td[data-name=efficiency]')].some(one => /%/.test(one.innerText))"
    )
