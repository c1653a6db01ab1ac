"""Secrets and keys are replaced while a chain trains, by the steps of docs/operations.md: nothing is lost."""

import subprocess
from pathlib import Path

from tests.compose.conftest import Note
from tests.support.compose.deployment import LAB, LAB_CONNECTION, SCALE, Deployment
from tests.support.installed.operations_page import blocks

NODES = {"node-1": f"{LAB_CONNECTION}1", "node-2": f"{LAB_CONNECTION}2"}


def _generate(path: Path) -> str:
    """Make a key pair; returns the public key."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, timeout=30)
    return " ".join(path.with_name(f"{path.name}.pub").read_text().split()[:2])


def test_new_secrets_and_password_of_redis_lose_no_run(deployment: Deployment, note: Note) -> None:
    names = ("airflow_jwt_secret", "airflow_secret_key", "redis_password")
    before = {name: deployment.secret(name) for name in names}
    steps = blocks("JWT secret and passwords")[0]
    with deployment.in_training():
        deployment.follow(f"rm -f .secrets/redis_password\n{steps}")
    note("chain, JWT secret, secret key and Redis' password replaced in its training", deployment.last_s)
    assert not {name for name in names if deployment.secret(name) == before[name]}
    # The page's command knows no --scale.
    deployment.up(scale=SCALE)
    deployment.until_healthy()


def test_new_passwords_of_databases_lose_no_run(deployment: Deployment, note: Note) -> None:
    *steps, restart = blocks("JWT secret and passwords")[1].splitlines()
    # The page's steps are those of one role.
    roles = {"tipcflow": "metrics_db_password", "airflow": "airflow_db_password", "results": "results_db_password"}
    roles |= {"tipcflow_reader": "metrics_reader_password", "postgres": "postgres_password"}
    before = {name: deployment.secret(name) for name in roles.values()}
    texts = [
        "\n".join(steps).replace("ROLE tipcflow", f"ROLE {role}").replace("metrics_db_password", name)
        for role, name in roles.items()
    ]
    assert len(set(texts)) == len(roles)
    with deployment.in_training():
        deployment.follow("\n".join([*texts, restart]))
    note("chain, passwords of five roles of PostgreSQL replaced in its training", deployment.last_s)
    assert not {name for name in before if deployment.secret(name) == before[name]}
    deployment.up(scale=SCALE)
    deployment.until_healthy()
    # The api-server reads as tipcflow_reader. No service logs in as postgres, which needs its password by TCP.
    with deployment.api("ci") as client:
        client.get("/certification/api/runs").raise_for_status()
    login = 'PGPASSWORD={} psql --host "$(cat /etc/hostname)" --username postgres --no-align --tuples-only 2>&1'
    new, old = (
        deployment.inside("postgres", "bash", "-c", f"echo SELECT 1 | {login.format(word)}", check=False)
        for word in (deployment.secret("postgres_password"), before["postgres_password"])
    )
    assert new == "1"
    assert "password authentication failed" in old


def test_new_passwords_of_users_end_the_old_ones(deployment: Deployment) -> None:
    users = ("admin", "ci")
    before = {user: deployment.secret(f"airflow_{user}_password") for user in users}
    _, *steps = blocks("JWT secret and passwords")[0].splitlines()
    names = " ".join(f".secrets/airflow_{user}_password" for user in users)
    deployment.follow("\n".join([f"rm -f {names}", *steps]))
    deployment.up(scale=SCALE)
    deployment.until_healthy()
    for user, password in before.items():
        with deployment.api(user) as client:
            client.get("/certification/api/runs").raise_for_status()
            refused = client.post("/auth/token", json={"username": user, "password": password})
        assert refused.status_code == 401
    deployment.certify()


def test_cli_reads_connections_of_the_database(lab: Deployment) -> None:
    # Without a terminal.
    shown = lab.follow(blocks("Overview")[0].replace("exec triggerer", "exec -T triggerer"))
    assert shown.count("frameworks configured, but not found: paddlepaddle") == 2


def test_new_login_key_of_nodes_loses_no_run(lab: Deployment, tmp_path: Path) -> None:
    public = _generate(tmp_path / "key")
    keys = "/etc/tipcflow/authorized_keys"
    with lab.in_training(LAB):
        for node in NODES:
            lab.inside(node, "sh", "-c", f"echo '{public}' >>{keys}")
        lab.change_connections(*NODES.values(), private_key=(tmp_path / "key").read_text())
        for node in NODES:
            lab.inside(node, "sh", "-c", f"echo '{public}' >{keys}")
            assert lab.inside(node, "cat", keys) == public


def test_new_host_key_of_a_node_loses_no_run(lab: Deployment, tmp_path: Path) -> None:
    public = _generate(tmp_path / "key")
    private = (tmp_path / "key").read_text()
    with lab.in_training(LAB):
        lab.inside(
            "node-1", "sh", "-c", f"cat >/etc/tipcflow/host_key <<'KEY'\n{private}KEY\npkill -HUP -o -x sshd"
        )
        lab.change_connections(NODES["node-1"], host_key=public)


def test_demo_nodes_get_new_keys(deployment: Deployment) -> None:
    before = deployment.secret("node_login_key"), deployment.secret("node_1_host_key")
    deployment.follow(blocks("Node keys")[1])
    assert not {deployment.secret("node_login_key"), deployment.secret("node_1_host_key")} & set(before)
    deployment.up(scale=SCALE)
    deployment.certify()


def test_old_public_key_verifies_certificates_of_the_old_signing_key(deployment: Deployment) -> None:
    old, public = deployment.verdicts()[0][0], deployment.secret("signing_key_pub")
    deployment.verify_everywhere(old)
    rotate, verify = blocks("Signing key")
    deployment.follow(rotate)
    assert deployment.secret("signing_key_pub") != public
    deployment.up(scale=SCALE)
    deployment.until_healthy("worker")
    for run in (old, deployment.certify()):
        assert "signature valid)" in deployment.follow(verify.replace("verify RUN", f"verify {run}"))
