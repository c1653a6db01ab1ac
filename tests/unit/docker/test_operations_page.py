"""The steps of docs/operations.md that concern PostgreSQL work on a real server, as they are written there."""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
import yaml
from tests.support import postgres
from tests.support.installed.operations_page import PAGE, ROOT, blocks, commands, shell
from tests.support.programs import need
from tests.support.stories import a_run, losses, record_run
from typer.main import get_command

from tipcflow.cli.main import app
from tipcflow.store import Store

pytestmark = pytest.mark.process


class Server:
    """A server with the databases of a deployment, and shells on it."""

    def __init__(self, server: postgres.Server, folder: Path) -> None:
        self._server, self.folder = server, folder
        self.url = server.url("tipcflow")
        programs = f"{Path(sys.executable).parent}:{postgres.need_binaries()}:{os.environ['PATH']}"
        self.env = {"PGHOST": str(server.socket_dir), "PGUSER": "tipcflow", "PATH": programs}
        self.env |= {"TIPCFLOW_DATABASE_URL": self.url, "TIPCFLOW_HOME": str(folder)}

    def run(self, text: str) -> str:
        return shell(text.replace("/srv/backup", str(self.folder)), self.env, cwd=self.folder)

    def sql(self, database: str, text: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self._server.url(database), autocommit=True) as connection:
            done = connection.execute(text)
            return done.fetchall() if done.description else []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    for program in ("psql", "pg_dump", "pg_restore"):
        need(program)
    with postgres.running() as running:
        made = Server(running, tmp_path)
        for name in ("tipcflow", "airflow"):
            made.sql("postgres", f'CREATE DATABASE "{name}"')
        Store.open(made.url).close()
        yield made


def test_commands_of_tipcflow_exist() -> None:
    groups = get_command(app).commands  # type: ignore[attr-defined]
    used = set(re.findall(r"(?m)^ *tipcflow ([a-z]+) ([a-z]+)\b", PAGE.read_text()))
    used |= set(re.findall(r"`tipcflow ([a-z]+) ([a-z]+)\b", PAGE.read_text()))
    assert ("db", "backup") in used
    for group, command in used:
        assert command in groups[group].commands, f"tipcflow {group} {command}"


def test_commands_without_a_subcommand_need_none() -> None:
    groups = get_command(app).commands  # type: ignore[attr-defined]
    used = set(re.findall(r"`tipcflow ([a-z]+)(?:`| -)", PAGE.read_text()))
    assert {"runs", "nodes"} < used
    # Roles have names of the same form.
    for name in used & set(groups):
        assert not groups[name].no_args_is_help, f"tipcflow {name}"


def test_every_secret_of_docker_compose_has_its_rotation() -> None:
    section = re.search(r"(?ms)^## A secret leaked\n(.*?)^## ", PAGE.read_text())
    assert section
    table = [line for line in section[1].splitlines() if line.startswith("|")]
    for name in yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["secrets"]:
        if name != "signing_key_pub":
            assert any(f"`{name}`" in line.split("|")[1] for line in table), name


def test_airflows_database_is_restored_with_its_privileges(server: Server) -> None:
    server.sql("airflow", "CREATE TABLE dag_run AS SELECT 1 AS id")
    server.sql("airflow", 'REVOKE CONNECT ON DATABASE "airflow" FROM PUBLIC')
    granted = "SELECT unnest(datacl)::text FROM pg_database WHERE datname = 'airflow' ORDER BY 1"
    before = server.sql("postgres", granted)
    (dump,) = commands("Back up and restore", "pg_dump")
    server.run(dump)
    (copy,) = server.folder.glob("airflow-*.dump")
    server.sql("airflow", "DROP TABLE dag_run")
    lines = [line.strip() for line in blocks("Back up and restore")[2].splitlines()]
    restore = next(line for line in lines if line.startswith("pg_restore"))
    server.run(re.sub(r"\S+\.dump", str(copy), restore))
    assert server.sql("airflow", "SELECT id FROM dag_run") == [(1,)]
    assert server.sql("postgres", granted) == before


def test_space_is_freed_in_a_full_database(server: Server) -> None:
    _, block = blocks("The metrics database is full or unreachable")
    assert block.count("rollup") == 2
    server.run(block)


