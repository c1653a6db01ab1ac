"""Prior probabilities of commits, by the files that they touch."""

import math
import random

import pytest

from tipcflow.bisect import ChainFiles, Noise, Search, Touches, log_levels, prior_probabilities, touches

PARAMS = "test_tipc/configs/MobileNetV3/train_infer_python.txt"
TEXT = """===========================train_params===========================
model_name:MobileNetV3
norm_train:tools/train.py -c ./ppcls/configs/mobile.yaml -o DataLoader=./dataset/
inference:python/predict_cls.py -c configs/inference_cls.yaml
"""
NAMES = frozenset(
    (
        PARAMS,
        "README.md",
        "docs/train.py",
        "tools/train.py",
        "tools/eval.py",
        "ppcls/configs/mobile.yaml",
        "ppcls/arch/mobilenet_v3.py",
        "ppcls/arch/resnet.py",
        "deploy/python/predict_cls.py",
        "deploy/python/predict_det.py",
        "test_tipc/configs/ResNet50/train_infer_python.txt",
        "test_tipc/configs/MobileNetV3/train_amp_infer_python.txt",
    )
)
CHAIN = ChainFiles.of(PARAMS, TEXT, NAMES)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([PARAMS], Touches.CHAIN),
        (["tools/train.py"], Touches.CHAIN),
        (["README.md", "ppcls/configs/mobile.yaml"], Touches.CHAIN),
        (["ppcls/arch/mobilenet_v3.py"], Touches.CHAIN),
        (["test_tipc/configs/MobileNetV3/train_amp_infer_python.txt"], Touches.CHAIN),
        (["deploy/python/predict_cls.py"], Touches.CHAIN),
        (["deploy/python/predict_det.py"], Touches.OTHER),
        (["tools/eval.py", "README.md"], Touches.OTHER),
        (["test_tipc/configs/ResNet50/train_infer_python.txt"], Touches.OTHER),
        (["requirements.txt"], Touches.OTHER),
        (["README.md", "docs/train.py", "LICENSE"], Touches.DOCUMENTATION),
        ([], Touches.OTHER),
    ],
)
def test_files_determine_the_kind_of_a_commit(files: list[str], expected: Touches) -> None:
    assert touches(files, CHAIN) is expected


def test_folder_with_most_files_is_not_of_one_chain() -> None:
    names = {f"suite/src/{number}.py" for number in range(9)} | {"suite/data/list.txt", "x/y.txt"}
    files = ChainFiles.of("x/y.txt", "a:suite/src\nb:suite/data", names)
    assert files.paths == {"x/y.txt", "suite/data"}


def test_priors_have_sum_one_and_a_bound() -> None:
    commits = [Touches.CHAIN] * 60 + [Touches.OTHER] * 3 + [Touches.DOCUMENTATION]
    found = prior_probabilities(commits)
    assert math.isclose(sum(found), 1.0)
    assert found[0] > found[60] > found[63] >= 0.5 / 64, "a wrong prior costs at most one bit"
    assert prior_probabilities([Touches.OTHER] * 4) == (0.25,) * 4


def runs_of(source: random.Random, commits: list[Touches] | None, change: int) -> int:
    """Number of runs after the ends of a search in noise, with a prior by `commits` or none."""
    later = 64

    def run(version: int) -> float:
        return source.gauss(4.0 if version >= change else 0.0, 1.0)

    measured = {0: [run(0), run(0)], later: [run(later), run(later)]}
    weights = () if commits is None else (1.0, *prior_probabilities(commits))
    search = Search(later + 1, lambda values, count: log_levels(values, count, Noise(1.0, 10)), weights)
    runs = 0
    while not (assessment := search.assess(measured)).certain and runs < 100:
        (version,) = assessment.next
        measured.setdefault(version, []).append(run(version))
        runs += 1
    return runs


@pytest.mark.slow
def test_right_prior_saves_runs_and_a_wrong_one_costs_little() -> None:
    source = random.Random(5)
    few = [Touches.CHAIN if number in (20, 40) else Touches.OTHER for number in range(1, 65)]
    many = [Touches.OTHER if number == 30 else Touches.CHAIN for number in range(1, 65)]
    trials = 60
    mean = {
        name: sum(runs_of(source, commits, change) for _ in range(trials)) / trials
        for name, commits, change in (("none", None, 30), ("right", few, 40), ("wrong", many, 30))
    }
    assert mean["right"] < mean["none"] - 1
    assert mean["wrong"] < mean["none"] + 2
