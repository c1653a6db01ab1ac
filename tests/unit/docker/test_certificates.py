"""docker/certificates.sh, and the servers of compose.tls.yaml with its certificates: each refuses a stranger."""

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest
import yaml
from tests.support import postgres
from tests.support.compose.local import free_port, process, until
from tests.support.compose.tls import Certificates, nginx
from tests.support.programs import need

from tipcflow.github.webhook.delivery import LARGEST_BODY

pytestmark = pytest.mark.process
EXECUTION = ["/execution/x", "//execution/x", "/%65xecution/x", "/a/../execution/x"]


@pytest.fixture
def certificates(root: Path, secrets: Path, tmp_path: Path) -> Certificates:
    need("openssl")
    made = Certificates(root, tmp_path / "certificates", secrets)
    for words in (("server", "localhost", "127.0.0.1"), ("worker", "gpu-1")):
        done = made.make(*words)
        assert done.returncode == 0, done.stderr
    return made


def openssl(*words: str) -> str:
    return subprocess.run(["openssl", *words], capture_output=True, text=True, check=True, timeout=60).stdout


def test_certificates_are_of_one_authority_and_end_in_time(certificates: Certificates) -> None:
    files = certificates.files
    for name, purpose in (("server_crt", "sslserver"), ("client_crt", "sslclient")):
        check = openssl("verify", "-purpose", purpose, "-x509_strict", "-CAfile", files["ca_crt"], files[name])
        assert check.strip().endswith("OK")
        other = {"sslserver": "sslclient", "sslclient": "sslserver"}[purpose]
        refused = ["openssl", "verify", "-purpose", other, "-CAfile", files["ca_crt"], files[name]]
        assert subprocess.run(refused, capture_output=True, timeout=60).returncode != 0
        # Browsers refuse more than 398 days.
        assert subprocess.run(
            ["openssl", "x509", "-in", files[name], "-noout", "-checkend", str(398 * 24 * 3600)],
            stdout=subprocess.DEVNULL,
        ).returncode
    names = openssl("x509", "-in", files["server_crt"], "-noout", "-ext", "subjectAltName")
    assert "DNS:localhost, IP Address:127.0.0.1" in names


def test_only_the_owner_reaches_keys_and_root_alone_reads_the_authority(certificates: Certificates) -> None:
    folder = certificates.folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "ca.key").stat().st_mode & 0o777 == 0o400
    assert Path(certificates.files["client_key"]).stat().st_mode & 0o777 == 0o444
    assert (folder / "gpu-1/.secrets").stat().st_mode & 0o777 == 0o700
    assert not list(folder.glob(".new*"))


def test_worker_gets_the_secrets_that_its_file_names(certificates: Certificates, root: Path) -> None:
    given = {path.name for path in (certificates.folder / "gpu-1/.secrets").iterdir()}
    config = yaml.safe_load((root / "compose.worker.yaml").read_text())
    assert given == set(config["secrets"]) == set(config["services"]["worker"]["secrets"])
    environment = config["services"]["worker"]["environment"]
    assert environment["TIPCFLOW_SIGNING_KEY"] == "/run/secrets/signing_key"
    assert not given & {"airflow_fernet_key", "airflow_jwt_secret", "postgres_password"}
    env = (certificates.folder / "gpu-1/.env").read_text()
    file = "COMPOSE_FILE=compose.worker.yaml\n"
    assert env == f"MAIN_HOST=localhost\nWORKER_HOST=gpu-1\n{file}TIPCFLOW_SECRETS=./.secrets\n"
    assert (root / "compose.worker.yaml").is_file()


def test_worker_has_the_ports_and_the_version_of_the_main_machine(
    root: Path, secrets: Path, tmp_path: Path
) -> None:
    checkout = tmp_path / "main"
    (checkout / "docker").mkdir(parents=True)
    shutil.copy(root / "docker/certificates.sh", checkout / "docker")
    made = Certificates(checkout, tmp_path / "certificates", secrets)
    env = made.folder / "gpu-1/.env"
    settings = "REDIS_PORT=16380\nTIPCFLOW_TAG=1.4\nTLS_PORT=1443\n"
    (checkout / ".env").write_text(f"AIRFLOW_PORT=8081\nPOSTGRES_PORT=\nTLS_PORT=2443\n{settings}")
    for words in (("server", "localhost"), ("worker", "gpu-1")):
        assert made.make(*words).returncode == 0
    names = (
        "MAIN_HOST=localhost\nWORKER_HOST=gpu-1\nCOMPOSE_FILE=compose.worker.yaml\nTIPCFLOW_SECRETS=./.secrets\n"
    )
    assert env.read_text() == f"{names}{settings}"
    with env.open("a") as file:
        file.write("WORKER_CONCURRENCY=2\n")
    (checkout / ".env").write_text("REDIS_PORT=26380\nTLS_PORT=1443\n")
    assert made.make("worker", "gpu-1").returncode == 0
    assert env.read_text() == f"{names}TIPCFLOW_TAG=1.4\nWORKER_CONCURRENCY=2\nREDIS_PORT=26380\nTLS_PORT=1443\n"
    assert env.stat().st_mode & 0o777 == 0o600