@pytest.mark.full
def test_full_vacuum_shrinks_the_file_of_the_samples(server: Server) -> None:
    with Store.open(server.url) as store:
        run = record_run(store, a_run(created_at=store.now() - 200 * 86_400.0))
        noise = random.Random(1)
        for number in range(20):
            curve = losses(run.id, [noise.random() for _ in range(5000)], node=f"node-{number}", unit="nat")
            store.measurements.add(curve)
    _, block = blocks("The metrics database is full or unreachable")
    size = "SELECT pg_total_relation_size('series')"
    ((before,),) = server.sql("tipcflow", size)
    server.run(block)
    ((kept,),) = server.sql("tipcflow", size)
    assert "`VACUUM FULL series`" in PAGE.read_text()
    vacuum = block.splitlines()[-1].replace("VACUUM (ANALYZE)", "VACUUM FULL")
    assert vacuum.endswith("'VACUUM FULL series'")
    server.run(vacuum)
    ((shrunk,),) = server.sql("tipcflow", size)
    assert shrunk < kept / 2, (before, kept, shrunk)


def test_index_of_the_text_search_is_added_later(server: Server) -> None:
    if not server.sql("postgres", "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"):
        pytest.skip("PostgreSQL has no extension pg_trgm (Debian: postgresql-contrib)")
    server.sql("tipcflow", "DROP EXTENSION IF EXISTS pg_trgm CASCADE")
    server.run(blocks("The text search of runs is slow on PostgreSQL")[0])
    assert server.sql("tipcflow", "SELECT 1 FROM pg_indexes WHERE indexname = 'ix_runs_search'")
    with Store.open(server.url) as store:
        store.runs.create(a_run())


def test_results_of_celery_are_removed_by_age(server: Server) -> None:
    """`airflow` does nothing: the results have a database that the command does not know."""
    program = server.folder / "airflow"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    server.env |= {"AIRFLOW_HOME": str(server.folder), "PATH": f"{server.folder}:{server.env['PATH']}"}
    server.sql("postgres", "CREATE DATABASE results")
    server.env["AIRFLOW__CELERY__RESULT_BACKEND"] = f"db+{server.url.replace('/tipcflow?', '/results?')}"
    script = str(ROOT / "docker" / "clean_airflow.sh")
    server.run(script)
    server.sql("results", "CREATE TABLE celery_taskmeta (date_done timestamp)")
    ages = "SELECT now() - days * interval '1 day' FROM unnest('{89, 91}'::int[]) AS days"
    server.sql("results", f"INSERT INTO celery_taskmeta {ages}")
    server.run(script)
    left = "SELECT now() - date_done < interval '90 days' FROM celery_taskmeta"
    assert server.sql("results", left) == [(True,)]


@pytest.fixture
def rotation(server: Server) -> Server:
    """The server, in a folder with secrets of docker-compose; docker-compose only runs psql, on this machine."""
    need("ssh-keygen")
    need("openssl")
    server.sql("postgres", "CREATE ROLE postgres SUPERUSER LOGIN")
    shutil.copytree(ROOT / "docker", server.folder / "docker")
    shutil.copy(ROOT / "pyproject.toml", server.folder)
    for name in ("dags", "configs"):
        (server.folder / name).mkdir()
    program = server.folder / "docker-compose"
    program.write_text('#!/bin/sh\nif [ "$1" = exec ]; then shift 3; exec "$@" postgres; fi\n')
    program.chmod(0o755)
    server.env["PATH"] = f"{server.folder}:{server.env['PATH']}"
    server.run("docker/env.sh")
    return server


def secrets(server: Server) -> dict[str, str]:
    return {path.name: path.read_text() for path in (server.folder / ".secrets").iterdir() if path.is_file()}


def test_only_named_secrets_are_rotated(rotation: Server) -> None:
    before = secrets(rotation)
    rotation.run(blocks("JWT secret and passwords")[0])
    after = secrets(rotation)
    changed = {name for name in before if before[name] != after[name]}
    assert (changed, set(after)) == ({"airflow_jwt_secret", "airflow_secret_key"}, set(before))


def test_both_fernet_keys_exist_until_the_rotation_ends(rotation: Server) -> None:
    before = secrets(rotation)["airflow_fernet_key"]
    (rotation.folder / "docker-compose").write_text(
        '#!/bin/sh\nif [ "$1" = run ]; then echo "$AIRFLOW__CORE__FERNET_KEY"; exit 1; fi\n'
    )
    steps = blocks("Fernet key")[1]
    with pytest.raises(AssertionError, match=before):
        rotation.run(steps)
    kept = secrets(rotation)
    assert kept["airflow_fernet_key.old"] == before != kept["airflow_fernet_key"]
    # The command is repeated after it failed.
    assert rotation.run(steps[steps.index("old=") :].replace("docker-compose run", "true")) == ""
    assert secrets(rotation) == kept


