import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tipcflow.domain import (
    AttemptKey,
    Evidence,
    EvidenceKey,
    Expectation,
    GoldenKey,
    LegKey,
    MemberKey,
    MetricKey,
    PartKey,
    WaitKey,
)
from tipcflow.domain.keys import PredictionKey, TextKey
from tipcflow.domain.run_documents import PredictionsDocument

PARTS = st.text(max_size=12) | st.text(alphabet="|%725C\\/a.", max_size=12)


class Kept(BaseModel):
    values: dict[MetricKey, float]


class OfLegs(BaseModel):
    values: dict[LegKey, float]


@given(st.one_of(st.builds(kind, *[PARTS] * parts) for kind, parts in ((MetricKey, 3), (GoldenKey, 2))))
def test_text_of_a_key_gives_the_key_again(key: TextKey) -> None:
    assert type(key).parse(str(key)) == key


@given(st.builds(EvidenceKey, PARTS, PARTS, PARTS, PARTS))
def test_text_of_an_evidence_key_gives_the_key_again(key: EvidenceKey) -> None:
    assert EvidenceKey.parse(str(key)) == key


STEPS = PARTS.filter(bool)
NUMBERS = st.integers(min_value=0, max_value=10**9)


@given(
    st.one_of(
        st.builds(AttemptKey, STEPS, NUMBERS),
        st.builds(MemberKey, STEPS, NUMBERS, STEPS.filter(lambda node: "/" not in node)),
        st.builds(WaitKey, STEPS, NUMBERS),
        st.builds(PartKey, STEPS),
    )
)
def test_text_of_a_key_of_a_step_gives_the_key_again(key: TextKey) -> None:
    assert type(key).parse(str(key)) == key


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (AttemptKey("v/train", 2), "v/train~2"),
        (AttemptKey("a~1", 0), "a~1~0"),
        (MemberKey("v/train", 1, "node-a"), "v/train~1/node-a"),
        (WaitKey("v/infer_gpu", 3), "v/infer_gpu 3"),
        (PartKey("v/infer_cpu/bs1"), "v/infer_cpu/bs1"),
    ],
)
def test_texts_of_keys_equal_stored_documents(key: TextKey, text: str) -> None:
    assert (str(key), type(key).parse(text)) == (text, key)


@pytest.mark.parametrize(
    ("kind", "text", "form"),
    [
        (AttemptKey, "v/train", "step~attempt"),
        (AttemptKey, "~1", "step~attempt"),
        (AttemptKey, "v/train~one", "step~attempt"),
        (AttemptKey, "v/train~\N{SUPERSCRIPT TWO}", "step~attempt"),
        (MemberKey, "v/train~1", "step~attempt/node"),
        (MemberKey, "v/train/node-a", "step~attempt/node"),
        (WaitKey, "v/train", "step generation"),
    ],
)
def test_a_text_of_another_form_is_refused(kind: type[TextKey], text: str, form: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'{text!r} is not a key {form!r}')}$"):
        kind.parse(text)


def test_only_the_plan_distinguishes_a_stored_step_from_a_leg() -> None:
    step, leg = LegKey("v/infer_cpu"), LegKey("v/infer_cpu", "bs1")
    assert [key.part.within({"v/infer_cpu"}) for key in (step, leg)] == [step, leg]
    with pytest.raises(ValueError, match=r"^'' is not a key 'step' or 'step/leg'$"):
        PartKey.parse("")


@given(
    st.lists(
        st.text().filter(lambda part: "|" not in part and "%7C" not in part and "%25" not in part),
        min_size=3,
        max_size=3,
    )
)
def test_a_text_stored_without_escapes_is_read_as_its_parts(parts: list[str]) -> None:
    text = "|".join(parts)
    assert MetricKey.parse(text) == MetricKey(*parts)
    assert str(MetricKey(*parts)) == text


