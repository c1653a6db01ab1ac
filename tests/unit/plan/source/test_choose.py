"""The dialect, the variants, the trainers and the legs of a params file."""

import pytest

from tipcflow.domain import Compat, ConfigError
from tipcflow.plan.source.choose import choose_dialect, file_modes
from tipcflow.plan.source.files import NoFiles
from tipcflow.plan.source.legs import combinations, devices
from tipcflow.plan.source.reader import Reader, is_mode_table, sister_mode
from tipcflow.plan.source.texts import check_texts
from tipcflow.plan.source.trainers import resolve_trainer
from tipcflow.plan.source.variants import as_variant, spec_groups, spec_points, spec_trainers

MODE = "lite_train_lite_infer"
DIALECTS = ("models/template", "models/mobilenetv3_prod")


def read(text: str, compat: Compat = Compat.SPEC, mode: str = MODE) -> Reader:
    dialect, params = choose_dialect(text, file="p.txt", dialects=DIALECTS, mode=mode)
    return Reader(params, dialect, mode=mode, compat=compat, files=NoFiles())


def with_value(text: str, key: str, value: str) -> str:
    lines = [f"{key}:{value}" if line.split(":")[0] == key else line for line in text.splitlines()]
    assert f"{key}:{value}" in lines
    return "\n".join(lines) + "\n"


def test_first_dialect_that_reads_the_file_is_chosen(norm_text: str, short_text: str) -> None:
    chosen = {
        choose_dialect(text, file="p.txt", dialects=DIALECTS, mode=MODE)[0].name
        for text in (norm_text, short_text)
    }
    assert len(chosen) == 2
    assert chosen <= set(DIALECTS)


def test_file_that_no_dialect_reads_names_the_nearest(norm_text: str) -> None:
    cut = "\n".join(norm_text.splitlines()[:-3])
    with pytest.raises(ConfigError) as error:
        choose_dialect(cut, file="p.txt", dialects=DIALECTS, mode=MODE)
    assert "p.txt" in error.value.message
    assert "the nearest of models/template, models/mobilenetv3_prod" in error.value.hint


def test_unknown_mode_and_empty_list_of_dialects_are_refused(norm_text: str) -> None:
    with pytest.raises(ConfigError, match=r"mode: a file of .* does not run in this mode"):
        choose_dialect(norm_text, file="p.txt", dialects=DIALECTS, mode="none_such")
    with pytest.raises(ConfigError, match="at least one dialect"):
        choose_dialect(norm_text, file="p.txt", dialects=(), mode=MODE)


def test_modes_of_a_file_do_not_depend_on_its_content(norm_text: str) -> None:
    modes = file_modes(norm_text, file="p.txt", dialects=DIALECTS)
    assert MODE in modes
    assert len(modes) == len(set(modes))
    assert file_modes(norm_text[:40], file="p.txt", dialects=DIALECTS) == modes


def test_variants_are_groups_by_precisions_by_trainers(norm_text: str) -> None:
    text = with_value(with_value(norm_text, "gpu_list", "0|0,1"), "trainer", "norm_train")
    reader = read(text)
    groups, trainers = spec_groups(reader), spec_trainers(reader)
    variants = [as_variant(point) for point in spec_points(reader, groups, trainers)]
    assert [(one.devices, one.precision, one.trainer, one.world_size) for one in variants] == [
        (("0",), "", "norm_train", 1),
        (("0",), "amp", "norm_train", 1),
        (("0", "1"), "", "norm_train", 2),
        (("0", "1"), "amp", "norm_train", 2),
    ]
    assert len({one.id for one in variants}) == len(variants)


def test_trainer_without_a_line_is_refused_only_in_spec(norm_text: str) -> None:
    text = with_value(norm_text, "trainer", "other_train")
    reader = read(text)
    with pytest.raises(ConfigError) as error:
        spec_trainers(reader)
    assert (error.value.key, error.value.found) == ("trainer", "other_train")
    assert error.value.line == text.splitlines().index("trainer:other_train") + 1
    fallback = resolve_trainer(read(text, Compat.BASH), "other_train")
    assert (fallback.slot, fallback.known, fallback.is_norm) == ("norm_train", False, False)
    assert resolve_trainer(reader, "norm_train").is_norm


def test_legs_are_the_product_of_the_axes(norm_text: str) -> None:
    reader = read(norm_text)
    assert {device for _, device in devices(reader)} <= {"cpu", "gpu", None}
    for device in ("cpu", "gpu"):
        legs = list(combinations(reader, device, "False", keep_defects=False))  # type: ignore[arg-type]
        assert legs
        assert len({tuple(leg.items()) for leg in legs}) == len(legs)
        assert all(len(leg) == len(legs[0]) for leg in legs)
        with_defects = list(combinations(reader, device, "False", keep_defects=True))  # type: ignore[arg-type]
        assert len(with_defects) <= len(legs)


@pytest.mark.parametrize("name", ["../outside", "/absolute", "-option"])
def test_model_name_that_leaves_the_output_folder_is_refused(norm_text: str, name: str) -> None:
    check_texts(read(norm_text))
    with pytest.raises(ConfigError, match="the model name is not a folder name"):
        check_texts(read(with_value(norm_text, "model_name", name)))


def test_only_the_script_cuts_values_at_the_second_colon(norm_text: str) -> None:
    text = with_value(norm_text, "python", "python3.7 -X a:b")
    assert read(text).value("python") == "python3.7 -X a:b"
    assert read(text, Compat.BASH).value("python") == "python3.7 -X a"


def test_modes_with_the_same_training_are_sisters() -> None:
    assert sister_mode(MODE) == "lite_train_whole_infer"
    assert sister_mode(sister_mode(MODE)) == MODE
    assert sister_mode("whole_infer") == ""


def test_value_by_mode_is_distinguished_from_other_values() -> None:
    assert is_mode_table(f"{MODE}=1|whole_train_whole_infer=100")
    assert not is_mode_table("a=1")
    assert not is_mode_table("null")
