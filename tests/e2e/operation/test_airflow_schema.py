"""The line of docs/operations.md that downgrades Airflow's own database, on a real PostgreSQL."""

import os
import re
import sys
from pathlib import Path

import psycopg
import pytest
from tests.support import postgres
from tests.support.installed.operations_page import PAGE, shell

pytestmark = [pytest.mark.e2e, pytest.mark.full]


def test_schema_of_airflow_is_downgraded_and_upgraded(tmp_path: Path) -> None:
    (line,) = re.findall(r"`(airflow db downgrade [^`]*)`", PAGE.read_text())
    with postgres.running() as server:
        url = server.create()
        env = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "AIRFLOW_HOME": str(tmp_path),
            "AIRFLOW__CORE__AUTH_MANAGER": "tipcflow_operators.access.manager.RolesAuthManager",
            "AIRFLOW__CORE__FERNET_KEY": "",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url.replace("postgresql:", "postgresql+psycopg2:"),
        }

        def schema() -> tuple[object, ...]:
            with psycopg.connect(url) as connection:
                row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
                return row or ()

        def run(text: str) -> str:
            return shell(text, env, cwd=tmp_path)

        run("airflow db migrate")
        newest = schema()
        run("airflow connections add kept --conn-type generic --conn-password kept-word")
        run(line)
        assert schema() != newest
        run("airflow db migrate")
        assert schema() == newest
        assert "kept-word" in run("airflow connections get kept --output json")
