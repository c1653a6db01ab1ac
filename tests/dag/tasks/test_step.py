"""A step's operator is an SSHOperator: connection arguments and hooks work as Airflow users know them."""

from types import SimpleNamespace as Namespace
from typing import Any

import pytest
from airflow.providers.ssh.hooks.ssh import SSHHook
from airflow.providers.ssh.operators.ssh import SSHOperator

from tipcflow.domain import InfraError, Node
from tipcflow.execute.resolve.moved import MovedDocument
from tipcflow_operators.airflow import connect as connecting
from tipcflow_operators.tasks.step import StepOperator

KEY = "ssh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIJ0RrLjMbvYcS5Ze3FNC0TjT6Fq3dGcSxQ8yd7c3kQ9L"


def node(name: str = "a") -> Node:
    return Node(name=name, address="10.0.0.1", python="/p", workspace="/w", slots=1, connection=f"ssh_{name}")


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "spare"):
        monkeypatch.setenv(f"AIRFLOW_CONN_SSH_{name.upper()}", f"ssh://ci@{name}.example:22?host_key={KEY}")
    monkeypatch.setenv("AIRFLOW_CONN_SSH_OPEN", "ssh://ci@open.example:22?no_host_key_check=true")
    # Only the asynchronous hook of triggers obeys it.
    monkeypatch.setenv("AIRFLOW_CONN_SSH_ANY", "ssh://ci@any.example:22?known_hosts=None")


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """(node, connection id of the hook or None) of every connection that was made."""
    seen: list[tuple[str, str | None]] = []

    def fake(node: Node, hook: Any = None) -> Any:
        seen.append((node.name, hook and hook.ssh_conn_id))
        return object()

    monkeypatch.setattr("tipcflow_operators.tasks.step.connect", fake)
    return seen


def operator(**kwargs: Any) -> StepOperator:
    return StepOperator(task_id="train", kind="train", node="a", **kwargs)


def test_step_operator_is_an_ssh_operator_with_a_template_field() -> None:
    assert issubclass(StepOperator, SSHOperator)
    assert "ssh_conn_id" in StepOperator.template_fields


def test_without_arguments_the_cluster_file_names_the_connection(reached: list[Any]) -> None:
    task = operator()
    task.connect(node("a"))
    task.connect(node("b"))
    assert reached == [("a", None), ("b", None)]
    assert task.get_hook().ssh_conn_id == "ssh_a"
    assert task.get_hook().remote_host == "a.example"


def test_ssh_conn_id_replaces_the_connection_of_one_node_only(reached: list[Any]) -> None:
    task = operator(ssh_conn_id="ssh_spare")
    task.connect(node("a"))
    task.connect(node("b"))
    assert reached == [("a", "ssh_spare"), ("b", None)]
    assert task._reached_by(node("a")).connection == "ssh_spare", "the triggerer uses the same connection"
    assert task._reached_by(node("b")).connection == "ssh_b"


class Context:
    """Of a run that was planned on a and b, and has moved to the nodes b and c."""

    run_id = "mine"
    plan = Namespace(nodes=("b", "c"))
    cluster = Namespace(slurm=None)
    store = Namespace(documents=Namespace(several=lambda *_: {MovedDocument: MovedDocument(planned=("a", "b"))}))


@pytest.mark.parametrize(("mapped", "node"), [("a", "b"), ("b", "c")])
def test_task_of_a_run_that_moved_takes_the_node_once(mapped: str, node: str) -> None:
    task = StepOperator(task_id="train", kind="train", node=mapped)
    for _ in range(2):
        task._name_allocated(Context)  # type: ignore[arg-type]
        assert (task.node, task._own_node) == (node, node)


def test_connection_of_an_operator_does_not_move_with_its_node(reached: list[Any]) -> None:
    task = operator(ssh_conn_id="ssh_spare")
    task._name_allocated(Context)  # type: ignore[arg-type]
    task.connect(node("b"))
    assert (task.node, reached) == ("b", [("b", None)])


def test_a_hook_is_used_and_not_shared_between_transports(reached: list[Any]) -> None:
    hook = SSHHook(ssh_conn_id="ssh_spare")
    task = operator(ssh_hook=hook)
    assert task.hook is hook
    hook.client = object()  # type: ignore[assignment]
    task.connect(node("a"))
    assert reached == [("a", "ssh_spare")]
    assert hook.client is not None


@pytest.mark.parametrize("name", ["command", "environment", "get_pty", "cmd_timeout", "remote_host"])
def test_arguments_that_the_plan_decides_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: the plan and the connection decide this; remove the argument"):
        operator(**{name: "x"})


def test_a_hook_without_a_connection_id_is_rejected() -> None:
    hook = SSHHook(remote_host="a.example", username="ci")
    with pytest.raises(ValueError, match="ssh_hook has no ssh_conn_id"):
        operator(ssh_hook=hook)


@pytest.mark.parametrize("connection", ["ssh_open", "ssh_any"])
def test_host_keys_are_checked_for_any_connection_extra(connection: str) -> None:
    with pytest.raises(InfraError, match=f"node a: Airflow connection {connection} disables"):
        operator(ssh_conn_id=connection).get_hook()
    hook = SSHHook(ssh_conn_id="ssh_open")
    with pytest.raises(InfraError, match="disables host key verification"):
        connecting.connect(node("a"), hook)