def test_folders_come_from_the_settings(root: Path, secrets: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "main"
    (checkout / "docker").mkdir(parents=True)
    script = shutil.copy(root / "docker/certificates.sh", checkout / "docker")
    shutil.copytree(secrets, checkout / "private")
    (checkout / ".env").write_text(f'TIPCFLOW_SECRETS=./private\nTIPCFLOW_CERTIFICATES="{tmp_path}/made"\n')
    for words in (("server", "localhost"), ("worker", "gpu-1")):
        done = subprocess.run([script, *words], env={"PATH": os.environ["PATH"]}, cwd=tmp_path, timeout=60)
        assert done.returncode == 0
    given = tmp_path / "made/gpu-1/.secrets/redis_password"
    assert given.read_text() == (secrets / "redis_password").read_text()
    assert not (checkout / ".certificates").exists()


def test_worker_connects_to_a_name_of_the_certificate(certificates: Certificates) -> None:
    env = certificates.folder / "gpu-1/.env"
    text = env.read_text()
    assert "MAIN_HOST=localhost\n" in text
    # A name that the user chose.
    env.write_text(text.replace("MAIN_HOST=localhost", "MAIN_HOST=127.0.0.1"))
    assert certificates.make("worker", "gpu-1").returncode == 0
    assert env.read_text() == text.replace("MAIN_HOST=localhost", "MAIN_HOST=127.0.0.1")
    for words in (("server", "tipc.example.com", "192.0.2.1"), ("worker", "gpu-1")):
        assert certificates.make(*words).returncode == 0
    assert env.read_text() == text.replace("MAIN_HOST=localhost\n", "") + "MAIN_HOST=tipc.example.com\n"


def test_second_call_keeps_valid_certificates(certificates: Certificates) -> None:
    before = {path: path.read_bytes() for path in certificates.folder.rglob("*") if path.is_file()}
    for words in (("server", "localhost", "127.0.0.1"), ("worker", "gpu-1")):
        assert certificates.make(*words).stdout.startswith("kept ")
    assert {path: path.read_bytes() for path in certificates.folder.rglob("*") if path.is_file()} == before
    assert certificates.make("server", "tipc.example.com").stdout.startswith("wrote ")
    changed = {path.name for path in before if path.read_bytes() != before[path]}
    assert changed == {"server.crt", "server.key", "server.names"}


def test_authority_whose_key_is_offline_is_not_replaced(certificates: Certificates) -> None:
    key = certificates.folder / "ca.key"
    offline = key.rename(certificates.folder.parent / "ca.key")
    before = {path: path.read_bytes() for path in certificates.folder.rglob("*") if path.is_file()}
    for words in (("server", "tipc.example.com"), ("worker", "gpu-2")):
        done = certificates.make(*words)
        assert done.returncode == 2
        assert f"{key} is missing, the key of {certificates.folder}/ca.crt: copy it back" in done.stderr
    assert {path: path.read_bytes() for path in before} == before
    # Without a new signature, no key is needed.
    assert certificates.make("server", "localhost", "127.0.0.1").stdout.startswith("kept ")
    offline.rename(key)
    assert certificates.make("worker", "gpu-2").stdout.startswith("wrote ")
    assert (certificates.folder / "ca.crt").read_bytes() == before[certificates.folder / "ca.crt"]


def test_lost_certificate_of_the_authority_is_not_replaced(certificates: Certificates) -> None:
    (certificates.folder / "ca.crt").unlink()
    key = (certificates.folder / "ca.key").read_bytes()
    done = certificates.make("server", "tipc.example.com")
    assert done.returncode == 2
    assert "ca.crt is missing, and workers trust only this authority" in done.stderr
    assert (certificates.folder / "ca.key").read_bytes() == key


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("worker", "gpu-2"), "no authority; run docker/certificates.sh server"),
        (("server", "a b"), "not a host name or address: a b"),
        (("server", "../x"), "not a host name"),
        (("server", "2001:db8::1", "main"), "first NAME of server: found the IPv6 address 2001:db8::1, expected"),
        (("worker", "2001:db8::2"), "first NAME of worker: found the IPv6 address 2001:db8::2, expected"),
        (("server",), "Usage:"),
    ],
)
def test_wrong_calls_are_refused(
    root: Path, secrets: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = Certificates(root, tmp_path / "none", secrets).make(*words)
    assert done.returncode == 2
    assert message in done.stderr


def command(root: Path, service: str, certificates: Certificates) -> list[str]:
    """A service's command in compose.tls.yaml, with files of this machine."""
    words = yaml.safe_load((root / "compose.tls.yaml").read_text())["services"][service]["command"]
    return [certificates.files.get(word.removeprefix("/run/secrets/"), word) for word in words]


def test_redis_requires_a_certificate_of_other_machines(
    certificates: Certificates, root: Path, tmp_path: Path
) -> None:
    need("redis-server")
    (tmp_path / "word").write_text("s3cretword")
    environ = {"PATH": os.environ["PATH"], "REDIS_PASSWORD_FILE": str(tmp_path / "word")}
    port, files = free_port(), certificates.files
    words = [str(port) if word == "6380" else word for word in command(root, "redis", certificates)]
    words += ["--port", str(free_port()), "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    with process("sh", root / "docker/redis.sh", *words, env=environ, stdout=subprocess.DEVNULL):
        shown = ["--cert", files["client_crt"], "--key", files["client_key"]]

        def ask(*more: str) -> str:
            ask_tls = [
                "redis-cli",
                "-p",
                str(port),
                "-h",
                "localhost",
                "--tls",
                "--cacert",
                files["ca_crt"],
                *more,
                "ping",
            ]
            env = {"PATH": os.environ["PATH"], "REDISCLI_AUTH": "s3cretword"}
            return subprocess.run(ask_tls, env=env, capture_output=True, text=True, timeout=20).stdout

        until(lambda: "PONG" in ask(*shown))
        assert "PONG" not in ask()


def test_postgres_requires_a_certificate_of_other_machines(
    certificates: Certificates, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(re.findall(r"-c (\w+)=(\S+)", (root / "docker/postgres_tls.sh").read_text()))
    assert options.pop("hba_file") == "/run/tls/pg_hba.conf"
    # This machine is in the network of the server, as the gateway from which docker's proxy connects.
    rules = (root / "docker/pg_hba.conf").read_text()
    assert "samenet" in rules
    (tmp_path / "hba").write_text(rules.replace("GATEWAY", "127.0.0.1/32"))
    files, port = certificates.files, free_port()
    monkeypatch.setenv("PGPORT", str(port))  # of the server and of its clients
    with postgres.lent(
        *(files[name] for name in ("ca_crt", "server_crt", "server_key")), tmp_path / "hba"
    ) as lent:
        paths = {Path(path).name.replace(".", "_"): str(path) for path in lent}
        settings = {name: paths.get(Path(path).name.replace(".", "_"), path) for name, path in options.items()}
        settings |= {"hba_file": paths["hba"], "listen_addresses": "127.0.0.1"}
        assert len(settings) == 7
        with postgres.running(settings=[f"{name}={value}" for name, value in settings.items()]) as server:
            with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
                admin.execute("ALTER ROLE tipcflow PASSWORD 's3cretword'")
                admin.execute("CREATE DATABASE tipcflow")
                admin.execute("CREATE ROLE airflow LOGIN PASSWORD 's3cretword'")
            check_clients(port, files, tmp_path / "client.key")


def check_clients(port: int, files: Mapping[str, str], key: Path) -> None:
    """Only a client with a certificate and the password gets in."""
    base = f"postgresql://tipcflow:s3cretword@localhost:{port}/tipcflow?sslmode=verify-full"
    url = f"{base}&sslrootcert={files['ca_crt']}"
    shutil.copy(files["client_key"], key)
    key.chmod(0o600)
    shown = f"&sslcert={files['client_crt']}&sslkey={key}"
    with psycopg.connect(url + shown) as connection:
        used = connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        assert used.fetchone() == (True,)
    with pytest.raises(psycopg.OperationalError, match="valid client certificate"):
        psycopg.connect(url)
    # Roles that no other machine needs.
    with pytest.raises(psycopg.OperationalError, match=r"pg_hba\.conf rejects"):
        psycopg.connect(url.replace("tipcflow:", "airflow:") + shown)
    with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry"):
        psycopg.connect(url.replace("verify-full", "disable"))
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url.replace("s3cretword", "guess") + shown)


@pytest.fixture
def api_server() -> Iterator[int]:
    """A server that returns the headers that it gets; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({**dict(self.headers), "path": self.path}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture
def proxy(certificates: Certificates, tmp_path: Path, api_server: int) -> Iterator[str]:
    with nginx(certificates, tmp_path, api_server) as address:
        until(lambda: get(certificates, f"{address}/"))
        yield address


@pytest.fixture
def caddy(certificates: Certificates, root: Path, tmp_path: Path, api_server: int) -> Iterator[str]:
    """Caddy as in docs/tutorial/workers.md, with addresses and files of this machine."""
    program, port = shutil.which("caddy"), free_port()
    if program is None:
        pytest.skip("caddy is not installed (Debian: apt-get install caddy)")
    text = (root / "docs/tutorial/workers.md").read_text()
    site = text.partition("With Caddy:")[2].split("```")[1]
    for old, new in {
        "tipc.example.com {": f"localhost:{port} {{\ntls {{server_crt}} {{server_key}}\nbind 127.0.0.1",
        "127.0.0.1:8080": f"127.0.0.1:{api_server}",
        **{f"{{{name}}}": path for name, path in certificates.files.items() if name.startswith("server")},
    }.items():
        assert old in site
        site = site.replace(old, new)
    file = tmp_path / "Caddyfile"
    file.write_text(f"{{\nadmin off\nauto_https disable_redirects\n}}\n{site}")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    log = (tmp_path / "caddy.log").open("wb")
    with log, process(program, "run", "--adapter", "caddyfile", "--config", file, env=env, stderr=log):
        address = f"https://localhost:{port}"
        until(lambda: get(certificates, f"{address}/"))
        yield address


def test_caddy_replaces_forged_headers(certificates: Certificates, caddy: str) -> None:
    forged = {"X-Forwarded-For": "192.0.2.9", "X-Forwarded-Proto": "http"}
    got = get(certificates, f"{caddy}/certification/?a=b", **forged)
    assert got["path"] == "/certification/?a=b"
    assert got["X-Forwarded-For"] == "127.0.0.1"
    assert got["X-Forwarded-Proto"] == "https"
    assert got["Host"] == caddy.removeprefix("https://")


@pytest.mark.parametrize("path", EXECUTION)
def test_caddy_refuses_the_execution_api(certificates: Certificates, caddy: str, path: str) -> None:
    with pytest.raises(HTTPError, match="403"):
        get(certificates, f"{caddy}{path}")


def test_nginx_passes_the_largest_delivery(root: Path) -> None:
    (limit,) = re.findall(r"client_max_body_size (\d+)m;", (root / "docker/nginx.conf").read_text())
    assert int(limit) << 20 > LARGEST_BODY


def get(certificates: Certificates, address: str, *, shown: bool = False, **headers: str) -> dict[str, Any]:
    """The headers that the api-server got, {} if nothing responds."""
    context = ssl.create_default_context(cafile=certificates.files["ca_crt"])
    if shown:
        context.load_cert_chain(certificates.files["client_crt"], certificates.files["client_key"])
    try:
        with urlopen(Request(address, headers=headers), context=context, timeout=20) as response:
            found: dict[str, Any] = json.load(response)
            return found
    except HTTPError:
        raise
    except OSError:
        return {}


def test_users_need_no_certificate_and_cannot_forge_their_address(certificates: Certificates, proxy: str) -> None:
    forged = {"X-Forwarded-For": "192.0.2.9", "X-Forwarded-Proto": "http"}
    got = get(certificates, f"{proxy}/certification/?a=b", **forged)
    assert got["path"] == "/certification/?a=b"
    assert got["X-Forwarded-For"] == "127.0.0.1"
    assert got["X-Forwarded-Proto"] == "https"
    assert got["Host"] == proxy.removeprefix("https://")


@pytest.mark.parametrize("path", EXECUTION)
def test_execution_api_requires_a_certificate(certificates: Certificates, proxy: str, path: str) -> None:
    with pytest.raises(HTTPError, match="403"):
        get(certificates, f"{proxy}{path}")
    assert get(certificates, f"{proxy}{path}", shown=True)["path"].endswith("xecution/x")


def test_worker_settings_are_airflows(root: Path, tmp_path: Path, certificates: Certificates) -> None:
    env = {"PATH": os.environ["PATH"]}
    files = ["--env-file", str(certificates.folder / "gpu-1/.env"), "--file", "compose.worker.yaml"]
    done = subprocess.run(
        [need("docker-compose"), *files, "config"], cwd=root, env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    worker: Mapping[str, Any] = yaml.safe_load(done.stdout)["services"]["worker"]
    main = yaml.safe_load((root / "docker-compose.yaml").read_text())["services"]["worker"]
    assert worker["command"] == main["command"]
    assert worker["healthcheck"]["test"] == main["healthcheck"]["test"]
    environment = worker["environment"]
    assert environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "https://localhost:443/execution/"
    assert environment["AIRFLOW_BROKER_URL"] == "rediss://:{REDIS_PASSWORD}@localhost:6380/0"
    assert environment["PGSSLMODE"] == "verify-full"
    # The SDK reads these names at its import.
    client = Path(
        sys.prefix, "lib", f"python3.{sys.version_info[1]}", "site-packages/airflow/sdk/api/client.py"
    ).read_text()
    for option in ("ssl_cert", "client_ssl_cert", "client_ssl_key"):
        assert f'conf.get("api", "{option}"' in client
        assert f"AIRFLOW__API__{option.upper()}" in environment