def test_password_of_the_database_is_that_of_the_new_file(rotation: Server) -> None:
    before = secrets(rotation)["metrics_db_password"]
    rotation.run(blocks("JWT secret and passwords")[1])
    assert secrets(rotation)["metrics_db_password"] != before
    stored = "SELECT rolpassword IS NOT NULL FROM pg_authid WHERE rolname = 'tipcflow'"
    assert rotation.sql("postgres", stored) == [(True,)]


def test_old_public_key_is_kept_beside_a_new_pair(rotation: Server) -> None:
    before = secrets(rotation)
    rotation.run(blocks("Signing key")[0])
    (old,) = (rotation.folder / ".secrets" / "signing_keys").iterdir()
    assert old.read_text() == before["signing_key_pub"]
    after = secrets(rotation)
    changed = {name for name in before if before[name] != after[name]}
    assert (changed, set(after)) == ({"signing_key", "signing_key_pub"}, set(before))


def test_new_login_key_of_nodes_is_added_to_the_old_one(rotation: Server) -> None:
    program = rotation.folder / "ssh"  # runs the command on this machine, in the folder of the node's account
    program.write_text(f'#!/bin/sh\nHOME={rotation.folder}/home exec bash -c "$2"\n')
    program.chmod(0o755)
    (rotation.folder / "home" / ".ssh").mkdir(parents=True)
    (rotation.folder / "home" / ".ssh" / "authorized_keys").write_text("ssh-ed25519 old\n")
    rotation.run(blocks("Node keys")[0])
    lines = (rotation.folder / "home" / ".ssh" / "authorized_keys").read_text().splitlines()
    assert lines == ["ssh-ed25519 old", (rotation.folder / "new_key.pub").read_text().strip()]
    assert lines[1].endswith(" tipcflow")


def test_schema_is_downgraded_after_a_backup(server: Server) -> None:
    block = next(block for block in blocks("Downgrade") if "db downgrade" in block)
    server.run(block)
    assert server.sql("tipcflow", "SELECT version_num FROM alembic_version") == [("0013",)]
    assert (server.folder / "before-downgrade.backup").is_file()


def test_old_runs_are_removed(server: Server) -> None:
    with Store.open(server.url) as store:
        run = record_run(store, a_run("20250101t000000-toy-0a1b", created_at=store.now() - 500 * 86_400.0))
    (server.folder / "runs" / run.id).mkdir(parents=True)
    (line,) = commands("Retention", "tipcflow")
    assert "removed, of 1 run" in server.run(line)
    assert not (server.folder / "runs" / run.id).exists()


def test_archive_of_the_object_store_is_restored(tmp_path: Path) -> None:
    """docker-compose runs `tar` on this machine, in folders instead of the volume."""
    program = tmp_path / "docker-compose"
    program.write_text('#!/bin/sh\nwhile [ "$1" != worker ]; do shift; done\nshift\nexec "$@"\n')
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    kept = tmp_path / "objects" / "runs" / "a" / "main.log"
    kept.parent.mkdir(parents=True)
    kept.write_text("loss: 1\n")
    (tmp_path / "objects" / ".aside").mkdir()
    (tmp_path / "objects" / ".aside" / "unfinished").write_text("x")
    lines = [line.strip() for block in blocks("Back up and restore") for line in block.splitlines()]
    save, restore = (line for line in lines if "objects.tar.gz" in line)
    shell(save.replace("/var/lib/tipcflow-objects", str(tmp_path / "objects")), env, cwd=tmp_path)
    (tmp_path / "other").mkdir()
    shell(restore.replace("/var/lib/tipcflow-objects", str(tmp_path / "other")), env, cwd=tmp_path)
    assert (tmp_path / "other" / "runs" / "a" / "main.log").read_text() == "loss: 1\n"
    assert not (tmp_path / "other" / ".aside").exists()


