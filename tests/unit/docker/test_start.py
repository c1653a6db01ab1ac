"""What containers begin with, run for real: the entrypoints, PostgreSQL's set-up, Redis."""

import base64
import configparser
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import psycopg
import pytest
import yaml
from tests.support import postgres
from tests.support.compose.local import free_port, process
from tests.support.programs import need
from tests.support.sshd import make_sshd_folder

from tipcflow.domain import InfraError, Node
from tipcflow.store import migrate
from tipcflow.store.engine import reachable
from tipcflow.store.migrations.grants import grant_reader
from tipcflow.store.outbox import Outbox
from tipcflow.transport.connections import connection_target


def test_airflow_secrets_are_in_separate_files(
    env: Mapping[str, str], entrypoint: ModuleType, given: dict[str, str], tmp_path: Path
) -> None:
    left = dict(given)
    entrypoint.prepare(left, tmp_path)
    assert set(left) == {"AIRFLOW_HOME"}
    config = configparser.RawConfigParser()
    config.read(tmp_path / "airflow.cfg")
    for name, (section, option) in entrypoint.SECRETS.items():
        assert config[section][option] == given[name]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_secrets_are_read_from_files(
    env: Mapping[str, str], secrets: Path, entrypoint: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "mounted").mkdir()
    for name in ("redis_password", "airflow_fernet_key", "metrics_db_password"):
        shutil.copy(secrets / name, tmp_path / "mounted")
    (tmp_path / "mounted" / "client_key").write_text("-----BEGIN PRIVATE KEY-----\n")
    for name in ("..data", "kubernetes.io"):  # folders of Kubernetes
        (tmp_path / "mounted" / name).mkdir()
    home = tmp_path / "home"
    home.mkdir()
    left = {"AIRFLOW_BROKER_URL": "redis://:{REDIS_PASSWORD}@redis:6379/0", "PGPASSFILE": f"{home}/pgpass"}
    entrypoint.prepare(left, home, tmp_path / "mounted")
    assert left == {"PGPASSFILE": f"{home}/pgpass"}
    config = configparser.RawConfigParser()
    config.read(home / "airflow.cfg")
    assert config["celery"]["broker_url"] == f"redis://:{env['REDIS_PASSWORD']}@redis:6379/0"
    assert config["core"]["fernet_key"] == env["AIRFLOW_FERNET_KEY"]
    assert (home / "pgpass").read_text() == f"*:*:*:tipcflow:{env['METRICS_DB_PASSWORD']}\n"
    assert {path.stat().st_mode & 0o777 for path in home.iterdir()} == {0o600}
    assert len(list(home.iterdir())) == 3


def test_password_with_separators_is_escaped_in_the_password_file(entrypoint: ModuleType, tmp_path: Path) -> None:
    entrypoint.prepare(
        {"METRICS_DB_PASSWORD": r"a:b\c", "METRICS_READER_PASSWORD": "word"}, tmp_path, tmp_path / "none"
    )
    assert (tmp_path / "pgpass").read_text() == "*:*:*:tipcflow:a\\:b\\\\c\n*:*:*:tipcflow_reader:word\n"


def test_missing_secret_ends_the_start_with_a_remedy(entrypoint: ModuleType, tmp_path: Path) -> None:
    # Docker makes a folder in the place of a missing file.
    (tmp_path / "redis_password").mkdir()
    with pytest.raises(SystemExit, match=r"secret redis_password is missing or empty; run docker/env\.sh"):
        entrypoint.prepare({}, tmp_path, tmp_path)


@pytest.mark.root
def test_unreadable_secret_ends_the_start_with_a_remedy(entrypoint: ModuleType) -> None:
    # As after a copy to a worker with umask 077. Folders of tmp_path are closed to other users.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        secret = Path(folder, "redis_password")
        secret.write_text("word")
        secret.chmod(0o400)
        os.seteuid(50000)
        try:
            with pytest.raises(SystemExit, match=r"redis_password is not readable for user 50000; run chmod a\+r"):
                entrypoint.prepare({}, Path(folder), Path(folder))
        finally:
            os.seteuid(0)


def test_a_worker_without_the_secrets_of_control_gets_no_empty_options(
    entrypoint: ModuleType, given: dict[str, str], tmp_path: Path
) -> None:
    left = {name: given[name] for name in ("AIRFLOW_BROKER_URL", "AIRFLOW_RESULTS_URL", "AIRFLOW_SECRET_KEY")}
    entrypoint.prepare({**left, "AIRFLOW_FERNET_KEY": ""}, tmp_path)
    config = configparser.RawConfigParser()
    config.read(tmp_path / "airflow.cfg")
    assert {name: set(config[name]) for name in config.sections()} == {
        "celery": {"broker_url", "result_backend"},
        "api": {"secret_key"},
    }


