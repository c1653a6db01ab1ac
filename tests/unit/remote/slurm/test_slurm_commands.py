"""Commands for Slurm: their text (golden), and what a shell makes of them."""

import subprocess
from pathlib import Path

import pytest

from tipcflow.domain import Cluster, Node, SlurmSource, SlurmStep
from tipcflow.remote import commands
from tipcflow.remote.slurm import commands as slurm
from tipcflow.remote.slurm.output import SlurmNode, nodes_in

GOLDEN = Path(__file__).parents[3] / "golden" / "remote" / "slurm"
FULL = SlurmSource(
    partition="gpu",
    constraint="[a100|h100]",
    account="ml",
    qos="ci",
    gres="gpu:8",
    time_limit_minutes=120,
    workspace="/scratch/{node}",
)
BARE = SlurmSource(time_limit_minutes=30, workspace="/scratch/{node}")


def node(name: str, job: str = "7", **step: object) -> Node:
    place = SlurmStep.model_validate({"job": job, **step})
    return Node(
        name=name, address="192.0.2.1", python="/opt/bin/python", workspace=f"/scratch/{name}", slurm=place
    )


def cluster(source: SlurmSource) -> Cluster:
    return Cluster(name="hpc", kind="slurm", slurm=source, nodes=(node("slurm-1", ""),))


@pytest.fixture(autouse=True)
def short_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The starter's text is not a part of the golden files."""
    monkeypatch.setattr(slurm, "_starter", lambda: "# starter.py")


EVERY = {
    "submit": lambda: slurm.submit(cluster(FULL), name="tipc-r1-1", nodes=4, nodelist=["n1", "n2"]),
    "submit_bare": lambda: slurm.submit(cluster(BARE), name="tipc-r1-1", nodes=1),
    "batch_script": lambda: slurm.batch_script(cluster(FULL)).rstrip("\n"),
    "on_node": lambda: slurm.on_node(node("n1", gres="gpu:8"), "echo it\\'s"),
    "contact": lambda: slurm.contact([node("n1"), node("n2")]),
    "version": slurm.version,
    "find": lambda: slurm.find("tipc-r1-1"),
    "own": slurm.own,
    "pending": lambda: slurm.pending(cluster(FULL)),
    "nodes": lambda: slurm.nodes("n[1-4]"),
    "state": lambda: slurm.state(node("n1")),
    "down": lambda: slurm.down("n[1-4]"),
    "cancel": lambda: slurm.cancel("tipc-r1-1"),
    "cancel_job": lambda: slurm.cancel_job("7"),
    "start": lambda: commands.start(node("n1"), "/scratch/n1/jobs/r1/train/1"),
}


