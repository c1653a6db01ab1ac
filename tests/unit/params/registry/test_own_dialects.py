"""Dialects of users: in the folder of the configuration, checked by file, line and key, one broken file alone."""

import os
from pathlib import Path

import pytest

from tipcflow.config.own_dialects import Source
from tipcflow.domain import Compat, ConfigError
from tipcflow.params import known_dialects, load_dialect
from tipcflow.params.lines import read_lines
from tipcflow.params.registry.check import check_dialect, quirk_ids
from tipcflow.params.registry.names import family_dialects
from tipcflow.params.sections import benchmark_section
from tipcflow.plan import build_plan
from tipcflow.plan.quirks.catalogue import catalogue

NORM = Path(__file__).parents[3] / "golden" / "plan" / "inputs" / "norm_fleet.txt"
GOOD = "name: Mine\nsuite: Mine\nextends: models/template\ncut: 0\noutput: ./out/{model}\n"
SPEC = "spec_output: ./runs/{mode}/{model}\n"


@pytest.fixture
def dialects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path))
    (tmp_path / "dialects" / "layouts").mkdir(parents=True)
    return tmp_path / "dialects"


def refused(dialects: Path, text: str) -> ConfigError:
    (dialects / "Mine.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_dialect("Mine")
    assert caught.value.file in ("", str(dialects / "Mine.yaml"))
    assert "\n" not in str(caught.value).partition("\n  hint: ")[0]
    return caught.value


def test_dialect_of_a_user_plans_a_file(dialects: Path) -> None:
    (dialects / "Mine.yaml").write_text(GOOD + SPEC)
    assert "Mine" in known_dialects()
    for compat, folder in ((Compat.BASH, "./out/mobilenet"), (Compat.SPEC, "./runs/lite_train_lite_infer/mob")):
        plan = build_plan(
            NORM.read_text(),
            file="f",
            suite="mine",
            chain="c",
            dialects=["Mine"],
            mode="lite_train_lite_infer",
            compat=compat,
        )
        assert plan.dialect == "Mine"
        assert folder in str(plan.steps)
        assert "test_tipc/output" not in str(plan.steps)


def test_edited_file_is_read_again(dialects: Path) -> None:
    path = dialects / "Mine.yaml"
    path.write_text(GOOD)
    assert load_dialect("Mine").output == "./out/{model}"
    path.write_text(GOOD.replace("./out", "./new"))
    os.utime(path, ns=(1, 1))
    assert load_dialect("Mine").output == "./new/{model}"


def test_edited_layout_and_script_are_read_again(dialects: Path) -> None:
    """The dialect itself stays as it is."""
    wide = dialects / "layouts" / "wide.yaml"
    wide.write_text("extends: norm\nslots:\n  infer_param9: {line: 51}\n")
    (dialects / "Mine.yaml").write_text(GOOD + "layout: wide\n")
    assert "infer_param9" in load_dialect("Mine").line_map().slots
    wide.write_text("extends: norm\nslots:\n  infer_param8: {line: 51}\n")
    os.utime(wide, ns=(1, 1))
    assert "infer_param9" not in load_dialect("Mine").line_map().slots
    assert family_dialects("Mine", "ptq") == ()
    script = dialects / "Mine_ptq.yaml"
    script.write_text("name: Mine/ptq\nsuite: Mine\nextends: PaddleSeg/ptq\noutput: ./out\n")
    assert family_dialects("Mine", "ptq") == ("Mine/ptq",)
    script.unlink()
    assert family_dialects("Mine", "ptq") == ()


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        (GOOD + "oputput: x\n", 6, "oputput", ["unknown key", "output"]),
        (GOOD + "cuda: {atonce: true}\n", 6, "cuda.atonce", ["at_once"]),
        (GOOD + "device_clobbered: False x\n", 6, "device_clobbered", ["true or false"]),
        (GOOD + "device_clobbered: no\n", 6, "device_clobbered", ["false"]),
        (GOOD + "cpu:\n  axes: [mkldn, threads]\n", 7, "cpu.axes.0", ["'mkldn'", "mkldnn"]),
        (GOOD + "weights: '{S}/{weight_name}'\n", 6, "weights", ["{weight_name}", "weights_name"]),
        (GOOD + "train:\n  single: 'a'\n  nodes: '{python} {train_confg=}'\n", 8, "train.nodes", ["no such slot"]),
        (GOOD + "data: '{a b}'\n", 6, "data", ["placeholder"]),
        (GOOD + "quirks: [train-satus]\n", 6, "quirks.0", ["train-satus", "train-status"]),
        (GOOD + "kinds: {epohcs: plain}\n", 6, "kinds.epohcs", ["no such slot"]),
        (GOOD + "expect: {infer_modell: x}\n", 6, "expect.infer_modell", ["no such slot"]),
        (GOOD + "skip:\n  - {device: cpu, when: {mkldn: x}}\n", 7, "skip.0.when.mkldn", ["axis on cpu", "mkldnn"]),
        (GOOD + "trainers: {pact: {train: pact}}\n", 6, "trainers.pact.train", ["pact_train"]),
        (GOOD + "layout: nrom\n", 6, "layout", ["nrom", "norm"]),
        (GOOD.replace("models/template", "modls/x"), 3, "extends", ["modls/x", "models/template"]),
        (GOOD.replace("models/template", "Mine"), 3, "extends", ["extends itself"]),
        (GOOD.replace("name: Mine\n", ""), 1, "name", ["name of the file"]),
        (GOOD + "x: [\n", 7, "", ["is not YAML"]),
        ("- a\n", 1, "", ["mapping"]),
    ],
)
def test_wrong_dialect_is_refused_with_line_and_key(
    dialects: Path, text: str, line: int, key: str, words: list[str]
) -> None:
    error = refused(dialects, text)
    assert (error.line, error.key) == (line, key)
    for word in words:
        assert word in str(error)


