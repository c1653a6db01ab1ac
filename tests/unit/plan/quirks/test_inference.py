"""Quirks of inference: repeated commands, and pretrained weights that a file wants exported."""

from collections.abc import Callable

import pytest
from tests.unit.plan.quirks.test_catalogue import edited, quirks_of

from tipcflow.domain import Compat, ConfigError, Plan

Make = Callable[..., Plan]
URL = "https://host/dygraph/small_pretrained.pdparams"


def legs(plan: Plan, device: str) -> list[str]:
    step = next(step for step in plan.steps if step.id.endswith(f"infer_{device}"))
    return [leg.id for leg in step.legs]


def test_legs_that_run_the_same_command_are_one(plan: Make, norm_text: str) -> None:
    """PaddleClas passes no precision on the CPU."""
    text = edited(edited(norm_text, "gpu_list", "0"), "--precision", "null")
    text = text.replace("\n--precision:fp32|int8", "\n-o Global.use_fp16:True|False")
    made = plan(text, dialects=("PaddleClas",))
    assert legs(made, "cpu") == [
        f"cpu_onednn_{flag}_threads_{threads}_batch_1" for flag in (True, False) for threads in (1, 2)
    ]
    script = plan(text, dialects=("PaddleClas",), compat=Compat.BASH)
    assert len(legs(script, "cpu")) == 8
    assert "'-o Global.use_fp16': 4 of 8" in quirks_of(made)["legs-repeat"]
    alone = text.replace("use_fp16:True|False", "use_fp16:False")
    assert "legs-repeat" not in quirks_of(plan(alone, dialects=("PaddleClas",)))


def test_unpassed_precision_is_not_claimed(plan: Make, norm_text: str) -> None:
    text = norm_text.replace("\n--precision:fp32|int8", "\n-o Global.use_fp16:True|False")
    made = plan(text, dialects=("PaddleClas",))
    assert {leg.precision for step in made.steps for leg in step.legs if leg.device == "cpu"} == {""}


def test_a_value_listed_twice_runs_once(plan: Make, norm_text: str) -> None:
    once, twice = (edited(norm_text, "--use-mkldnn", words) for words in ("False", "False|False"))
    made = plan(twice)
    assert legs(made, "cpu") == legs(plan(once), "cpu")
    assert "'False|False'" in quirks_of(made)["legs-twice"]
    assert "legs-twice" not in quirks_of(plan(once))


def test_the_script_runs_a_value_listed_twice_twice(plan: Make, norm_text: str) -> None:
    once, twice = (edited(norm_text, "--use-mkldnn", words) for words in ("False", "False|False"))
    count = len(legs(plan(once, compat=Compat.BASH), "cpu"))
    ids = legs(plan(twice, compat=Compat.BASH), "cpu")
    assert len(ids) == len(set(ids)) == 2 * count


def clas(text: str, url: str, quantized: str = "null") -> str:
    text = text.replace("inference_dir:null", f"pretrained_model_url:{url}")
    text = edited(edited(text, "infer_model", "../inference/"), "infer_export", "True")
    return text.replace("export1:null", f"kl_quant:{quantized}")


@pytest.mark.parametrize("quantized", ["null", "quantize.py"])
def test_pretrained_weights_are_exported_first(plan: Make, norm_text: str, quantized: str) -> None:
    made = plan(clas(norm_text, URL, quantized), "whole_infer", dialects=("PaddleClas",))
    (command,) = made.step("infer/export").commands.values()
    export = "tools/export_model.py --model=mobilenet_v3_small --pretrained=small_pretrained"
    assert f"{export} --save-inference-dir=inference" in command.text
    assert ("quantize.py" in command.text) is (quantized != "null")
    assert "'small_pretrained'" in next(q.spec for q in made.quirks if q.id == "pretrained-not-exported")


def test_an_export_of_no_weights_is_refused(plan: Make, norm_text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(clas(norm_text, "null"), "whole_infer", dialects=("PaddleClas",))
    assert (caught.value.line, caught.value.key) == (36, "pretrained_model_url")
    text = clas(norm_text, "null", "quantize.py")
    (command,) = plan(text, "whole_infer", dialects=("PaddleClas",), compat=Compat.BASH).steps[1].commands.values()
    assert command.text.startswith("python3 quantize.py")
    plain = norm_text.replace("export1:null", "kl_quant:null")
    plain = edited(edited(plain, "infer_model", "../inference/"), "infer_export", "null")
    made = plan(plain, "whole_infer", dialects=("PaddleClas",))
    assert "pretrained-not-exported" not in quirks_of(made)


def test_the_script_ignores_a_device_that_spec_refuses(plan: Make, norm_text: str) -> None:
    text = norm_text.replace("infer.py\n--use-gpu:True|False", "infer.py\n--use-gpu:False|xpu")
    with pytest.raises(ConfigError, match="xpu"):
        plan(text)
    assert "xpu" not in str(plan(text, compat=Compat.BASH).steps)