def test_environment_of_processes_readable_by_tasks_has_no_secret(root: Path, given: dict[str, str]) -> None:
    if shutil.which("tini") is None:  # part of the image
        pytest.skip("tini is not installed (Debian: apt-get install tini)")
    given["PATH"] = os.environ["PATH"]
    # The environment of the component, and of the process that starts it: tini, in the entrypoint's place.
    show = (
        "import json, os; from pathlib import Path; first = Path(f'/proc/{os.getppid()}');"
        "print(json.dumps([dict(os.environ), (first / 'environ').read_text(), (first / 'comm').read_text()]))"
    )
    result = subprocess.run(
        [sys.executable, root / "docker/airflow_entrypoint.py", sys.executable, "-c", show],
        env=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    left, first, program = json.loads(result.stdout)
    assert program == "tini\n"
    for name, value in given.items():
        is_kept = name in ("AIRFLOW_HOME", "PATH")
        assert (value in left.values()) == is_kept, name
        assert (value in first) == is_kept, name


# Another user without an entry in /etc/passwd, who may read the Python of these tests and write nothing of root's.
CAPABILITY = "+dac_read_search"
OTHER_USER = 12345
AS_OTHER = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"]
AS_OTHER += [f"--inh-caps={CAPABILITY}", f"--ambient-caps={CAPABILITY}"]
# What each component does first. An Airflow job takes the name of its user.
NAME_JOB = (
    "import os; from airflow.jobs.job import Job; from airflow.sdk.api.client import getuser;"
    "from pathlib import Path; (Path.home() / 'written').touch();"
    "print(os.getuid(), Job().unixname, getuser(), Path.home())"
)


@pytest.mark.process
@pytest.mark.root
@pytest.mark.parametrize("is_writable", [True, False])
def test_a_component_runs_as_a_user_that_the_image_does_not_know(
    root: Path, tmp_path: Path, is_writable: bool
) -> None:
    if shutil.which("tini") is None:  # part of the image
        pytest.skip("tini is not installed (Debian: apt-get install tini)")
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    for folder in (home, temporary):
        folder.mkdir()
        os.chown(folder, OTHER_USER, OTHER_USER)
    if not is_writable:
        os.chown(home, 0, 0)
    given = {"PATH": os.environ["PATH"], "HOME": "/", "TMPDIR": str(temporary), "AIRFLOW_HOME": str(home)}
    given["AIRFLOW__LOGGING__BASE_LOG_FOLDER"] = str(temporary)
    given["AIRFLOW_FERNET_KEY"] = base64.b64encode(b"x" * 32).decode()
    command = [sys.executable, root / "docker/airflow_entrypoint.py", sys.executable, "-c", NAME_JOB]
    done = subprocess.run([*AS_OTHER, *command], env=given, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    user, *names, found = done.stdout.split()[-4:]
    assert (user, names) == (str(OTHER_USER), ["airflow", "airflow"])
    assert Path(found) == home if is_writable else Path(found).parent == temporary
    written = (home if is_writable else temporary).rglob("airflow.cfg")
    assert [path.stat().st_uid for path in written] == [OTHER_USER]


def test_a_known_user_keeps_its_environment(entrypoint: ModuleType, tmp_path: Path) -> None:
    left: dict[str, str] = {}
    entrypoint.name_user(left, tmp_path)
    assert left == {}


def test_nodes_become_connections_with_their_host_keys(
    env: Mapping[str, str], entrypoint: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {name: env[name] for name in ("NODE_LOGIN_KEY", "NODE_1_HOST_KEY_PUB", "NODE_2_HOST_KEY_PUB")}
    for _ in range(2):  # a container that is restarted finds its files
        left = dict(environ)
        entrypoint.prepare(left, tmp_path, tmp_path / "none")
    # A variable would show the login key to every program of a task.
    assert left == {}
    exported = tmp_path / entrypoint.CONNECTIONS_FILE
    made = json.loads(exported.read_text())["tipcflow_node_2"]
    assert (made["conn_type"], made["host"], made["login"]) == ("ssh", "10.213.77.12", "tipcflow")
    assert made["extra"]["host_key"] == env["NODE_2_HOST_KEY_PUB"]
    assert made["extra"]["private_key"] == env["NODE_LOGIN_KEY"]
    assert exported.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("TIPCFLOW_CONNECTIONS_FILE", str(exported))
    node = Node(name="a", address="10.0.0.1", connection="tipcflow_node_2", python="/python", workspace="/w")
    target = connection_target(node)
    assert target is not None
    assert (str(target), target.private_key is None) == ("tipcflow@10.213.77.12:22", False)
    left = {**environ, "NODE_NETWORK": "10.9.8"}
    # As in a .env of version 0.1.
    left["NODE_LOGIN_KEY"] = base64.b64encode(env["NODE_LOGIN_KEY"].encode()).decode()
    entrypoint.prepare(left, tmp_path, tmp_path / "none")
    again = json.loads(exported.read_text())["tipcflow_node_2"]
    assert (again["host"], again["extra"]) == ("10.9.8.12", made["extra"])


@pytest.mark.process
def test_redis_requires_and_hides_the_password(root: Path, tmp_path: Path) -> None:
    need("redis-server")
    port, word = free_port(), "s3cretword"
    environ = {"PATH": os.environ["PATH"], "REDIS_PASSWORD_FILE": str(tmp_path / "word")}
    (tmp_path / "word").write_text(word)
    arguments = ("--port", port, "--bind", "127.0.0.1", "--dir", tmp_path)
    with process("sh", root / "docker/redis.sh", *arguments, env=environ, stdout=subprocess.DEVNULL) as server:

        def ask(**more: str) -> str:
            client = subprocess.run(
                ["redis-cli", "-p", str(port), "ping"],
                env={"PATH": os.environ["PATH"], **more},
                capture_output=True,
                text=True,
                timeout=20,
            )
            return client.stdout + client.stderr

        until = time.monotonic() + 30
        while "PONG" not in ask(REDISCLI_AUTH=word):
            assert time.monotonic() < until
            time.sleep(0.05)
        assert "NOAUTH" in ask()
        # The process that docker stops is Redis itself: a shell in its place would ignore SIGTERM.
        assert Path(f"/proc/{server.pid}/comm").read_text() == "redis-server\n"
        assert word.encode() not in Path(f"/proc/{server.pid}/cmdline").read_bytes()


def _deliver(url: str) -> bool:
    webhook = Outbox.for_webhook(url)
    return webhook.add(delivery="1", body_sha256="0" * 64, connection="app", repository="", event="ping", body={})


@pytest.mark.process
def test_postgres_gets_three_databases_and_a_reader_that_cannot_write(root: Path, secrets: Path) -> None:
    need("psql")
    with postgres.running() as server:
        with psycopg.connect(server.url("postgres"), autocommit=True) as first:
            first.execute("CREATE ROLE postgres SUPERUSER LOGIN")
        where = str(server.socket_dir)
        with psycopg.connect(f"postgresql://postgres@/postgres?host={where}", autocommit=True) as admin:
            admin.execute("ALTER ROLE tipcflow RENAME TO before")
        files = {f"{path.name.upper()}_FILE": str(path) for path in secrets.iterdir()}
        environ = {"PATH": os.environ["PATH"], "PGHOST": where, **files}
        script = root / "docker/postgres_init.sh"
        subprocess.run([script], env=environ, check=True, capture_output=True, timeout=60)
        with psycopg.connect(f"postgresql://tipcflow@/tipcflow?host={where}") as owner:
            owner.execute("CREATE TABLE t (a int)")
        # As a volume of an older version, to which the script adds what is new.
        with psycopg.connect(f"postgresql://postgres@/postgres?host={where}", autocommit=True) as admin:
            admin.execute("DROP DATABASE results")
            admin.execute("DROP ROLE results")
        subprocess.run([script], env=environ, check=True, capture_output=True, timeout=60)
        reader = f"postgresql://tipcflow_reader@/tipcflow?host={where}"
        with psycopg.connect(reader) as reading:
            assert reading.execute("SELECT count(*) FROM t").fetchone() == (0,)
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                reading.execute("INSERT INTO t VALUES (1)")
        with psycopg.connect(reader, autocommit=True) as reading:
            reading.execute("SET default_transaction_read_only = off")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reading.execute("INSERT INTO t VALUES (1)")
        owner_url = f"postgresql://tipcflow@/tipcflow?host={where}"
        migrate.upgrade(owner_url)
        with pytest.raises(InfraError, match="permission denied for table outbox"), reachable(reader):
            _deliver(reader)
        grant_reader(owner_url, "tipcflow_reader")
        assert _deliver(reader)
        with pytest.raises(psycopg.OperationalError, match="permission denied"):
            psycopg.connect(f"postgresql://tipcflow_reader@/airflow?host={where}")
        psycopg.connect(f"postgresql://airflow@/airflow?host={where}").close()
        with psycopg.connect(f"postgresql://results@/results?host={where}") as results:
            results.execute("CREATE TABLE celery_taskmeta (a int)")
        # Code on a worker has the passwords of `results` and `tipcflow`.
        for role in ("results", "tipcflow"):
            with pytest.raises(psycopg.OperationalError, match="permission denied"):
                psycopg.connect(f"postgresql://{role}@/airflow?host={where}")


@pytest.mark.process
def test_a_nodes_server_lets_in_one_user_by_key_alone(root: Path, env: Mapping[str, str], tmp_path: Path) -> None:
    sshd = need("sshd")
    key = tmp_path / "host_key"
    key.touch(mode=0o600)
    key.write_text(env["NODE_1_HOST_KEY"])
    config = tmp_path / "sshd_config"
    config.write_text((root / "docker/sshd_config").read_text().replace("/etc/tipcflow", str(tmp_path)))
    make_sshd_folder()
    report = subprocess.run([sshd, "-T", "-f", config], capture_output=True, text=True, timeout=60)
    assert report.returncode == 0, report.stderr
    expected = {
        "passwordauthentication no",
        "kbdinteractiveauthentication no",
        "permitrootlogin no",
        "allowusers tipcflow",
        "maxstartups 100:30:100",
        f"authorizedkeysfile {tmp_path}/authorized_keys",
    }
    assert expected <= set(report.stdout.splitlines())


@pytest.mark.process
def test_a_nodes_keys_are_in_place_before_its_server_starts(
    root: Path, env: Mapping[str, str], secrets: Path, tmp_path: Path
) -> None:
    script = (root / "docker/node_entrypoint.sh").read_text()
    assert script.count("/usr/sbin/sshd") == 1
    (tmp_path / "start.sh").write_text(script.replace("/usr/sbin/sshd -D -e -f", "env #"))
    given = {
        "PATH": os.environ["PATH"],
        "NODE_HOST_KEY_FILE": str(secrets / "node_1_host_key"),
        "NODE_LOGIN_KEY_PUB": env["NODE_LOGIN_KEY_PUB"],
    }
    result = subprocess.run(
        ["bash", tmp_path / "start.sh", tmp_path],
        env=given,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "NODE_" not in result.stdout
    assert (tmp_path / "host_key").read_text() == env["NODE_1_HOST_KEY"]
    assert (tmp_path / "host_key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "authorized_keys").read_text().strip() == env["NODE_LOGIN_KEY_PUB"]
    del given["NODE_HOST_KEY_FILE"]
    result = subprocess.run(["bash", tmp_path / "start.sh", tmp_path], env=given, capture_output=True, text=True)
    assert result.returncode != 0
    assert "NODE_HOST_KEY_FILE: run docker/env.sh" in result.stderr


@pytest.mark.process
@pytest.mark.parametrize(("word", "code"), [("s3cretword", 0), ("other", 1)])
def test_health_check_of_redis_logs_in_by_stdin(root: Path, tmp_path: Path, word: str, code: int) -> None:
    need("redis-server")
    services = yaml.safe_load((root / "docker-compose.yaml").read_text())["services"]
    kind, check = services["redis"]["healthcheck"]["test"]
    assert (kind, "REDISCLI_AUTH" in check) == ("CMD-SHELL", False)
    port = free_port()
    environ = {"PATH": os.environ["PATH"], "REDIS_PASSWORD_FILE": str(tmp_path / "word")}
    (tmp_path / "word").write_text("s3cretword")
    arguments = ("--port", port, "--bind", "127.0.0.1", "--dir", tmp_path)
    with process("sh", root / "docker/redis.sh", *arguments, env=environ, stdout=subprocess.DEVNULL):
        until = time.monotonic() + 20
        while subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True).returncode:
            assert time.monotonic() < until
            time.sleep(0.05)
        (tmp_path / "word").write_text(word)
        command = check.replace("$$", "$").replace("redis-cli", f"redis-cli -p {port}")
        assert subprocess.run(["sh", "-c", command], env=environ, timeout=20).returncode == code


@pytest.mark.process
def test_killed_redis_keeps_its_messages(root: Path, tmp_path: Path) -> None:
    need("redis-server")
    environ = {"PATH": os.environ["PATH"], "REDIS_PASSWORD_FILE": str(tmp_path / "word")}
    (tmp_path / "word").write_text("s3cretword")
    client = {"PATH": os.environ["PATH"], "REDISCLI_AUTH": "s3cretword"}

    def ask(port: int, *words: str) -> str:
        command = ["redis-cli", "-p", str(port), *words]
        return subprocess.run(command, env=client, capture_output=True, text=True, timeout=20).stdout

    for number in (1, 2):
        port = free_port()
        arguments = ("--port", port, "--bind", "127.0.0.1", "--dir", tmp_path)
        # `process` ends it with SIGKILL.
        with process("sh", root / "docker/redis.sh", *arguments, env=environ, stdout=subprocess.DEVNULL):
            until = time.monotonic() + 30
            while "PONG" not in ask(port, "ping"):
                assert time.monotonic() < until
                time.sleep(0.05)
            assert ask(port, "rpush", "default", f"task {number}").strip() == str(number)
