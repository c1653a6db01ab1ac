"""Airflow's api-server behind docker/nginx.conf: users stay on https."""

import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.compose.local import until
from tests.support.compose.tls import Certificates, nginx
from tests.support.programs import need
from tests.ui import server
from tests.ui.deployed.conftest import Site

pytestmark = pytest.mark.process
ROOT = Path(__file__).parents[3]
FORGED = "198.51.100.7"


@pytest.fixture(scope="module")
def client(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    need("openssl")
    folder = tmp_path_factory.mktemp("proxy")
    certificates = Certificates(ROOT, folder / "certificates", folder / "secrets")
    done = certificates.make("server", "localhost", "127.0.0.1")
    assert done.returncode == 0, done.stderr
    context = ssl.create_default_context(cafile=certificates.files["ca_crt"])
    with (
        nginx(certificates, folder, site.port, site.proxy_port) as address,
        httpx.Client(base_url=address, verify=context, timeout=60) as made,
    ):
        until(lambda: _is_up(made))
        yield made


def _is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/api/v2/version").is_success
    except httpx.HTTPError:
        return False


def test_cookies_of_the_login_are_for_https(client: httpx.Client, site: Site) -> None:
    through = client.get("/api/v2/auth/logout", headers={"X-Forwarded-Proto": "http"}).headers["set-cookie"]
    direct = httpx.get(f"{site.api.url}/api/v2/auth/logout", timeout=60).headers["set-cookie"]
    assert ("Secure" in through, "Secure" in direct) == (True, False)


def test_page_without_a_login_links_the_login(client: httpx.Client, site: Site) -> None:
    page = client.get("/certification/", headers={"Accept": "text/html"})
    assert page.status_code == 401
    links = re.findall(r'(?:href|url)="?=?([^"]*/auth/login[^"]*)"', page.text)
    assert links
    assert all(link.startswith(("/", f"https://localhost:{site.proxy_port}/")) for link in links)


@pytest.mark.parametrize(
    ("origin", "status"), [("https://localhost:{port}", 422), ("https://elsewhere.example.com", 403), ("", 403)]
)
def test_forms_are_accepted_from_pages_of_the_proxy(
    client: httpx.Client, site: Site, origin: str, status: int
) -> None:
    # Valid but for the number of the alert.
    headers = {"Cookie": f"_token={site.api.token(server.OPERATOR)}"}
    headers |= {"Origin": origin.format(port=site.proxy_port)} if origin else {}
    sent = {"number": "1", "state": "fixed", "why": "rolled back"}
    done = client.post("/certification/decide/decide_alert", data=sent, headers=headers)
    assert done.status_code == status, done.text


def test_log_has_the_address_of_the_client_and_no_forged_one(client: httpx.Client, site: Site) -> None:
    client.get("/api/v2/version?forged", headers={"X-Forwarded-For": FORGED})
    assert FORGED not in site.api.log.read_text()
