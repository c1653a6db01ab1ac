"""Which parts of a line are pairs of a name and a number, and what a pairs rule makes of them."""

import re

import pytest

from tipcflow.domain import Phase
from tipcflow.parse.rules.groups_and_pairs import PairsRule
from tipcflow.parse.rules.pairs import pairs, unreadable
from tipcflow.parse.rules.reading import samples_of


def printed(line: str) -> list[tuple[str, str, str]]:
    return [(name, line[slice(*number)], unit) for name, unit, number, _ in pairs(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("loss: 0.5, ips: 120 images/s", [("loss", "0.5", ""), ("ips", "120", "images/s")]),
        ("lr(Cosine)=1e-3 Acc@1: 87.5%", [("lr(Cosine)", "1e-3", ""), ("Acc@1", "87.5", "%")]),
        ("'loss': [0.25]", [("loss", "0.25", "")]),
        ("loss: nan, grad: -inf", [("loss", "nan", ""), ("grad", "-inf", "")]),
        ("max_mem: 3 GiB cost: .5sec", [("max_mem", "3", "GiB"), ("cost", ".5", "sec")]),
    ],
)
def test_pair_has_name_number_and_unit(line: str, expected: list[tuple[str, str, str]]) -> None:
    assert printed(line) == expected


@pytest.mark.parametrize(
    "line",
    ["eta: 0:01:40", "version: 3.3.1", "date: 2024-01-02", "size: 1,234.5", "file: 12abc", "state: ready"],
)
def test_value_other_than_a_plain_number_is_not_a_pair(line: str) -> None:
    assert printed(line) == []


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("loss: None", "None"),
        ("loss: , lr: 1", ":"),
        ("loss: tensor(0.25, device='cuda:0')", "0.25"),
        ("loss=Tensor(shape=[1], [0.5])", "0.5"),
    ],
)
def test_value_without_a_number_is_found_at_its_text(line: str, value: str) -> None:
    name, span, at = next(iter(unreadable(line, 0, len(line))))
    assert (name, line[slice(*span)], line[slice(*at)]) == ("loss", value, "loss")


HEAD = re.compile(r"epoch (?P<epoch>\d{1,9})")


def values(rule: PairsRule, line: str) -> list[tuple[str, float, str, int, int]]:
    found = [one for reading in rule.read(line) for one in samples_of(reading, line, offset=0)]
    return [(one.metric, one.value, one.unit, one.epoch, one.iteration) for one in found]


def test_pairs_rule_takes_position_and_metrics_of_the_line() -> None:
    rule = PairsRule(HEAD, needle="epoch")
    assert values(rule, "epoch 3 iter: 40, loss: 0.5, eta: 7, main.py: 12") == [("loss", 0.5, "", 3, 40)]
    assert values(rule, "iter: 40, loss: 0.5") == []


def test_two_lines_that_were_joined_are_two_readings() -> None:
    line = "epoch 1 loss: 0.5epoch 2 loss: 0.25"
    assert [sample[1:4:2] for sample in values(PairsRule(HEAD), line)] == [(0.5, 1), (0.25, 2)]


def test_rule_needs_one_metric_of_each_set() -> None:
    rule = PairsRule(HEAD, needs=(frozenset({"loss"}), frozenset({"ips", "qps"})))
    assert values(rule, "epoch 1 loss: 1, ips: 2")
    assert not values(rule, "epoch 1 loss: 1, cost: 2")


def test_the_rule_has_prefix_unit_and_name() -> None:
    rule = PairsRule(HEAD, Phase.EVAL, prefix="best.", units={"cost": "s"}, names={"c": "cost"})
    assert values(rule, "epoch 1 c: 2.0") == [("best.cost", 2.0, "s", 1, -1)]


def test_loss_without_a_number_is_a_value_only_in_training() -> None:
    (sample,) = values(PairsRule(HEAD), "epoch 1 loss: None")
    assert sample[0] == "loss"
    assert sample[1] != sample[1], "nan"
    assert values(PairsRule(HEAD, Phase.EVAL), "epoch 1 loss: None") == []


def test_pairs_may_precede_the_head_if_the_rule_allows() -> None:
    line = "acc: 0.5, epoch 1 loss: 0.25"
    assert [sample[:2] for sample in values(PairsRule(HEAD, anywhere=True), line)] == [
        ("acc", 0.5),
        ("loss", 0.25),
    ]
    assert [sample[:2] for sample in values(PairsRule(HEAD), line)] == [("loss", 0.25)]