@pytest.mark.parametrize("name", EVERY)
def test_commands_equal_golden_files(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tipcflow.remote.paths.runner_name", lambda: "runner-0123456789ab.py")
    assert EVERY[name]() + "\n" == (GOLDEN / f"{name}.sh").read_text()


OPTIONS = {
    **{f"{program}_PARTITION": "debug" for program in ("SQUEUE", "SINFO", "SCANCEL", "SBATCH")},
    "SQUEUE_STATES": "COMPLETED\nSQUEUE_USERS=x",
    "SBATCH_ARRAY_INX": "0-9",
    "SCONTROL_ALL": "1",
    "SLURM_CLUSTERS": "other",
}


@pytest.mark.parametrize("name", sorted(EVERY.keys() - {"batch_script", "start"}))
def test_options_in_the_environment_of_the_login_do_not_reach_slurm(name: str, tmp_path: Path) -> None:
    """PATH and the place of slurm.conf do."""
    for program in ("squeue", "sinfo", "scontrol", "scancel", "sbatch", "srun"):
        (tmp_path / program).write_text(f"#!/bin/sh\nenv >>{tmp_path}/env\n")
        (tmp_path / program).chmod(0o755)
    kept = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_CONF": "/etc/hpc.conf"}
    options = {"SLURM_CLUSTERS": "other"} if "srun" in EVERY[name]() else OPTIONS
    subprocess.run(EVERY[name](), shell=True, env={**kept, **options}, timeout=60, check=True)
    lines = (tmp_path / "env").read_text().splitlines()
    assert {f"{key}={value}" for key, value in kept.items()} <= set(lines)
    assert not [line for line in lines if line.partition("=")[0] in OPTIONS]


def test_command_of_a_node_without_allocation_is_refused() -> None:
    with pytest.raises(ValueError, match="slurm-1 is not allocated"):
        slurm.on_node(node("slurm-1", ""), "true")


def test_command_of_other_nodes_is_unchanged() -> None:
    assert slurm.on_node(node("login", "", login=True), "true") == "true"
    assert slurm.on_node(node("n1").model_copy(update={"slurm": None}), "true") == "true"


def test_only_starting_commands_name_the_starter() -> None:
    job = "/scratch/n1/jobs/r1/train/1"
    assert "TIPCFLOW_STARTER=7/n1" in commands.begin(node("n1"), job, seconds=1)
    assert "TIPCFLOW_STARTER" not in commands.poll(node("n1"), job)
    plain = node("n1").model_copy(update={"slurm": None})
    assert "TIPCFLOW_STARTER" not in commands.start(plain, job)


@pytest.mark.parametrize("word", ["it's", "$(touch injected)", "a;b", "a\nb", '"'])
def test_words_of_a_step_reach_the_command_unchanged(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/sh\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n')
    srun.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    command = slurm.on_node(node("n1"), subprocess.list2cmdline(["true"]) + f" && printf %s {_quoted(word)}")
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == word
    assert not (tmp_path / "injected").exists()


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


# Without a query to a resolver: a label of a name has at most 63 characters.
UNKNOWN = "x" * 70


def listed(tmp_path: Path, addresses: list[str]) -> list[SlurmNode]:
    """The nodes n1, n2, ... that a login node lists, with recorded output of scontrol and a real resolver."""
    first = (GOLDEN / "recorded" / "nodes.txt").read_text().splitlines()[0]
    lines = [
        first.replace("NodeName=n1 ", f"NodeName=n{number} ").replace(
            "NodeAddr=127.0.0.11 ", f"NodeAddr={address} "
        )
        for number, address in enumerate(addresses, 1)
    ]
    (tmp_path / "nodes").write_text("".join(f"{line}\n" for line in lines))
    for name, script in (("scontrol", f"exec cat {tmp_path}/nodes"), ("getent", 'exec /usr/bin/getent "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >>{tmp_path}/calls\n{script}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = slurm.nodes(f"n[1-{len(addresses)}]")
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, check=True, timeout=60)
    return nodes_in(done.stdout)


def test_reason_of_an_administrator_replaces_no_address(tmp_path: Path) -> None:
    made = listed(tmp_path, [f"localhost Port=17001 Reason=see NodeAddr={UNKNOWN}", "127.0.0.13"])
    assert [(each.address, each.port) for each in made] == [("127.0.0.1", 17001), ("127.0.0.13", 17001)]


def test_addresses_of_nodes_come_from_scontrol_and_the_resolver(tmp_path: Path) -> None:
    made = listed(tmp_path, [UNKNOWN, "localhost", "127.0.0.13", UNKNOWN, UNKNOWN, "localhost"])
    assert [(each.name, each.address) for each in made] == [
        ("n1", ""),
        ("n2", "127.0.0.1"),
        ("n3", "127.0.0.13"),
        ("n4", ""),
        ("n5", ""),
        ("n6", "127.0.0.1"),
    ]


@pytest.mark.parametrize(
    ("address", "programs"), [("localhost", ["getent", "scontrol"]), ("127.0.0.1", ["scontrol"])]
)
def test_nodes_of_a_large_allocation_need_one_query(tmp_path: Path, address: str, programs: list[str]) -> None:
    made = listed(tmp_path, [address] * 1024)
    assert [each.name for each in made] == [f"n{number}" for number in range(1, 1025)]
    assert {each.address for each in made} == {"127.0.0.1"}
    assert sorted((tmp_path / "calls").read_text().split()) == programs


def test_failed_list_of_nodes_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'slurm_load_node error' >&2\nexit 1\n")
    (tmp_path / "scontrol").chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(slurm.nodes("n1"), shell=True, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