def test_broken_file_stops_its_own_suite_alone(dialects: Path) -> None:
    (dialects / "Mine.yaml").write_text(GOOD)
    (dialects / "Broken.yaml").write_text("name: [")
    (dialects / "Broken_ptq.yaml").write_text("name: Broken/ptq\nfamily: ptq\n")
    assert load_dialect("Mine").name == "Mine"
    assert family_dialects("PaddleSeg", "ptq") == ("PaddleSeg/ptq",)
    assert family_dialects("Mine", "ptq") == ()
    assert {"Broken", "Broken/ptq", "Mine", "PaddleClas"} <= set(known_dialects())
    with pytest.raises(ConfigError, match="is not YAML"):
        load_dialect("Broken")


def test_script_of_a_suite_of_a_user_is_a_family(dialects: Path) -> None:
    (dialects / "Mine.yaml").write_text(GOOD)
    (dialects / "Mine_ptq.yaml").write_text("name: Mine/ptq\nsuite: Mine\nextends: PaddleSeg/ptq\noutput: ./out\n")
    assert family_dialects("Mine", "ptq") == ("Mine/ptq",)


def test_layout_extends_a_layout(dialects: Path) -> None:
    (dialects / "layouts" / "wide.yaml").write_text(
        "extends: norm\nslots:\n  infer_param9: {line: 51}\n  infer_param1: null\n"
    )
    (dialects / "Mine.yaml").write_text(GOOD + "layout: wide\ncpu: {command: '{python} {infer_param9=}'}\n")
    slots = load_dialect("Mine").line_map().slots
    assert slots["infer_param9"].line == 51
    assert "norm_train" in slots
    assert "infer_param1" not in slots


def test_recursive_layout_or_wrong_key_is_refused(dialects: Path) -> None:
    path = dialects / "layouts" / "wide.yaml"
    path.write_text("extends: wide\n")
    (dialects / "Mine.yaml").write_text(GOOD + "layout: wide\n")
    with pytest.raises(ConfigError, match="extends itself"):
        load_dialect("Mine")
    path.write_text("extends: norm\nslots:\n  x: {lin: 51}\n")
    os.utime(path, ns=(1, 1))
    with pytest.raises(ConfigError) as caught:
        load_dialect("Mine")
    assert (caught.value.file, caught.value.line, caught.value.key) == (str(path), 3, "slots.x.lin")


def test_shipped_dialects_pass_the_same_check() -> None:
    for name in known_dialects():
        dialect = load_dialect(name)
        if not dialect.family:
            check_dialect(dialect, Source(dialect.model_dump()))


def test_ids_of_quirks_equal_the_catalogue() -> None:
    assert quirk_ids() == set(catalogue())


@pytest.mark.parametrize(("value", "steps"), [("null", 0), ("probe.py -o x=y", 1)])
def test_extra_command_is_skipped_if_its_slot_is_null(dialects: Path, value: str, steps: int) -> None:
    extra = "extras:\n  - {before: train, command: '{python} {param1}', unless: [param1]}\n"
    (dialects / "Mine.yaml").write_text(GOOD + extra)
    lines = NORM.read_text().split("\n")
    lines[12] = f"null_key:{value}"
    for compat in Compat:
        plan = build_plan(
            "\n".join(lines),
            file="f",
            suite="mine",
            chain="c",
            dialects=["Mine"],
            mode="lite_train_lite_infer",
            compat=compat,
        )
        before = {step.id for step in plan.steps if "before_train" in step.id}
        assert bool(before) is bool(steps)


@pytest.mark.parametrize("key", ["epoch", "total_iters", "iters", "iteration"])
def test_length_of_a_benchmark_has_several_names(key: str) -> None:
    text = f"=====train_benchmark_params=====\nbatch_size:4\nfp_items:fp32\n{key}:200\n"
    section = benchmark_section(read_lines(text), file="f")
    assert section is not None
    assert section.epochs == 200
