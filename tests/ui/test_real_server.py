"""The real api-server and a real browser: every route with and without a login, and what a user sees."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from fastapi import FastAPI
from tests.support.page_routes import filled, methods_and_templates
from tests.support.precedents import put_run
from tests.support.stories import TRAIN, a_plan, a_run, record_run
from tests.ui import chromium, server

from tipcflow.domain import CheckResult, Run, Status, run_id_of
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.execute.events import event_writer
from tipcflow.execute.progress import Event, Kind
from tipcflow.report.chain.series import LineKey
from tipcflow.store import Store

pytestmark = pytest.mark.process
AFTER = datetime(2026, 11, 21, 9, 30, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def written(home: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{home / 'tipcflow.db'}") as store:
        yield store


@pytest.fixture(scope="module")
def run(written: Store) -> Run:
    return record_run(written, a_run(run_id_of("sample.model.file", "ci__1", AFTER)))


@pytest.fixture(scope="module")
def series(written: Store) -> str:
    """The page Series with a metric of eight runs, the last of them a regression."""
    for week in range(8):
        status = Status.REGRESSION if week == 7 else Status.PASS
        chain = "sample/series/train_infer_python"
        made = put_run(written, week, status=status, slower=1.7 if week == 7 else 1.0, chain=chain)
    key = LineKey(made.chain, made.mode, made.environment, made.compat, TRAIN, "", "batch_cost")
    return f"series?{urlencode({'s': str(key)})}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[server.ApiServer]:
    with server.running(tmp_path_factory.mktemp("airflow") / "home", home) as running:
        yield running


@pytest.fixture(scope="module")
def page(served: server.ApiServer) -> Iterator[chromium.Page]:
    with chromium.running() as page:
        page.log_in(served.url, served.token())
        page.show(1280, 800)
        yield page


def routes(app: FastAPI, run: Run) -> list[tuple[str, str]]:
    """(method, path) of all routes of the app, for an existing run."""
    known = {"run_id": run.id, "chain": run.chain, "name": "app.css", "path": "nowhere", "number": "1"}
    known |= {"dag_id": "toy", "dag_run_id": "none"}
    return [(method, filled(template, known)) for method, template in methods_and_templates(app)]


def test_every_route_requires_a_login(served: server.ApiServer, page_app: FastAPI, run: Run) -> None:
    token = served.token()
    logins: list[dict[str, str]] = [{}, {"Cookie": f"_token={token}"}, {"Authorization": f"Bearer {token}"}]
    found: dict[tuple[str, str], list[int]] = {}
    for method, path in routes(page_app, run):
        url = f"{served.url}/certification{path}"
        found[method, path] = [httpx.request(method, url, headers=login).status_code for login in logins]
    assert len(found) > 15
    assert {codes[0] for codes in found.values()} == {401}, found
    metrics = [found.pop((method, "/metrics")) for method in ("GET", "HEAD")]
    assert metrics == [[401, 401, 401]] * 2, "they have a token of their own instead of a login"
    differing = {key: codes for key, codes in found.items() if not codes[1] == codes[2] != 401}
    assert differing == {}
    answered = {path for (method, path), codes in found.items() if method == "GET" and codes[1] == 200}
    assert {"/", "/runs", f"/runs/{run.id}", "/api/runs", f"/api/runs/{run.id}", "/assets/app.css"} <= answered


def test_a_token_that_was_taken_back(served: server.ApiServer, run: Run) -> None:
    token = served.token()
    httpx.get(f"{served.url}/api/v2/auth/logout", cookies={"_token": token})
    assert httpx.get(f"{served.url}/certification/api/runs", cookies={"_token": token}).status_code in (401, 403)


def test_a_page_has_no_errors_and_no_external_requests(
    page: chromium.Page, served: server.ApiServer, run: Run
) -> None:
    page.trouble.clear()
    page.requests.clear()
    page.open(f"{served.url}/certification/runs/{run.id}#loss")
    assert page.wait("document.getElementById('loss-chart')?.dataset.drawn") == "1"
    assert page.evaluate("document.querySelectorAll('#loss-chart canvas').length") == 1
    assert page.trouble == []
    elsewhere = [url for url in page.requests if not url.startswith((served.url, "data:"))]
    assert elsewhere == [], "nothing is asked of the internet"


@pytest.mark.parametrize("width", [1280, 800, 390])
@pytest.mark.parametrize(
    "path", ["", "runs", "runs/{run}", "nodes?hours=72", "{series}", "versions", "pulls", "quarantines", "ab"]
)
def test_nothing_is_wider_than_the_window(
    page: chromium.Page, served: server.ApiServer, run: Run, series: str, width: int, path: str
) -> None:
    page.show(width, 800)
    page.open(f"{served.url}/certification/{path.format(run=run.id, series=series)}")
    page.wait("document.readyState === 'complete'")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.full
def test_labels_of_close_values_are_different(page: chromium.Page, served: server.ApiServer, series: str) -> None:
    page.open(f"{served.url}/certification/{series}")
    assert page.wait("document.getElementById('series-chart')?.dataset.drawn") == "1"
    assert page.evaluate("axisOf('s').values(null, [0.1155, 0.116, 200]).join(' ')") == "0.1155 0.116 200"


@pytest.mark.full
def test_zoom_and_two_runs_of_a_series(page: chromium.Page, served: server.ApiServer, series: str) -> None:
    """A zoom is in the URL, a click with Shift chooses a run, and a second one compares them."""
    page.show(1280, 900)
    page.trouble.clear()
    page.open(f"{served.url}/certification/{series}")
    assert page.wait("document.getElementById('series-chart')?.dataset.drawn") == "1"
    box = "document.querySelector('#series-chart .u-over').getBoundingClientRect()"
    left, top, width = (page.evaluate(f"{box}.{side}") for side in ("left", "top", "width"))
    for kind, share in (("mouseMoved", 0.2), ("mousePressed", 0.2), ("mouseMoved", 0.6), ("mouseReleased", 0.6)):
        mouse(page, kind, left + share * width, top + 40)
    assert page.wait("location.search.includes('since=') && location.search.includes('until=')")
    page.open(f"{served.url}/certification/{series}")
    page.wait("document.getElementById('series-chart')?.dataset.drawn")
    points = "seriesChart.data[0].map((at) => seriesChart.valToPos(at, 'x'))"
    values = "seriesChart.data[1].map((value) => seriesChart.valToPos(value, 'y'))"
    for number in (1, 4):
        x, y = left + page.evaluate(f"{points}[{number}]"), top + page.evaluate(f"{values}[{number}]")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            mouse(page, kind, x, y, modifiers=8)
    page.wait("location.pathname.endsWith('/compare')")
    assert page.evaluate("location.search") == "?run=run-01&run=run-04"
    assert page.trouble == []


def mouse(page: chromium.Page, kind: str, x: float, y: float, modifiers: int = 0) -> None:
    button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
    page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, modifiers=modifiers, **button)


def test_log_is_loaded_when_opened(page: chromium.Page, served: server.ApiServer, home: Path, run: Run) -> None:
    logs = home / "runs" / run.id / "norm_train_cpu%2Ftrain" / "node-a" / "logs"
    logs.mkdir(parents=True)
    (logs / "main.log").write_text("<b>loss</b> 0.5\n")
    page.open(f"{served.url}/certification/runs/{run.id}")
    page.wait("document.querySelector('#logs details')")
    page.evaluate("(document.querySelector('#logs details').open = true)")
    assert page.wait("document.querySelector('#logs pre').textContent.includes('0.5')")
    assert page.evaluate("document.querySelector('#logs pre').textContent") == "<b>loss</b> 0.5\n"


def test_the_page_follows_a_run(page: chromium.Page, served: server.ApiServer, written: Store, home: Path) -> None:
    run = a_run("20261121t100000-goes-on-0001", chain="sample/other/train_infer_python")
    written.runs.create(run, a_plan())
    page.open(f"{served.url}/certification/runs/{run.id}")
    page.wait("document.querySelector('h1 .st-running')")
    written.attempts.open(run.id, TRAIN, run.nodes, run.created_at + 1)
    event_writer(home, run.id)(Event(Kind.NOTE, "waiting for free slots"))
    page.wait("document.querySelector('#live').textContent.includes('waiting for free slots')")
    page.wait("document.querySelector('#steps .st-running')")
    written.attempts.close(run.id, TRAIN, 1, Status.CANCELLED, "", (), run.created_at + 2)
    written.runs.finish(run.id, Status.CANCELLED, "stopped by a user", run.created_at + 9)
    page.wait("document.querySelector('h1 .st-cancelled')")
    page.wait("!document.body.dataset.running")


def test_browser_submits_a_decision(served: server.ApiServer, written: Store) -> None:
    """The policies of the page let the form through. Airflow has no such DAG here: the page shows the error."""
    red = CheckResult(
        check="speed.ips", status=Status.REGRESSION, reason="slow", metric="ips", values={"ratio": 0.8}
    )
    record_run(
        written,
        a_run("run-red", chain="sample/red/train_infer_python", environment="cpu"),
        status=Status.REGRESSION,
    )
    (alert,) = track_alerts(written, written.runs.get("run-red"), [red])
    press = "(() => {{ document.querySelector('#{}').value = '{}'; {}.click(); return true }})()"
    button = "document.querySelector('.start button')"
    with chromium.running() as page:
        page.log_in(served.url, served.token(server.OPERATOR))
        page.open(f"{served.url}/certification/decide/decide_alert?number={alert.number}")
        page.wait(button)
        page.evaluate(press.format("state", "fixed", button))
        page.wait("document.querySelector('[role=alert]')?.textContent.startsWith('Reason or comment: is empty')")
        assert page.evaluate("document.querySelector('#state').value") == "fixed"
        page.evaluate(press.format("why", "rolled back", button))
        page.wait("document.querySelector('main').textContent.includes(\"'decide_alert' not found\")")


def test_page_inside_airflow_follows_theme_and_navigation(
    page: chromium.Page, served: server.ApiServer, run: Run
) -> None:
    """The page is in the navigation; it follows Airflow's colors; the way to the DAG run leaves the frame."""
    inside = "document.querySelector('iframe[title=Certification]')?.contentDocument"
    page.show(1280, 800, "dark")
    page.open(f"{served.url}/")
    item = "[...document.querySelectorAll('a')].find((one) => one.textContent.includes('Certification'))"
    page.wait(item)
    page.evaluate(f"{item}.click()")
    page.wait(f"{inside}?.querySelector('td .st-pass')")
    assert page.evaluate(f"{inside}.documentElement.dataset.theme") == "dark"
    page.evaluate(f"{inside}.querySelector('a.name[href$=\"{run.id}\"]').click()")
    page.wait(f"{inside}?.querySelector('#steps')")
    assert run.id in page.wait("location.pathname.includes('/runs/') && location.pathname")
    link = {"href": f"{served.url}/dags/sample.model.file/runs/ci__1"}
    page.evaluate(
        f"((d) => {{ const a = Object.assign(d.createElement('a'), {json.dumps(link)});"
        f" a.dataset.outside = ''; d.body.append(a); a.click(); }})({inside})"
    )
    page.wait("location.pathname.startsWith('/dags/sample.model.file')")
