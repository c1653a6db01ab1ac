"""Accuracy targets: which of them apply to a params file of a model."""

from pathlib import Path

import pytest

from tipcflow.config.loader import load_yaml
from tipcflow.config.references import References
from tipcflow.domain import ConfigError

TEXT = """suite: s
references:
  - {model: m, metric: top1, target: 0.8, tolerance: 0.1, because: x}
  - {model: m, params: train_infer_python, mode: whole_train_whole_infer, metric: top5, target: 0.9,
     tolerance: 0.1, because: x}
"""


@pytest.mark.parametrize(
    ("mode", "params", "metrics"),
    [
        ("", "", ["top1", "top5"]),
        ("whole_train_whole_infer", "train_infer_python", ["top1", "top5"]),
        ("whole_train_whole_infer", "train_amp_infer_python", ["top1"]),
        ("lite_train_lite_infer", "train_infer_python", ["top1"]),
    ],
)
def test_a_params_file_can_have_targets(tmp_path: Path, mode: str, params: str, metrics: list[str]) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(TEXT)
    targets = load_yaml(file, References).of("m", mode, params=params)
    assert [target.metric for target in targets] == metrics


@pytest.mark.parametrize("params", ["train_infer_python.txt", "m/train_infer_python"])
def test_params_are_a_name(tmp_path: Path, params: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(TEXT.replace("params: train_infer_python", f"params: {params}"))
    with pytest.raises(ConfigError, match=r"s\.yaml:4: references\.1\.params: .*without folder and without \.txt"):
        load_yaml(file, References)
