"""Lines read by the rules of one format, and the prefix that names a line's rank."""

import re

import pytest

from tipcflow.domain import Phase
from tipcflow.parse.rules.groups_and_pairs import GroupsRule, PairsRule
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.names_and_numbers import WordsRule
from tipcflow.parse.rules.phrases import PhrasesRule
from tipcflow.parse.rules.prefix import rank_prefix, rank_title
from tipcflow.parse.rules.reading import Reading, samples_of


def values(readings: list[Reading], line: str) -> list[tuple[str, float, Phase]]:
    return [(one.metric, one.value, one.phase) for each in readings for one in samples_of(each, line, offset=0)]


def test_named_groups_are_metrics_with_the_units_of_the_rule() -> None:
    rule = GroupsRule(re.compile(r"^(?P<epoch>\d+) took (?P<cost>[\d.]+)"), units={"cost": "ms"}, needle="took")
    line = "7 took 1.5"
    (reading,) = rule.read(line)
    (sample,) = samples_of(reading, line, offset=12, rank=3)
    assert (sample.metric, sample.value, sample.unit) == ("cost", 1.5, "ms")
    assert (sample.epoch, sample.iteration, sample.offset, sample.rank) == (7, -1, 12, 3)
    assert rule.read("7 cost 1.5") == []


def test_name_of_a_metric_may_come_from_the_line() -> None:
    rule = GroupsRule(
        re.compile(r"(?P<key>\w+)@(?P<value>[\d.]+)"), name=lambda match: match["key"].replace("skip", "")
    )
    assert values(rule.read("AP@0.5"), "AP@0.5") == [("AP", 0.5, Phase.TRAIN)]
    assert rule.read("skip@0.5") == []


def test_words_rule_reads_names_and_numbers_after_its_head() -> None:
    rule = WordsRule(
        re.compile(r"Epoch: \[(?P<epoch>\d+)\]"),
        re.compile(r"(?P<name>[A-Z]\w+) (?P<number>[\d.]+)"),
        Phase.TRAIN,
        needle="Epoch",
    )
    line = "Before 9 Epoch: [4] Loss 0.5 Time 0.1"
    (reading,) = rule.read(line)
    assert [(one.value, one.epoch) for one in samples_of(reading, line, offset=0)] == [(0.5, 4), (0.1, 4)]
    assert rule.read("Epoch: [4]") == []


def test_phrases_are_read_by_phase() -> None:
    line = "Epoch 2 | train loss 0.5 | test acc 0.9"
    head = re.compile(r"Epoch (?P<epoch>\d+)")
    trained = values(PhrasesRule(head, Phase.TRAIN, "Epoch").read(line), line)
    evaluated = values(PhrasesRule(head, Phase.EVAL, "Epoch").read(line), line)
    assert [(value, phase) for _, value, phase in trained] == [(0.5, Phase.TRAIN)]
    assert [(value, phase) for _, value, phase in evaluated] == [(0.9, Phase.EVAL)]


def test_sentence_with_numbers_alone_is_not_training_progress() -> None:
    line = "Epoch 2 | found 7 files"
    assert PhrasesRule(re.compile("Epoch"), Phase.TRAIN, "Epoch").read(line) == []


FORMAT = LineFormat(
    "mine",
    training=(PairsRule(re.compile("step")),),
    evaluation=(PairsRule(re.compile("eval step"), Phase.EVAL),),
)


def test_every_value_is_read_once_and_evaluation_has_priority() -> None:
    line = "eval step acc: 0.5"
    assert values(FORMAT.read(line), line) == [("acc", 0.5, Phase.EVAL)]
    assert FORMAT.recognises("step loss: 1")
    assert not FORMAT.recognises("loss: 1")


def test_line_of_a_muted_list_is_left_out() -> None:
    listed = GroupsRule(re.compile(r"ap (?P<acc>[\d.]+)"), listed=True)
    assert LineFormat("mine", evaluation=(listed,)).read("ap 0.5", muted=True) == []
    assert len(LineFormat("mine", evaluation=(listed,)).read("ap 0.5")) == 1


@pytest.mark.parametrize(
    ("line", "rank", "rest"),
    [
        ("[rank 3] loss", "3", "loss"),
        ("[default12]:loss", "12", "loss"),
        ("[1,7]<stdout>: loss", "7", "loss"),
        (" 5: loss", "5", "loss"),
        ("log/workerlog.2:loss", "2", "loss"),
        ("12:30 loss", None, "12:30 loss"),
        ("loss", None, "loss"),
    ],
)
def test_rank_of_a_line_is_its_prefix(line: str, rank: str | None, rest: str) -> None:
    span, start = rank_prefix(line)
    assert (None if span is None else line[slice(*span)], line[start:]) == (rank, rest)


def test_title_gives_the_rank_of_the_next_lines() -> None:
    assert rank_title("==> log/workerlog.3 <==") == 3
    assert rank_title("==> log/train.log <==") is None


def test_reading_of_a_line_behind_a_prefix_keeps_its_values() -> None:
    line = "[rank 3] step loss: 0.5"
    span, start = rank_prefix(line)
    (reading,) = FORMAT.read(line[start:])
    (sample,) = samples_of(reading.moved(start, span), line, offset=0)
    assert (sample.metric, sample.value, sample.rank) == ("loss", 0.5, 3)
