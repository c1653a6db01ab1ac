"""Records in, results out."""

import pytest

from tipcflow.domain import ConfigError
from tipcflow.plan import plan_record, record_commands


def record(text: str, **fields: object) -> dict[str, object]:
    return {
        "suite": "models",
        "dialect_name": "models/mobilenetv3_prod",
        "config": "test_tipc/configs/m/train.txt",
        "mode": "lite_train_lite_infer",
        "variant": "files",
        "config_text": text,
        **fields,
    }


def test_a_result_names_its_record(short_text: str) -> None:
    result = plan_record(record(short_text))
    assert [result[name] for name in ("config", "mode", "variant")] == [
        "test_tipc/configs/m/train.txt",
        "lite_train_lite_infer",
        "files",
    ]
    assert len(result["commands"]) == len(result["cwd"]) == len(result["cuda_visible_devices"]) == 5


def test_lost_carriage_returns_are_put_back(short_text: str) -> None:
    assert record_commands(record(short_text, mutation="crlf")) == []


def test_null_fields_count_as_absent(short_text: str) -> None:
    assert record_commands(record(short_text, family=None, params=None))


@pytest.mark.parametrize("field", ["suite", "dialect_name", "config", "mode", "variant", "config_text"])
def test_a_missing_field_is_named(short_text: str, field: str) -> None:
    bad = record(short_text)
    del bad[field]
    with pytest.raises(ConfigError) as caught:
        plan_record(bad, where="records.jsonl:7")
    assert (caught.value.key, caught.value.file) == (field, "records.jsonl:7")


def test_an_unknown_family_is_an_error(short_text: str) -> None:
    with pytest.raises(ConfigError, match="models/serving"):
        plan_record(record(short_text, family="serving"))
