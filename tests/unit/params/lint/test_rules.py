"""Each rule fires on the line that is wrong, and on nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tipcflow.params.lint.rules import all_rules
from tipcflow.params.lint.subject import Finding, Severity

Found = Callable[..., list[Finding]]
Change = tuple[str, str, str, int, str]
GPU = "gpu_list:0|0,1"

# rule, what is replaced, by what, line of the finding, a part of its message
CHANGES: list[Change] = [
    ("crlf", "\n", "\r\n", 1, "51 lines"),
    ("blank-line", "##\ntrainer", "##\n \ntrainer", 15, "whitespace-only line"),
    ("empty-line", "##\ntrainer", "##\n\ntrainer", 15, "skipped"),
    ("line-shape", "trainer:norm_train\n", "", 15, "missing between lines 14 and 15"),
    ("line-shape", "##\ntrainer", "##\n##\ntrainer", 15, "extra line between lines 12 and 15"),
    (
        "line-shape",
        "--precision:fp32\n",
        "--batch-size:1\n",
        46,
        "precision: found '--batch-size:1', expected a key with",
    ),
    ("precision-format", "--precision:fp32\n", "--precision:fp32|fp61\n", 46, "unknown precision 'fp61'"),
    ("precision-format", "--precision:null|amp", "--precision:null|fp99", 6, "unknown precision 'fp99'"),
    ("colon-cut", "--pretrained:null", "--pretrained:https://host/x", 10, "becomes 'https'"),
    ("blank-at-end", "--pretrained:null", "--pretrained:null ", 10, "'null ' is not null"),
    ("metacharacter", "--img-path:./lite_data/val", "--img-path:a;b", 48, "another one starts"),
    ("metacharacter", "--img-path:./lite_data/val", "--img-path:$HOME", 48, "the shell expands it"),
    ("metacharacter", "--img-path:./lite_data/val", "--img-path:a*", 48, "matching files"),
    ("metacharacter", "--img-path:./lite_data/val", "--img-path:a|b", 48, "one value"),
    ("metacharacter", "--img-path:./lite_data/val", "--img-path:a>b", 48, "redirection"),
    ("metacharacter", "--img-path:./lite_data/val", "--img-path:'a", 48, "unbalanced quote"),
    ("flag-word", "infer_quant:False", "infer_quant:Fasle", 39, "'Fasle'"),
    ("flag-word", "--use-mkldnn:True|False", "--use-mkldnn:true|False", 42, "'true'"),
    ("listed-twice", "--cpu-threads:1|2", "--cpu-threads:2|1|2", 43, "'2' more than once"),
    ("python-word", "python:python3", "python:phyton3", 3, "not a Python interpreter"),
    ("model-name", "model_name:mobilenet_v3_small", "model_name:my model", 2, "not a valid folder name"),
    ("mode-entry", "=5|lite_train_whole_infer=5", "=5", 7, "no entry for lite_train_whole_infer"),
    ("mode-bare", "--epochs:lite_train_lite_infer=5", "--epochs:8", 7, "'8' has no mode"),
    (
        "mode-unknown",
        "|whole_train_whole_infer=90",
        "|whole_train_infer=1|whole_train_whole_infer=90",
        7,
        "unknown mode",
    ),
    ("mode-cut", "lite_train_whole_infer=5", "lite_train_whole_infer=a=b", 7, "becomes 'a'"),
    (
        "mode-table-unread",
        "--img-path:./lite_data/val",
        "--img-path:lite_train_lite_infer=a",
        48,
        "passed unchanged",
    ),
    ("gpu-entry", GPU, "gpu_list:0|x,y", 4, "not a list of devices"),
    ("gpu-entry", GPU, "gpu_list:0|1,1", 4, "duplicate"),
    ("gpu-entry", GPU, "gpu_list:0|1,2;0,1", 4, "not a list of devices"),
    ("gpu-count", GPU, "gpu_list:0|0,1,2,3,4,5,6,7,8", 4, "17 characters"),
    ("gpu-two-digits", GPU, "gpu_list:0|10", 4, "GPU 0"),
    ("ips-short", GPU, "gpu_list:0|192.168.0.1,192.168.0.2;0,1", 4, "23 characters"),
    ("gpu-one-per-node", GPU, "gpu_list:0|192.168.100.100,192.168.100.102;0", 4, "plain process"),
    ("ips-placeholder", GPU, "gpu_list:0|xx.xx.xx.xx.xx,yy.yy.yy.yy.yy;0,1", 4, "placeholder addresses"),
    ("gpu-paired", "--use-gpu:True|True\n", "--use-gpu:True\n", 5, "1 of 2 entries"),
    ("device-word", "--use-gpu:True|False", "--use-gpu:True|xpu", 41, "'xpu'"),
    ("trainer-unknown", "trainer:norm_train", "trainer:foo_train", 15, "runs under this name"),
    ("nothing-listed", "trainer:norm_train", "trainer:", 15, "nothing runs"),
    ("nothing-listed", "--precision:null|amp", "--precision:", 6, "nothing runs"),
    ("trainer-no-script", "trainer:norm_train", "trainer:norm_train|pact_train", 15, "'pact_train'"),
    ("legs-skipped", "--precision:fp32\n", "--precision:fp32|int8\n", 41, "never run"),
    ("infer-list-empty", "--cpu-threads:1|2", "--cpu-threads:", 43, "no inference runs on CPU"),
    ("infer-lists", "infer_quant:False", "infer_quant:False|False", 39, "2 values for 1 models"),
]


def test_nothing_is_reported_of_a_clean_file(clean: str, found: Found) -> None:
    assert found(clean) == []


@pytest.mark.parametrize(("rule", "old", "new", "line", "report"), CHANGES)
def test_a_rule_fires_on_the_line_that_is_wrong(
    clean: str, found: Found, rule: str, old: str, new: str, line: int, report: str
) -> None:
    assert old in clean
    findings = [each for each in found(clean.replace(old, new, -1 if rule == "crlf" else 1)) if each.rule == rule]
    assert [each.line for each in findings] == [line]
    assert report in findings[0].message
    assert findings[0].fix


@pytest.mark.parametrize(
    ("rule", "dialect", "old", "new", "report"),
    [
        ("epochs-ignored", "PaddleClas", "", "", "always trains 2 epochs, not 5"),
        ("whole-infer-nothing", "PaddleClas", "", "", "whole_infer starts no inference"),
        (
            "export-weights-lost",
            "PaddleClas",
            "model_name:mobilenet_v3_small",
            "model_name:MetaBIN_ResNet50",
            "gets no",
        ),
        ("mode-table-unread", "PaddleClas", "", "", "'--batch-size' is not a mode table"),
        ("multi-gpu-untrained", "PaddleRec", "", "", "nothing is trained on '0,1'"),
        ("first-epoch-weights", "PaddleVideo", "", "", "epoch 1"),
        ("quant-unread", "PaddleGAN", "infer_quant:False", "infer_quant:True", "never reads"),
        ("precision-word", "PaddleOCR", "--precision:null|amp", "--precision:null|fp16", "'fp16'"),
    ],
)
def test_a_rule_of_one_suite_is_not_applied_to_others(
    clean: str, found: Found, rule: str, dialect: str, old: str, new: str, report: str
) -> None:
    text = clean.replace(old, new, 1)
    assert any(report in each.message for each in found(text, dialect) if each.rule == rule)
    assert not any(each.rule == rule and report in each.message for each in found(text, "models/template"))


def test_the_threshold_of_addresses_is_the_suites(clean: str, found: Found) -> None:
    fleet = clean.replace(GPU, "gpu_list:0|192.168.0.1,192.168.0.2;0,1")
    short = {
        name
        for name in ("PaddleSeg", "PaddleGAN", "PaddleOCR", "PaddleRec")
        if "ips-short" in of(fleet, name, found)
    }
    assert short == {"PaddleGAN", "PaddleRec"}


def of(text: str, dialect: str, found: Found) -> set[str]:
    return {each.rule for each in found(text, dialect)}


BENCHMARK = """=====train_benchmark_params=====
batch_size:8|16
fp_items:fp32|fp16
epoch:1
model_type:norm_train|to_static_train
num_workers:4
--profiler_options:batch_range=[10,20];state=GPU
flags:FLAGS_cudnn_exhaustive_search=1
=====infer_benchmark_params=====
random_infer_input:[{float32,[3,224,224]}]
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "report"),
    [
        ("batch_size:8|16", "batch_size:8|x", 53, "'batch_size' cannot be parsed"),
        ("epoch:1", "epochs:1", 55, "'epochs' cannot be parsed"),
        ("[{float32,[3,224,224]}]", "[{float32,[3,224,224}]", 61, "'random_infer_input' cannot be parsed"),
    ],
)
def test_lines_of_sections_that_nothing_reads(
    clean: str, found: Found, old: str, new: str, line: int, report: str
) -> None:
    text = clean.rstrip("\n") + "\n" + BENCHMARK
    assert "section-form" not in of(text, "models/template", found)
    (hit,) = (each for each in found(text.replace(old, new)) if each.rule == "section-form")
    assert (hit.line, hit.severity) == (line, Severity.ERROR)
    assert report in hit.message


