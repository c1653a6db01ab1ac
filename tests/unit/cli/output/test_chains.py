"""One rule for the names of chains in all commands."""

import pytest

from tipcflow.cli.output.chains import matching_chains, only_chain
from tipcflow.domain import ConfigError

NAMES = [
    "PaddleClas/ResNet50/train_infer_python",
    "PaddleClas/ResNet50_vd/train_infer_python",
    "PaddleOCR/rec/train_infer_python",
    "s/params/a",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PaddleClas/ResNet50/train_infer_python", [0]),
        ("ResNet50", [0]),  # a whole component comes before a part of a name
        ("resnet50", [0]),
        ("PaddleClas/ResNet50", [0]),
        ("ResNet50/train_infer_python", [0]),
        ("_vd", [1]),
        ("a", [3]),
        ("PaddleClas", [0, 1]),
        ("train_infer", [0, 1, 2]),
        ("missing", []),
        ("", []),
    ],
)
def test_chains_are_matched_by_part_of_the_name(text: str, expected: list[int]) -> None:
    assert matching_chains(NAMES, text) == [NAMES[at] for at in expected]


def test_errors_list_the_chains() -> None:
    with pytest.raises(ConfigError, match=r"CHAIN: 2 chains match; found 'PaddleClas'; .*ResNet50_vd"):
        only_chain(NAMES, "PaddleClas")
    with pytest.raises(ConfigError, match=r"--chain: no run of a chain with this name; found 'x'; .*s/params/a"):
        only_chain(NAMES, "x", key="--chain")
    with pytest.raises(ConfigError, match=r"the database has no runs"):
        only_chain([], "x")
    with pytest.raises(ConfigError, match=r"and 20 more"):
        only_chain([f"s/m/{number}" for number in range(30)], "m")
