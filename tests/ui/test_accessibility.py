"""Accessibility of every page by axe-core (WCAG 2.2 AA), in both themes, on a desktop and on a phone."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.routing import Route
from tests.ui import chromium, server

from devcluster.sample_history.fill import fill
from tipcflow.domain import Status
from tipcflow.store import Store

pytestmark = [pytest.mark.process, pytest.mark.full]

AXE = "axe-core-4.14.1.tgz"
SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
TAGS = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']"
FIND = f"""axe.run(document, {{runOnly: {TAGS}}}).then(found => JSON.stringify(found.violations.map(
    rule => `${{rule.id}} (${{rule.impact}}) ${{rule.nodes.length}}: ${{rule.nodes.slice(0, 3).map(
        node => node.target.join(' ') + ' ' + node.html.slice(0, 160)).join(' | ')}}`)))"""
STOPS = """[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')].filter(
    one => one.tabIndex >= 0 && !one.disabled && one.checkVisibility()).length"""
MOST_STOPS = 100
# Routes that are not pages for users: data, files, redirects.
_OTHER = ("/api", "/assets", "/airflow", "/metrics", "/webhook", "/{path", "/runs/{run_id}/")


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core from npm or its cache, which `make test-full` fills; its content is pinned."""
    # Not part of the repository because of its license, MPL-2.0.
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        [npm, "pack", "--prefer-offline", "axe-core@4.14.1"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"axe-core is not available: {done.stderr.strip().splitlines()[-1:]}")
    packed = (folder / AXE).read_bytes()
    assert base64.b64encode(hashlib.sha512(packed).digest()).decode() == SHA512
    with tarfile.open(folder / AXE) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    fill(f"sqlite:///{folder / 'tipcflow.db'}", lambda line: None, weeks=6, chains=30)
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[server.ApiServer]:
    with server.running(tmp_path_factory.mktemp("airflow") / "home", home) as running:
        yield running


def pages(app: FastAPI, home: Path) -> list[str]:
    """Every page, with a chain and runs of the sample history."""
    with Store.open(f"sqlite:///{home / 'tipcflow.db'}") as store:
        lines = store.states.lines()
        alert = store.tracked_alerts.all()[0].number
    passed = [line for line in lines if line.status is Status.PASS]
    failed = [line for line in lines if line.status in (Status.FAILED, Status.REGRESSION)]
    query = {"/compare": f"?run={passed[0].run}&run={failed[0].run}", "/nodes": "?history=90"}
    query |= {"/ab/new": f"?run={passed[0].run}"}
    found = [
        f"/decide/decide_{kind}?run={failed[0].run}&number={alert}" for kind in ("alert", "baseline", "quarantine")
    ]
    for route in app.routes:
        if not isinstance(route, Route) or "GET" not in (route.methods or ()) or route.path.startswith(_OTHER):
            continue
        if "{run_id}" in route.path:
            found += [route.path.replace("{run_id}", line.run) for line in (passed[0], failed[0])]
        elif "{chain" in route.path:
            found.append(re.sub(r"\{[^}]*\}", failed[0].chain, route.path))
        elif "{number}" in route.path:
            found.append(route.path.replace("{number}", str(alert)))
        elif "{" not in route.path:
            found.append(route.path + query.get(route.path, ""))
    return found


def test_every_page_is_accessible_in_both_themes_and_widths(
    served: server.ApiServer, page_app: FastAPI, home: Path, axe: str
) -> None:
    problems: dict[str, list[str]] = {}
    every = pages(page_app, home)
    assert len(every) > 8, every
    with chromium.running() as page:
        page.log_in(served.url, served.token(server.OPERATOR))
        for path in every:
            for width, height in ((1280, 800), (390, 800)):
                for scheme in ("light", "dark"):
                    page.show(width, height, scheme)
                    page.open(f"{served.url}/certification{path}")
                    page.wait("document.readyState === 'complete'")
                    page.call("Runtime.evaluate", expression=axe)
                    where = f"{path} {width} {scheme}"
                    answer = page.call("Runtime.evaluate", expression=FIND, awaitPromise=True, returnByValue=True)
                    problems[where] = json.loads(answer["result"]["value"])
                    if (stops := page.evaluate(STOPS)) >= MOST_STOPS:
                        problems[where].append(f"{stops} tab stops")
                    if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
                        problems[where].append(f"{wide} px wide")
    found = [f"{where}: {line}" for where, lines in problems.items() for line in lines]
    assert not found, "\n".join(found)