def test_a_section_that_lacks_a_line_is_read_shifted(clean: str, found: Found) -> None:
    text = clean.rstrip("\n") + "\n" + BENCHMARK
    assert "section-shifted" not in of(text, "PaddleClas", found)
    lacking = text.replace("num_workers:4\n", "")
    (hit,) = (each for each in found(lacking, "PaddleClas") if each.rule == "section-shifted")
    assert (hit.line, "'--profiler_options' is read instead" in hit.message) == (57, True)
    short = text[: text.index("num_workers")]
    (hit,) = (each for each in found(short, "PaddleClas") if each.rule == "section-shifted")
    assert (hit.line, "there is no line for it" in hit.message) == (52, True)


def test_a_file_is_cut_off(found: Found) -> None:
    path = Path(__file__).parents[3] / "golden" / "plan" / "inputs" / "short_fleet.txt"
    text = path.read_text()
    assert "cut-off" not in of(text, "models/mobilenetv3_prod", found)
    (cut,) = (e for e in found("\n" + text, "models/mobilenetv3_prod") if e.rule == "cut-off")
    assert cut.line == 33
    assert "--benchmark" in cut.message


def test_an_empty_line_before_a_section_is_an_error(clean: str, found: Found) -> None:
    tail = "=====to_static_train_benchmark_params=====\nto_static_train:x\n"
    text = clean.replace("##\n", "##\n\n", 1)
    result = {name: [e for e in found(more, "PaddleSeg") if e.rule == "empty-line"] for name, more in
            (("alone", text), ("section", text + tail))}  # fmt: skip
    assert [(e.line, e.severity) for e in result["alone"]] == [(15, Severity.NOTE)]
    assert [(e.line, e.severity) for e in result["section"]] == [(15, Severity.ERROR)]