def test_bar_in_a_name_is_escaped() -> None:
    key = MetricKey("v/train", "gpu|fp32", "a|b%7C")
    assert str(key) == "v/train|gpu%7Cfp32|a%7Cb%257C"
    assert MetricKey.parse("v/train||a|b") == MetricKey("v/train", "", "a|b"), "stored before bars were escaped"


def test_keys_are_text_in_json_and_survive_a_round_trip() -> None:
    key = MetricKey("v/train", "", "loss")
    kept = Kept(values={key: 1.5})
    assert kept.model_dump() == {"values": {key: 1.5}}
    assert kept.model_dump(mode="json") == {"values": {"v/train||loss": 1.5}}
    assert Kept.model_validate_json(kept.model_dump_json()) == kept


def test_a_text_with_too_few_parts_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("'loss' is not a key 'step|leg|metric'")):
        MetricKey.parse("loss")


@pytest.mark.parametrize(
    ("name", "plain", "rank"), [("eval.top1", "top1", None), ("peak_rss.rank3", "peak_rss", 3)]
)
def test_a_metric_key_knows_its_metric_and_rank(name: str, plain: str, rank: int | None) -> None:
    key = MetricKey("v/train", "", name)
    assert (key.plain_metric, key.rank) == (plain, rank)


def test_evidence_of_a_repeat_has_the_key_of_the_step() -> None:
    piece = Expectation(kind=Evidence.LOSS, step="v_repeat_2/train", rank=3)
    assert str(piece.key) == "train.loss|v_repeat_2/train||3"
    assert piece.key.without_repeat() == EvidenceKey("train.loss", "v/train", what="3")


def test_text_of_a_leg_is_that_of_stored_documents() -> None:
    assert str(LegKey("v/infer_cpu", "cpu_bs1")) == "v/infer_cpu/cpu_bs1"
    assert str(LegKey("v/export")) == "v/export"
    assert LegKey.parse("v/infer_cpu/cpu_bs1") == LegKey("v/infer_cpu", "cpu_bs1")
    assert LegKey.parse("prepare") == LegKey("prepare")


@given(st.text(min_size=1, max_size=12), st.text(alphabet="cpu_1%|", max_size=12))
def test_text_of_a_leg_gives_the_key_again(step: str, leg: str) -> None:
    key = LegKey(step, leg)
    assert LegKey.parse(str(key), {step}) == key


def test_a_leg_is_a_key_of_json_objects() -> None:
    kept = OfLegs(values={LegKey("v/infer_cpu", "cpu_bs1"): 1.0})
    text = kept.model_dump_json()
    assert text == '{"values":{"v/infer_cpu/cpu_bs1":1.0}}'
    assert OfLegs.model_validate_json(text) == kept


@given(st.builds(PredictionKey, PARTS | st.from_regex(r".{0,3}: result [0-9]{1,3}"), st.integers(0, 99)))
def test_text_of_a_prediction_s_key_gives_the_key_again(key: PredictionKey) -> None:
    assert PredictionKey.parse(str(key)) == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a.jpg", PredictionKey("a.jpg")),
        ("a.jpg: result 12", PredictionKey("a.jpg", 12)),
        ("result 1", PredictionKey("result 1")),
        ("a: result 1.jpg", PredictionKey("a: result 1.jpg")),
        ("a: result \u0663", PredictionKey("a: result \u0663")),
    ],
)
def test_a_stored_prediction_is_read_with_its_kind(text: str, key: PredictionKey) -> None:
    stored = PredictionsDocument.model_validate({"v/infer/cpu": {text: [0.5]}})
    assert stored.root == {PartKey("v/infer/cpu"): {key: (0.5,)}}
    assert stored.model_dump(mode="json") == {"v/infer/cpu": {text: [0.5]}}


def test_an_image_that_is_named_like_a_result_has_class_scores() -> None:
    image = PredictionKey("a: result 3")
    assert (image.is_result, str(image)) == (False, "a: result 3: result 0")
    assert PredictionKey.parse(str(image)) == image != PredictionKey("a", 3)
