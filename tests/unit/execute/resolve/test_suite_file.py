"""Values of a suite file that only dialects and the suite's files show to be wrong: errors name file and line."""

from pathlib import Path

import pytest

from tipcflow.config.formats import BUILT_IN
from tipcflow.parse.training.formats import AUTO, FORMATS

ROOT = Path(__file__).parents[4]
PARAMS = "test_tipc/configs/m/train_infer_python.txt"
HEAD = "name: toy\n"
SOURCE = "folder: suite\n"
DIALECT = "dialects: [models/template]\n"


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of configuration beside a suite with one params file and a preparation script."""
    text = (ROOT / "tests/golden/plan/inputs/norm_fleet.txt").read_text()
    for name, content in ((PARAMS, text), ("test_tipc/prepare.sh", "")):
        file = tmp_path / "suite" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    (tmp_path / "configs" / "suites").mkdir(parents=True)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path / "home"))
    return tmp_path / "configs"


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        (
            HEAD + SOURCE + "dialects:\n  - models/mobilenetv3_prod\n  - models/templat\n",
            "5: dialects.1: there is no such dialect; found 'models/templat'; expected one of PASSL",
            "did you mean models/template?",
        ),
        (
            HEAD + DIALECT + "folder: suit\n",
            "3: folder: the suite's folder does not exist; found '{root}/suit'; expected an existing folder",
            "",
        ),
        (
            HEAD + SOURCE + DIALECT + "subfolder: x\n",
            "4: subfolder: the suite's folder does not exist; found '{root}/suite/x'; "
            "expected a folder of the suite",
            "",
        ),
        (
            HEAD + SOURCE + DIALECT + "prepare: test_tipc/prepar.sh\n",
            "4: prepare: the suite has no such file; found 'test_tipc/prepar.sh'; expected a script,",
            "did you mean test_tipc/prepare.sh?",
        ),
        (
            HEAD + SOURCE + DIALECT + "slots:\n  modle: x\n",
            f"5: slots.modle: {PARAMS} has no such slot; found 'modle'; expected one of ",
            "did you mean model?",
        ),
        (
            HEAD + SOURCE + DIALECT + "cases:\n  - device: gpu\n    slots: {modle: x}\n",
            f"6: slots.modle: {PARAMS} has no such slot",
            "did you mean model?",
        ),
    ],
    ids=["dialect", "folder", "subfolder", "prepare", "slot", "slot of a case"],
)
def test_error_names_file_line_and_key(configs: Path, text: str, words: str, hint: str) -> None:
    from tipcflow.config.suite import load_suite
    from tipcflow.domain import ConfigError
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.resolve.planning import make_plan
    from tipcflow.execute.source.snapshot import take_snapshot

    file = configs / "suites" / "toy.yaml"
    file.write_text(text)
    suite = load_suite("toy", configs)
    request = RunRequest(PARAMS, suite="toy", mode="lite_train_lite_infer", cluster="", config_dir=configs)
    with pytest.raises(ConfigError) as caught:
        make_plan(request, suite, None, take_snapshot(suite, PARAMS, None, cache=configs), run="plan")
    assert str(caught.value).startswith(f"{file}:{words.format(root=configs.parent)}")
    assert caught.value.hint == hint


def test_known_log_formats_equal_the_formats_of_the_parser() -> None:
    assert set(BUILT_IN) == {AUTO, *FORMATS}