def test_detection_skips_unknown_trainers(clean: str, found: Found) -> None:
    text = clean.replace("trainer:norm_train", "trainer:foo_train").replace("infer_export:", "infer_mode:")
    (hit,) = (e for e in found(text, "PaddleDetection") if e.rule == "trainer-unknown")
    assert "nothing runs for it" in hit.message


def test_legs_that_the_cpu_cannot_do(clean: str, found: Found) -> None:
    text = clean.replace("--precision:fp32\n", "--precision:fp32|bf16\n")
    hits = found(text, cpu_lacks=lambda word: "no bf16" if word == "bf16" else "")
    assert [(e.line, e.message) for e in hits if e.rule == "cpu-precision"] == [(46, "no bf16")]
    assert "cpu-precision" not in of(text, "models/template", found)


NO_HALF = "Paddle has no fp16 inference on CPUs"


@pytest.mark.parametrize(
    ("precisions", "trainer", "why"),
    [
        ("fp32", "norm_train", ""),
        ("fp32|fp16", "norm_train", "2 of 6 legs on CPU are not_run: 2 with fp16: " + NO_HALF),
        ("fp32|int8", "norm_train", "4 of 8 legs on CPU are not_run: 4 with int8: the model is not quantized"),
        ("int8", "norm_train", "4 of 4 legs on CPU are not_run: 4 with int8: the model is not quantized"),
        ("fp32|int8", "pact_train", ""),
    ],
)
def test_legs_in_precisions_that_no_cpu_has_are_reported(
    clean: str, found: Found, precisions: str, trainer: str, why: str
) -> None:
    text = clean.replace("--precision:fp32\n", f"--precision:{precisions}\n")
    if trainer == "pact_train":
        text = text.replace("trainer:norm_train", "trainer:pact_train").replace(
            "infer_quant:False", "infer_quant:True"
        )
    hits = found(text, cpu_lacks=lambda word: "no vnni" if word == "int8" else "")
    severity = Severity.NOTE if "fp32" in precisions else Severity.WARNING
    reported = [(e.message, e.severity) for e in hits if e.rule == "cpu-not-run"]
    assert reported == ([(why, severity)] if why else [])
    # Other CPUs do not help a model that is not quantized.
    assert any(e.rule == "cpu-precision" for e in hits) is (trainer == "pact_train")


def test_shifted_file_has_exactly_one_finding(clean: str, found: Found) -> None:
    text = clean.replace("trainer:norm_train\n", "").replace(GPU, "gpu_list:10")
    assert [each.rule for each in found(text)] == ["line-shape"]


def test_every_rule_is_tried_here() -> None:
    tried = {change[0] for change in CHANGES} | {
        "cut-off", "epochs-ignored", "whole-infer-nothing", "export-weights-lost", "multi-gpu-untrained",
        "first-epoch-weights", "quant-unread", "precision-word", "cpu-precision", "cpu-not-run", "image-dropped",
        "section-form", "section-shifted", "invisible-character", "list-length",
    }  # fmt: skip
    assert {rule.id for rule in all_rules()} == tried
