"""A suite file's own needs: merging of cases, and the error of each wrong value."""

from pathlib import Path

import pytest

from tipcflow.config.suite import Suite, load_suite
from tipcflow.domain import ConfigError

HEAD = "name: s\nfolder: /tmp/s\ndialects: [models/template]\n"


def loaded(tmp_path: Path, text: str) -> Suite:
    (tmp_path / "suites").mkdir(exist_ok=True)
    (tmp_path / "suites" / "s.yaml").write_text(HEAD + text)
    return load_suite("s", tmp_path)


def test_cases_add_to_the_needs_of_the_suite(tmp_path: Path) -> None:
    suite = loaded(
        tmp_path,
        """
env: {A: 1, B: true}
arguments: {export: -o a=1}
cases:
  - {framework: ">=3.0", env: {FLAGS_enable_pir_api: 0}, packages: [six]}
  - {device: cpu, arguments: {export: -o Global.device=cpu}}
  - {modes: [benchmark_train], slots: {epoch: "1"}}
  - {params: ["*/tiny/*"], env: {B: 2}}
""",
    )
    made = suite.needs(framework="3.3.1", device="cpu", mode="lite_train_lite_infer", params="c/m/a.txt")
    assert made.env == {"A": "1", "B": "1", "FLAGS_enable_pir_api": "0"}
    assert (made.packages, made.slots) == (("six",), {})
    assert made.arguments == {"export": "-o a=1 -o Global.device=cpu"}
    other = suite.needs(framework="2.6.2", device="gpu", mode="benchmark_train:x", params="c/tiny/a.txt")
    assert (other.env, other.packages, other.slots) == ({"A": "1", "B": "2"}, (), {"epoch": "1"})
    assert suite.needs(device="gpu", mode="whole_infer", params="").env == {"A": "1", "B": "1"}


def test_a_case_may_have_another_launcher(tmp_path: Path) -> None:
    suite = loaded(tmp_path, 'launch: init_method\ncases: [{params: ["*_torchrun.txt"], launch: torchrun}]\n')
    launches = [
        suite.needs(device="cpu", mode="lite_train_lite_infer", params=params).launch
        for params in ("c/m/train.txt", "c/m/train_torchrun.txt")
    ]
    assert launches == ["init_method", "torchrun"]


def test_a_case_may_have_other_script_arguments(tmp_path: Path) -> None:
    cases = '[{params: ["a.txt"], script_arguments: "{model} {node} 1"}, {device: cpu}]'
    suite = loaded(tmp_path, f"launch: script\ncases: {cases}\n")
    arguments = [
        suite.needs(device="cpu", mode="m", params=params).script_arguments for params in ("a.txt", "b.txt")
    ]
    assert arguments == ["{model} {node} 1", "{model} {batch} {precision} {nodes} {repeat}"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("env: {PYTHONPATH: /x}\n", ["s.yaml:4", "env", "use pythonpath"]),
        ("env: {PATH: /x}\n", ["s.yaml:4: env: PATH cannot be set here"]),
        ("env: {A-B: 1}\n", ["s.yaml:4: env.A-B: invalid name; found 'A-B'", "not beginning with a digit"]),
        ("pythonpath: [../other]\n", ["s.yaml:1", "pythonpath ../other", "outside of the suite's root"]),
        ("packages: ['six==']\n", ["s.yaml:4", "packages", "pip requirement"]),
        ("arguments: {serve: x}\n", ["s.yaml:4: arguments.serve: unknown key; found 'serve'", "'train'"]),
        ("arguments: {trian: x}\n", ["s.yaml:4: arguments.trian: unknown key", "hint: did you mean train?"]),
        ("launch: script\nseed_argument: -s\n", ["s.yaml:5: seed_argument: must contain {seed}; found '-s'"]),
        ("prints: {evaluaton: true}\n", ["s.yaml:4: prints.evaluaton: unknown key", "did you mean evaluation?"]),
        ("data: [{to: d}]\n", ["s.yaml:4", "data", "either url or path"]),
        (
            "data: [{to: d, url: 'https://h/x.tar'}]\n",
            ["s.yaml:4: data.0.sha256: is required for a url", "expected 64 hex"],
        ),
        ("data: [{to: /d, path: /x}]\n", ["s.yaml:4", "inside of the suite's root"]),
        ("data: [{to: d, path: x}]\n", ["s.yaml:4", "absolute path"]),
        ("cases: [{env: {A: 1}}]\n", ["s.yaml:4", "needs a condition"]),
        ("cases: [{framework: 'three', env: {A: 1}}]\n", ["s.yaml:4", "framework", ">=3.0,<3.2"]),
        ("cases: [{device: cpu, launch: mpirun}]\n", ["s.yaml:4", "launch", "'torchrun'"]),
        ("launch: script\nscript_arguments: '{model} {ips}'\n", ["s.yaml:5", "unknown placeholder", "{nodes}"]),
        ("launch: script\narguments: {train: -v}\n", ["s.yaml:1", "launch: script passes script_arguments only"]),
        ("launch: script\nseed_argument: '-s {seed}'\n", ["s.yaml:1", "without seed_argument"]),
        ("environment: own\n", ["s.yaml:4", "environment", "'node'", "'run'"]),
    ],
)
def test_a_wrong_need_is_one_error_with_its_line_and_key(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, text)
    result = str(raised.value)
    assert all(word in result for word in words), result
    assert "\n" not in result.split("\n  hint")[0]


def test_pythonpath_may_leave_the_root_within_the_repository(tmp_path: Path) -> None:
    around = "subfolder: tests\nwhole_repository: true\n"
    assert loaded(tmp_path, around + "pythonpath: [.., ../package]\n").pythonpath == ("..", "../package")
    with pytest.raises(ConfigError, match=r"pythonpath \.\./\.\. is outside of the repository"):
        loaded(tmp_path, around + "pythonpath: [../..]\n")