@pytest.mark.parametrize("heading", ["Back up and restore", "Major version of PostgreSQL"])
def test_only_the_owner_reads_copies_of_databases(tmp_path: Path, heading: str) -> None:
    """docker-compose prints a word instead of a copy."""
    (tmp_path / "bin").mkdir()
    for name in ("docker-compose", "sudo"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\necho copy\n")
        program.chmod(0o755)
    block = next(block for block in blocks(heading) if ">airflow.dump" in block)
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    shell(f"umask 022\n{block}\n[ $(umask) = 0022 ]", env, cwd=tmp_path)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir() if path.is_file()}
    assert "airflow.dump" in modes
    assert set(modes.values()) == {"0o600"}, modes


def test_rows_of_the_audit_log_stay_longer(tmp_path: Path) -> None:
    program = tmp_path / "airflow"
    program.write_text('#!/bin/sh\nshift 3\necho "$@" >>calls\n')
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    env["AIRFLOW_HOME"] = str(tmp_path)
    lines = blocks("Retention")[0].splitlines()[1:]
    assert lines[0].startswith("tables=")
    # The script of the images has the same lines.
    script = (ROOT / "docker" / "clean_airflow.sh").read_text().splitlines()
    assert [line for line in script if line in lines] == lines
    shell("\n".join(lines[:3]), env, cwd=tmp_path)
    calls = [line.split() for line in (tmp_path / "calls").read_text().splitlines()]
    rows, audit = [(words[0], set(words[2].split(","))) for words in calls]
    assert {"dag_run", "task_instance", "xcom"} < rows[1]
    assert "log" not in rows[1]
    assert audit[1] == {"log"}
    age = datetime.fromisoformat(rows[0]) - datetime.fromisoformat(audit[0])
    assert age.days == 310
    from airflow.utils.db_cleanup import config_dict

    assert rows[1] | audit[1] == set(config_dict)


def test_lines_of_cron_clean_the_deployment(tmp_path: Path) -> None:
    """As cron runs them: /bin/sh, no variable of the user but those of the crontab."""
    variables, line = next(block for block in blocks("Retention") if "17 3 * * *" in block).splitlines()
    name, path = variables.split("=")
    assert (name, path.split(":")) == ("PATH", ["/usr/local/bin", "/usr/bin", "/bin"])
    *times, command = line.split(" ", 5)
    assert times == ["17", "3", "*", "*", "*"]
    assert "%" not in command, "cron ends the command there"
    program = tmp_path / "bin" / "docker-compose"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$PWD $*" >>"${0%/*}/calls"\n')
    program.chmod(0o755)
    env = {"PATH": path.replace("/usr/local/bin", str(program.parent)), "SHELL": "/bin/sh", "HOME": "/"}
    words = ["/bin/sh", "-c", command.replace("/srv/tipcflow", str(tmp_path))]
    subprocess.run(words, env=env, cwd="/", check=True, timeout=60)
    calls = (program.parent / "calls").read_text().splitlines()
    timer, service = unit_files()
    assert [f"{tmp_path} {call}" for call in re.findall(r"(?m)^ExecStart=docker-compose (.*)$", service)] == calls
    assert [call.split()[3:5] for call in calls] == [
        ["scheduler", "/opt/tipcflow/docker/clean_airflow.sh"],
        ["worker", "tipcflow"],
    ]
    assert "OnCalendar=*-*-* 03:17\n" in timer


def unit_files() -> list[str]:
    """The timer and the service of systemd."""
    return [block for block in blocks("Retention") if block.startswith(("[Timer]", "[Service]"))]


def test_unit_files_of_systemd_are_valid(tmp_path: Path) -> None:
    analyze = need("systemd-analyze", "systemd")
    timer, service = unit_files()
    # The name of a program without its folder, as docker-compose, which this machine may lack.
    assert service.count("ExecStart=docker-compose ") == 2
    files = {"timer": timer, "service": service.replace("=docker-compose ", "=true ")}
    for kind, text in files.items():
        (tmp_path / f"tipcflow-clean.{kind}").write_text(text)
        assert f"/etc/systemd/system/tipcflow-clean.{kind}`" in PAGE.read_text()
    names = [tmp_path / f"tipcflow-clean.{kind}" for kind in files]
    done = subprocess.run([analyze, "verify", *names], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    calendar = re.findall(r"(?m)^OnCalendar=(.*)$", timer)
    done = subprocess.run([analyze, "calendar", *calendar], capture_output=True, text=True, timeout=60, check=True)
    assert "Normalized form: *-*-* 03:17:00" in done.stdout
