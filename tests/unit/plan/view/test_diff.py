"""bash against spec."""

from collections.abc import Callable

import pytest

from tipcflow.domain import Cluster, Compat, Plan
from tipcflow.params import load_dialect
from tipcflow.plan import differences
from tipcflow.plan.view.dialect_keys import DialectKey, dialect_keys

Make = Callable[..., Plan]


def test_only_differences_are_listed(plan: Make, short_text: str) -> None:
    bash, spec = plan(short_text, compat=Compat.BASH), plan(short_text)
    found = differences(bash, spec)
    leg = next(each for each in found if each.leg == "cpu_batch_1")
    assert "--img-path" in (leg.spec or "")
    assert "--img-path" not in (leg.bash or "")
    assert [quirk.id for quirk in leg.reasons] == ["image-dropped"]
    assert "prepare" not in {each.step for each in found}
    assert differences(spec, spec) == []


def test_a_node_that_one_side_lacks_is_listed(plan: Make, norm_text: str) -> None:
    text = norm_text.replace("192.168.0.1,192.168.0.2;0,1|0", "10.0.0.1,10.0.0.2;0,1")
    lost = [each for each in differences(plan(text, compat=Compat.BASH), plan(text)) if each.node == 1]
    assert {each.step.rpartition("/")[2] for each in lost} == {"train"}
    assert all(each.bash is None and each.spec for each in lost)
    assert all([quirk.id for quirk in each.reasons] == ["ips-by-length"] for each in lost)


def test_gpus_that_become_processes_are_a_reason(
    plan: Make, norm_text: str, cluster: Callable[..., Cluster]
) -> None:
    both = (plan(norm_text, compat=compat, cluster=cluster()) for compat in (Compat.BASH, Compat.SPEC))
    found = differences(*both)
    train = next(each for each in found if each.step.endswith("gpus_0,1_autocast_null/train"))
    assert "--nproc_per_node=2" in (train.spec or "")
    assert "cpu-nodes" in {quirk.id for quirk in train.reasons}
    assert [each.step for each in found if not each.reasons] == []


FILE = "test_tipc/configs/m/params.txt"


@pytest.mark.parametrize(
    ("values", "names", "word"),
    [
        ({}, [], ""),
        ({"output": "./results"}, ["output"], "--output-dir=./results/norm_train_gpus_0,1_autocast_null"),
        ({"save": "{LP}/gpus_{gpus}"}, ["output", "save"], "--output-dir=./test_tipc/output/gpus_0,1"),
        ({"bash_vars": {"epochs": {"*": "2"}}}, ["bash_vars.epochs"], "--epochs=2"),
    ],
)
def test_keys_that_only_the_script_uses_are_found(
    norm_text: str, values: dict[str, object], names: list[str], word: str
) -> None:
    dialect = load_dialect("models/template").model_copy(update=values)
    keys = dialect_keys(norm_text, file=FILE, dialect=dialect, mode="lite_train_lite_infer")
    assert [key.name for key in keys] == names
    assert not word or any(word in key.has for key in keys)


def test_arguments_that_a_script_loses_are_explained_by_a_key(norm_text: str) -> None:
    dialect = load_dialect("models/template")
    cpu = dialect.cpu.model_copy(update={"bash": dialect.cpu.command.replace("{threads=}", "")})
    dialect = dialect.model_copy(update={"cpu": cpu})
    (key,) = dialect_keys(norm_text, file=FILE, dialect=dialect, mode="lite_train_lite_infer")
    assert key == DialectKey("cpu.bash", frozenset(), frozenset({"--cpu-threads=1", "--cpu-threads=2"}))
    assert key.explains("", "--cpu-threads=1")
    assert not key.explains("--use-gpu=True", "--use-gpu=False --epochs=5")


def test_a_key_of_the_dialect_is_the_reason_only_without_a_quirk(plan: Make, norm_text: str) -> None:
    bash, spec = plan(norm_text, compat=Compat.BASH), plan(norm_text)
    lost = DialectKey("train.bash", frozenset(), frozenset({"--ips=192.168.0.1,192.168.0.2"}))
    explained = next(
        each for each in differences(bash, spec, [lost]) if each.spec == "--ips=192.168.0.1,192.168.0.2"
    )
    assert [quirk.id for quirk in explained.reasons] == ["ips-by-length"]
    assert explained.keys == ()
    bare = spec.model_copy(update={"quirks": ()})
    found = next(each for each in differences(bash, bare, [lost]) if each.spec == "--ips=192.168.0.1,192.168.0.2")
    assert (found.reasons, found.keys) == ((), ("train.bash",))
    assert found.as_json()["dialect_keys"] == ["train.bash"]
