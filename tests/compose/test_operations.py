"""Steps of docs/operations.md with docker-compose, as the page has them.

Maintenance, a damaged queue, a leaked log, the Fernet key, backup and restore.
"""

import re

from tests.compose.conftest import Note
from tests.support.compose.deployment import AIRFLOW, LAB, Deployment
from tests.support.compose.engine import Engine
from tests.support.installed.operations_page import blocks, inline

# More than the log files of one container may have: 5 of 20 MB.
_OUTPUT_MB = 150
_LIMIT_MB = 5 * 20


def test_old_states_of_celery_are_removed(deployment: Deployment) -> None:
    def count(condition: str) -> int:
        ((found,),) = deployment.sql(f"SELECT count(*) FROM celery_taskmeta WHERE {condition}", "results")
        return int(found)

    deployment.certify()
    old = "date_done < now() - interval '90 days'"
    change = "UPDATE celery_taskmeta SET date_done = date_done - interval '91 days' WHERE id % 2 = 0"
    deployment.sql(change, "results")
    ((last,),) = deployment.sql("SELECT max(id) FROM celery_taskmeta", "results")
    earlier = f"id <= {last}"  # tasks of other DAGs end meanwhile
    recent = count(f"{earlier} AND NOT {old}")
    assert count(old) > 0
    assert recent > 0
    cron = next(block for block in blocks("Retention") if "17 3 * * *" in block)
    (clean,) = (words for words in cron.split(" && ") if "clean_airflow.sh" in words)
    deployment.follow(clean)
    assert (count(old), count(earlier)) == (0, recent)


def test_logs_of_a_container_are_bounded(deployment: Deployment, engine: Engine) -> None:
    name = f"{deployment.project}-logs"
    write = f"yes {'x' * 1000} | head -c {_OUTPUT_MB}M"
    words = ["run", "--detach", "--no-deps", "--name", name, "worker", "sh", "-c", write]
    deployment.compose(*words)
    try:
        assert engine.run("wait", name, timeout=300) == "0"
        size = int(engine.run("logs", "--tail", "100000000", name, timeout=300).count("x"))
        assert _LIMIT_MB * 0.7e6 < size < _LIMIT_MB * 1e6
    finally:
        engine.run("rm", "--force", "--volumes", name)


def test_space_is_freed_and_images_with_a_tag_stay(deployment: Deployment, engine: Engine) -> None:
    (free,) = [block for block in blocks("The metrics database is full or unreachable") if "image prune" in block]
    # A tag of its own, like that of an older version.
    engine.run("tag", deployment.image("tipcflow-node"), "of-an-old-build:1")
    logs = "/var/lib/airflow/logs"
    deployment.inside("worker", "sh", "-c", f"touch -d '-31 days' {logs}/old.log && touch {logs}/new.log")

    def images() -> set[str]:
        return set(engine.run("images", "--format", "{{.Repository}}:{{.Tag}}").split())

    before = images()
    shown = deployment.follow(free)
    assert re.search(r"(?m)^Images +\d", shown)
    assert images() == before - {"<none>:<none>"}
    engine.run("rmi", "of-an-old-build:1")
    assert deployment.inside("worker", "sh", "-c", f"ls {logs}/*.log") == f"{logs}/new.log"


def test_damaged_queue_loses_no_run(deployment: Deployment, engine: Engine, note: Note) -> None:
    queue = f"{deployment.project}_queue"
    (steps,) = [block for block in blocks("A component is down") if "PROJECT_queue" in block]
    with deployment.in_training():
        (redis,) = deployment.containers("redis")
        engine.run("stop", redis)
        damage = (
            "for file in $(find /queue -name '*.aof'); do printf 'damaged' >$file; done; find /queue -name '*.aof'"
        )
        image = engine.run("inspect", "--format", "{{.Config.Image}}", redis)
        words = ("run", "--rm", "--entrypoint", "bash", "--volume", f"{queue}:/queue", image, "-c", damage)
        assert engine.run(*words)
        engine.run("start", redis)
        deployment.until(lambda: "Bad file format" in deployment.logs(redis), "Redis to refuse the file", 60)
        deployment.follow(steps.replace("PROJECT", deployment.project))
    note("chain, queue of Redis damaged in its training", deployment.last_s)
    deployment.until_healthy()


def test_containers_without_copies_of_a_leaked_log(deployment: Deployment, engine: Engine, note: Note) -> None:
    remove = inline("docker-compose rm --stop --force -v worker")
    copies = "/var/lib/tipcflow/runs/leaked"
    with deployment.in_training():
        for service in ("worker", "triggerer", "api-server"):
            for container in deployment.containers(service):
                engine.run("exec", container, "mkdir", "-p", copies)
        deployment.follow(f"{remove}\ndocker-compose up -d")
    note("chain, containers with copies of a log replaced in its training", deployment.last_s)
    deployment.until_healthy()
    for service in ("worker", "triggerer", "api-server"):
        for container in deployment.containers(service):
            assert not engine.run("exec", container, "sh", "-c", f"ls -d {copies} || true")


def test_new_fernet_key_keeps_connections(lab: Deployment) -> None:
    before = lab.secret("airflow_fernet_key")
    lab.follow(blocks("Fernet key")[1])
    assert lab.secret("airflow_fernet_key") != before
    lab.until_healthy()
    lab.certify(cluster=LAB)
    lab.follow(inline("rm -f .secrets/airflow_fernet_key.old"))


def test_restored_backup_has_runs_connections_and_files(lab: Deployment, engine: Engine) -> None:
    run = lab.certify(cluster=LAB)
    steps = blocks("Back up and restore")
    backup, databases, objects = (
        next(block for block in steps if word in block)
        for word in (">objects.tar.gz", "postgres pg_restore", "<objects.tar.gz")
    )
    lab.follow(backup)
    later = lab.certify()
    lab.follow(inline("docker-compose stop worker triggerer scheduler dag-processor api-server"))
    # As on another machine.
    lab.compose("rm", "--stop", "--force", "-v", *AIRFLOW, "init", "postgres", "redis")
    engine.run("volume", "rm", *(f"{lab.project}_{name}" for name in ("database", "objects", "queue", "logs")))
    lab.follow("docker-compose up -d postgres")
    lab.until_healthy("postgres")
    lab.follow(databases)
    lab.follow(objects)
    lab.follow("docker-compose up -d")
    lab.until_healthy()
    runs = [row[0] for row in lab.verdicts()]
    assert run in runs
    assert later not in runs
    lab.verify_everywhere(run)
    lab.certify(cluster=LAB)
    command = inline("airflow dags trigger maintenance")
    lab.follow(f"docker-compose exec -T scheduler {command}")

    def maintained() -> bool:
        newest = "SELECT state FROM dag_run WHERE dag_id = 'maintenance' ORDER BY id DESC LIMIT 1"
        return lab.sql(newest, "airflow") == [["success"]]

    lab.until(maintained, "a successful run of maintenance")
