"""The default plan of a run: the content of the params file, on the nodes of a cluster."""

from collections.abc import Callable

import pytest

from tipcflow.domain import Cluster, ConfigError, Plan, Step, StepKind

Make = Callable[..., Plan]
FLEET = "fleet_train_gpus_0,1_autocast_False_nodes_2"


def steps_of(plan: Plan, kind: StepKind) -> list[Step]:
    return [step for step in plan.steps if step.kind is kind]


def test_two_node_training_differs_by_host_alone(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    train = plan(short_text, cluster=cluster()).step(f"{FLEET}/train")
    assert train.nodes == ("a", "b")
    assert (train.slots, train.world_size, train.is_gang) == (2, 4, True)
    first, second = (train.commands[name].text for name in "ab")
    assert first != second
    assert first.replace("/envs/a/", "/envs/b/").replace("--host=10.77.0.1", "--host=10.77.0.2") == second
    assert "--ips=10.77.0.1,10.77.0.2 --host=10.77.0.1 --start_port=6070 --nproc_per_node=2" in first
    assert train.commands["a"].env == {"PADDLE_DISTRI_BACKEND": "gloo"}
    assert ">" not in first


def test_gpu_nodes_keep_the_ids(plan: Make, short_text: str, cluster: Callable[..., Cluster]) -> None:
    made = plan(short_text, cluster=cluster(device="gpu"))
    train = made.step(f"{FLEET}/train")
    assert "--gpus=0,1" in train.commands["a"].text
    assert "nproc_per_node" not in train.commands["a"].text
    assert train.commands["a"].env == {}
    assert not [leg.not_run for step in made.steps for leg in step.legs if leg.not_run]
    assert made.step(f"{FLEET}/export").commands["a"].env == {"CUDA_VISIBLE_DEVICES": "0"}


def test_the_order_is_prepare_train_eval_export_infer(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    made = plan(short_text, cluster=cluster())
    after = {step.id: step.after for step in made.steps}
    assert after == {
        "prepare": (),
        f"{FLEET}/train": ("prepare",),
        f"{FLEET}/eval": (f"{FLEET}/train",),
        f"{FLEET}/export": (f"{FLEET}/eval",),
        f"{FLEET}/infer_cpu": (f"{FLEET}/export",),
        f"{FLEET}/infer_gpu": (f"{FLEET}/export",),
    }
    assert made.step("prepare").nodes == ("a", "b")
    assert made.step(f"{FLEET}/eval").nodes == ("a",)


def test_legs_that_need_a_gpu_are_not_run_on_a_cpu_cluster(
    plan: Make, norm_text: str, cluster: Callable[..., Cluster]
) -> None:
    made = plan(norm_text, cluster=cluster())
    gpu = steps_of(made, StepKind.INFER_GPU)[0]
    assert gpu.not_run == "node a has no GPU"
    assert {leg.not_run for leg in gpu.legs} == {"node a has no GPU"}
    assert {leg.tensorrt for leg in gpu.legs} == {True, False}


def test_int8_needs_the_cpu_flags_if_known(plan: Make, norm_text: str, cluster: Callable[..., Cluster]) -> None:
    def reasons(flags: set[str] | None) -> set[str]:
        known = None if flags is None else {"a": frozenset(flags)}
        made = plan(norm_text, cluster=cluster(), cpu_flags=known)
        legs = steps_of(made, StepKind.INFER_CPU)[0].legs
        return {leg.not_run for leg in legs if leg.precision == "int8"}

    plain = {"the model is not quantized: Paddle would run int8 in fp32 (node a)"}
    assert reasons(None) == {""}
    assert reasons({"avx2", "avx512_vnni"}) == plain
    assert reasons({"amx_int8"}) == plain
    assert reasons({"avx2"}) == {"the CPU of node a has neither avx512_vnni nor amx_int8, which int8 needs"}


def test_int8_of_a_quantized_model_runs(plan: Make, norm_text: str, cluster: Callable[..., Cluster]) -> None:
    text = norm_text.replace("\ntrainer:norm_train", "\ntrainer:pact_train")
    text = text.replace("\npact_train:null", "\npact_train:train.py").replace(
        "\nquant_export:null", "\nquant_export:e.py"
    )
    made = plan(text, cluster=cluster(), cpu_flags={"a": frozenset({"avx512_vnni"})})
    legs = [leg for step in steps_of(made, StepKind.INFER_CPU) for leg in step.legs]
    assert {(leg.precision, leg.not_run) for leg in legs} == {("int8", "")}


def test_fp16_is_not_run_on_a_cpu(plan: Make, norm_text: str, cluster: Callable[..., Cluster]) -> None:
    made = plan(norm_text.replace("fp32|int8", "fp32|fp16"), cluster=cluster())
    legs = [leg for step in steps_of(made, StepKind.INFER_CPU) for leg in step.legs]
    assert {leg.not_run for leg in legs if leg.precision == "fp32"} == {""}
    half = {leg.not_run for leg in legs if leg.precision == "fp16"}
    assert half == {"Paddle has no fp16 inference on CPUs (node a): it would run fp32 or bf16"}


def test_single_gpu_per_node_uses_the_launcher(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    made = plan(short_text.replace(";0,1", ";0"), cluster=cluster(slots=1))
    train = steps_of(made, StepKind.TRAIN)[0]
    assert "--nproc_per_node=1" in train.commands["b"].text
    assert train.world_size == 2
    assert "launcher-by-length" in {quirk.id for quirk in made.quirks}


def test_cpu_training_is_marked(plan: Make, norm_text: str, cluster: Callable[..., Cluster]) -> None:
    single = plan(norm_text, cluster=cluster()).step("norm_train_gpus_0_autocast_null_nodes_1/train")
    assert "--use-gpu=False" in single.commands["a"].text
    assert "launch" not in single.commands["a"].text
    assert single.commands["a"].env == {}
    on_gpu = plan(norm_text, cluster=cluster(device="gpu")).step("norm_train_gpus_0_autocast_null_nodes_1/train")
    assert "--use-gpu=True" in on_gpu.commands["a"].text
    assert on_gpu.commands["a"].env == {"CUDA_VISIBLE_DEVICES": "0"}


def test_repeats_have_their_own_ids_and_folders(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    trains = steps_of(plan(short_text, cluster=cluster(), repeats=3), StepKind.TRAIN)
    assert [step.id for step in trains] == [f"{FLEET}_repeat_{k}/train" for k in (1, 2, 3)]
    assert [step.repeat for step in trains] == [1, 2, 3]
    assert all(f"{FLEET}_repeat_{step.repeat}/latest.pdparams*" in step.expects[0] for step in trains)
    assert {step.variant for step in trains} == {FLEET}


def test_only_training_has_seed_and_diagnose(plan: Make, short_text: str, cluster: Callable[..., Cluster]) -> None:
    made = plan(short_text, cluster=cluster(), seed=7, seed_argument="--seed={seed}", diagnose=True)
    for step in made.steps:
        for command in step.commands.values():
            assert command.text.endswith("--seed=7") == (step.kind is StepKind.TRAIN)
            assert ("NCCL_DEBUG" in command.env) == (step.kind is StepKind.TRAIN)


def test_without_training_the_listed_model_is_exported(
    plan: Make, norm_text: str, cluster: Callable[..., Cluster]
) -> None:
    made = plan(norm_text, "whole_infer", cluster=cluster())
    assert not made.trains
    assert [step.id for step in made.steps] == ["prepare", "infer/export", "infer/infer_cpu", "infer/infer_gpu"]
    export = made.step("infer/export")
    assert export.expects == ("./pretrain_models/*.pdiparams",)
    assert "--pretrained=./pretrain_models/mobilenet_v3_small.pdparams" in export.commands["a"].text


def test_a_mode_without_entry_takes_that_of_the_same_training(
    plan: Make, norm_text: str, cluster: Callable[..., Cluster]
) -> None:
    made = plan(norm_text, "lite_train_whole_infer", cluster=cluster())
    assert "--epochs=5" in steps_of(made, StepKind.TRAIN)[0].commands["a"].text
    assert {quirk.line for quirk in made.quirks if quirk.id == "mode-entry"} == {7, 9}


def test_substitutions_are_recorded(plan: Make, short_text: str, cluster: Callable[..., Cluster]) -> None:
    made = plan(short_text, cluster=cluster())
    assert {(each.what, each.found, each.used) for each in made.substitutions} == {
        ("ips", "192.168.0.1,192.168.0.2", "10.77.0.1,10.77.0.2"),
        ("gpus", "0,1", "2 CPU processes per node over gloo"),
        ("python", "python3.7", "/envs/a/bin/python"),
        ("python", "python3.7", "/envs/b/bin/python"),
    }


def test_every_leg_without_its_device_is_an_error(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    only_gpu = short_text.replace("--use-gpu:False|True", "--use-gpu:True")
    with pytest.raises(ConfigError, match="every leg needs a device that cluster 'two-cpu' lacks"):
        plan(only_gpu, "whole_infer", cluster=cluster())
    assert plan(only_gpu, "whole_infer", cluster=cluster(device="gpu")).steps


def test_a_plan_survives_json(plan: Make, norm_text: str, cluster: Callable[..., Cluster]) -> None:
    made = plan(norm_text, cluster=cluster(), seed=1)
    assert Plan.model_validate_json(made.model_dump_json()) == made


def test_without_a_cluster_the_files_addresses_are_the_nodes(plan: Make, short_text: str) -> None:
    made = plan(short_text)
    assert made.nodes == ("192.168.0.1", "192.168.0.2")
    assert made.substitutions == ()
    assert "--gpus=0,1" in made.step(f"{FLEET}/train").commands["192.168.0.2"].text


MIXED = "norm_train_gpus_0,1_autocast_amp_nodes_2"


@pytest.fixture
def amp_text(norm_text: str) -> str:
    """A file with one training in fp32 and one with mixed precision, on two nodes."""
    lines = norm_text.split("\n")
    lines[3] = f"{lines[3].partition(':')[0]}:192.168.0.1,192.168.0.2;0,1"
    lines[5] = "--auto-cast:fp32|amp"
    return "\n".join(lines)


def test_mixed_precision_is_not_run_if_the_framework_ignores_amp(
    plan: Make, amp_text: str, cluster: Callable[..., Cluster]
) -> None:
    made = plan(amp_text, cluster=cluster(), mixed_on_cpu=False)
    reason = "node a has no GPU: on CPUs, Paddle ignores mixed precision (amp) and trains in fp32"
    mixed = [step for step in made.steps if step.variant == MIXED]
    assert {step.not_run for step in mixed} == {reason}
    assert {leg.not_run for step in mixed for leg in step.legs if leg.device == "cpu"} == {reason}
    assert {leg.not_run for step in mixed for leg in step.legs if leg.device == "gpu"} == {"node a has no GPU"}
    others = [step for step in steps_of(made, StepKind.TRAIN) if step.variant != MIXED]
    assert [step.not_run for step in others] == [""]
    for other in (
        plan(amp_text, cluster=cluster()),
        plan(amp_text, cluster=cluster(device="gpu"), mixed_on_cpu=False),
    ):
        assert {step.not_run for step in steps_of(other, StepKind.TRAIN)} == {""}


def test_a_cluster_that_supports_no_training_is_refused(
    plan: Make, amp_text: str, cluster: Callable[..., Cluster]
) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(amp_text.replace("fp32|amp", "amp"), cluster=cluster(), mixed_on_cpu=False)
    error = str(caught.value)
    assert "supports none of the trainings" in error
    assert "1 training; node a has no GPU: on CPUs, Paddle ignores mixed precision (amp)" in error


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("--precision:fp32", "--precision:fp61|fp32", "--precision: unknown precision; found 'fp61'"),
        ("--precision:null|amp", "--precision:null|fp99", "--precision: unknown precision; found 'fp99'"),
    ],
)
def test_unknown_number_format_is_refused_with_its_line(
    plan: Make, norm_text: str, cluster: Callable[..., Cluster], old: str, new: str, where: str
) -> None:
    assert old in norm_text
    line = next(number for number, text in enumerate(norm_text.splitlines(), 1) if text.startswith(old))
    with pytest.raises(ConfigError) as caught:
        plan(norm_text.replace(old, new), cluster=cluster())
    assert f":{line}: {where}" in str(caught.value)
    assert "expected one of fp32, fp16, bf16, int8" in str(caught.value)
