from pathlib import Path

import pytest

from tipcflow.domain import ConfigError
from tipcflow_operators.weekly.choice import all_chains, chosen_chains, longest_first

NAMES = ["clas/mobilenet_v3/train_infer", "clas/resnet50/train_infer", "ocr/det_r50/train_infer"]


def test_all_chains_of_all_suites_are_selected(tmp_path: Path) -> None:
    for name in reversed(NAMES):
        path = tmp_path / "chains" / f"{name}.txt"
        path.parent.mkdir(parents=True)
        path.write_text("")
    (tmp_path / "chains" / "README.md").write_text("")
    assert all_chains(tmp_path) == NAMES
    assert all_chains(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("globs", "chosen"),
    [
        (["*"], NAMES),
        (["clas/*"], NAMES[:2]),
        (["*/train_infer", "clas/resnet50/*"], NAMES),
        (["ocr/det_r50/train_infer", "*mobilenet*"], [NAMES[0], NAMES[2]]),
        (["clas/resnet[0-9]0/*"], [NAMES[1]]),
    ],
)
def test_globs_select_chains(globs: list[str], chosen: list[str]) -> None:
    assert chosen_chains(globs, NAMES) == chosen


@pytest.mark.parametrize("globs", [[], "*", None, [""], [1], ["*", None], {"*": 1}])
def test_values_other_than_lists_of_globs(globs: object) -> None:
    with pytest.raises(ConfigError, match="chains: is not a list of chain names"):
        chosen_chains(globs, NAMES)


@pytest.mark.parametrize(
    ("glob", "near"),
    [
        ("clas/resnet5/train_infer", "similar: clas/resnet50/train_infer"),
        ("*resnet_50*", "similar: clas/resnet50/train_infer"),
        ("ocrr", "similar: ocr/det_r50/train_infer"),
        ("*yolo*", "there are 3 chains, for example clas/mobilenet_v3/train_infer"),
    ],
)
def test_a_glob_that_nothing_fits_is_an_error_with_near_names(glob: str, near: str) -> None:
    # Also when others fit: a user who requests two chains would not notice that one is missing.
    with pytest.raises(ConfigError) as caught:
        chosen_chains(["*", glob], NAMES)
    assert "matches no chain" in caught.value.message
    assert caught.value.found == glob
    assert near in caught.value.hint


def test_missing_chains_are_an_error_that_names_import() -> None:
    with pytest.raises(ConfigError, match="tipcflow import"):
        chosen_chains(["*"], [])


def test_longest_chain_is_first_after_unknown_chains() -> None:
    durations = {NAMES[0]: 60.0, NAMES[1]: 7200.0, "gone/chain/x": 1e9}
    assert longest_first(NAMES, durations) == [NAMES[2], NAMES[1], NAMES[0]]
    assert longest_first(list(reversed(NAMES)), {}) == NAMES
