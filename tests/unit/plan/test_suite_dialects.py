"""Commands of the scripts of PaddleRS, Paddle3D, PASSL, PaddleSpeech, PaddleNLP, PaddleSeg's contrib."""

from collections.abc import Callable

import pytest

from tipcflow.domain import Compat, Plan, Step
from tipcflow.params import load_dialect
from tipcflow.plan import plan_commands
from tipcflow.plan.bash.benchmark import benchmark_commands
from tipcflow.plan.source.files import ListedFiles

Make = Callable[..., Plan]
MODE = "lite_train_lite_infer"
HEAD = """=====train_params=====
model_name:{name}
python:python3
gpu_list:{gpus}
use_gpu:null
--precision:null
--epochs:lite_train_lite_infer=2
--save_dir:x
--batch_size:lite_train_lite_infer=4
--weights:null
"""
TRAINERS = """##
trainer:norm_train
norm_train:train.py
pact_train:null
fpgm_train:null
distill_train:null
null:null
null:null
##
"""
INFERENCE = """inference:infer.py
--device:cpu|gpu
--mkldnn:{mkldnn}
--threads:1
--batch:1
--use_trt:False
--precision:fp32|fp16
--model:null
"""
EXPORTS = "quant_export:null\nfpgm_export:null\ndistill_export:null\nexport1:null\nexport2:null\n"
EVAL = "=====eval_params=====\neval:null\nnull:null\n##\n"
LISTED = "infer_model:null\ninfer_export:null\ninfer_quant:False\n"

RS = (
    HEAD.format(name="cd:bit", gpus="0")
    + "--config:lite_train_lite_infer=bit.yaml\ntrain_model_name:best\nnull:null\n"
    + TRAINERS.replace("trainer:norm_train", "trainer:norm")
    + EVAL
    + "=====export_params=====\n--save_dir:x\n--model_dir:x\n--shape:[1,3,8,8]\nnorm_export:export.py\n"
    + EXPORTS
    + "=====infer_params=====\n"
    + LISTED
    + INFERENCE.format(mkldnn="True|False")
    + "--config:null\nnull:null\n--benchmark:True\n--model_name:bit\nnull:null\n"
)
PASSL = (
    HEAD.format(name="moco_v1_r50", gpus="0").replace("--batch_size:lite_train_lite_infer=4", "--batch_size:4")
    + "train_model_name:latest.pd\nval_dir:x\nnull:null\n"
    + TRAINERS
    + "=====extract_params=====\nextract:extract.py\n--prefix:backbone\n--output:ext.pd\n##\n"
    + "=====linear_params=====\nlinear:linear.py\npretrained:null\n-o rate:1\n##\n"
    + "=====infer_params=====\n-o save_to:x\n--export:null\nnorm_export:export.py\n"
    + EXPORTS
    + "weights_url:https://host/moco.pdparams\ninfer_model:../inference/\ninfer_export:True\ninfer_quant:False\n"
    + INFERENCE.format(mkldnn="False")
    + "--images:imgs\n--log:null\n--benchmark:True\nnull:null\n"
)
NORM = HEAD + "train_model_name:best\nval_dir:x\n--more:1\n" + TRAINERS + EVAL
SECTION = (
    "=====train_benchmark_params=====\nbatch_size:2\nfp_items:fp16\niters:7\n"
    "--profiler_options:a=[1,2];b=c\nflags:null\n"
)


def norm(name: str, gpus: str, export: str = "export.py") -> str:
    head = (
        NORM.format(name=name, gpus=gpus) + f"=====infer_params=====\n--save_dir:x\nload:y\nnorm_export:{export}\n"
    )
    tail = "--images:imgs\nnull:null\n--benchmark:True\n--params:p\n"
    return head + EXPORTS + "inference_dir:null\n" + LISTED + INFERENCE.format(mkldnn="False") + tail


def without_inference(name: str) -> str:
    head = norm(name, "0", export="null").partition("inference:")[0]
    return (
        head
        + "inference:null\n"
        + 5 * "null:null\n"
        + "--model:\nnull:null\nnull:null\n--benchmark:True\nnull:null\n"
    )


def script(text: str, dialect: str, mode: str = MODE) -> list[str]:
    files = ListedFiles([], trainings_leave_files=True)
    made = plan_commands(text, file="f.txt", dialect=load_dialect(dialect), mode=mode, files=files)
    return [" ".join(each.text.split()) for each in made]


def test_paddlers_names_folders_by_task_and_model() -> None:
    out = "./test_tipc/output/cd/bit/lite_train_lite_infer/norm_gpus_0_autocast_null"
    end = "--device={} {} --model={}/static/ --batch=1 --benchmark=True"
    assert script(RS, "PaddleRS") == [
        f"python3 train.py --config=bit.yaml --save_dir={out} --epochs=2 --batch_size=4",
        f"python3 export.py --model_dir={out}/best --save_dir={out}/static --shape=[1,3,8,8]",
        *(
            f"python3 infer.py --config=bit.yaml {end.format('cpu', '--mkldnn=True --threads=1', out)}"
            f" --precision={word} --model_name=bit"
            for word in ("fp32", "fp16")
        ),
        f"python3 infer.py --config=bit.yaml {end.format('gpu', '--use_trt=False --precision=fp32', out)}",
    ]


def test_paddlers_in_spec_has_the_same_folders(plan: Make) -> None:
    made = plan(RS, dialects=("PaddleRS",))
    assert made.model == "cd:bit"
    export = next(step for step in made.steps if step.kind == "export")
    assert export.expects == (
        "./test_tipc/output/cd/bit/lite_train_lite_infer/norm_gpus_0_autocast_null_nodes_1/static/*.pdiparams",
    )


@pytest.mark.parametrize("compat", [Compat.SPEC, Compat.BASH])
def test_passl_exports_the_linear_evaluation_of_extracted_weights(plan: Make, compat: Compat) -> None:
    made = plan(PASSL, dialects=("PASSL",), compat=compat)
    commands = [command for step in made.steps[1:] for command in step.commands.values()]
    texts = [" ".join(command.text.split()) for command in commands]
    folder = texts[0].partition("--save_dir=")[2].split()[0]
    assert texts[1:4] == [
        f"python3 extract.py {folder}/moco_v1_r50/latest.pd --prefix=backbone"
        f" --output={folder}/moco_v1_r50/ext.pd --remove_prefix",
        f"python3 linear.py --batch_size=4 --save_dir={folder} --epochs=2"
        f" pretrained={folder}/moco_v1_r50/ext.pd -o rate=1",
        f"python3 export.py --export={folder}/moco_clas_r50/latest.pd -o save_to={folder} -o rate=1",
    ]
    legs = [leg for step in made.steps for leg in step.legs]
    assert {leg.command.cwd for leg in legs} == {"deploy"}
    assert all("--model=../" in leg.command.text for leg in legs)


def test_passl_can_omit_the_linear_evaluation() -> None:
    texts = script(PASSL.replace("linear:linear.py", "linear:null"), "PASSL")
    assert [text.split()[1] for text in texts[:3]] == ["train.py", "extract.py", "export.py"]
    assert "rate" not in texts[2]


def test_passl_exports_downloaded_weights() -> None:
    first, *legs = script(PASSL, "PASSL", "whole_infer")
    export = "python3 export.py -o Global.pretrained_model=moco_v1_r50_pretrained"
    assert first == f"{export} -o Global.save_inference_dir=inference/"
    assert all("--model=../inference/" in leg for leg in legs)


def test_a_mode_without_an_entry_has_the_scripts_default() -> None:
    assert "--epochs=2" in script(PASSL, "PASSL", "whole_train_whole_infer")[0]


def test_paddle3d_loses_arguments(plan: Make) -> None:
    text = norm("net", "0,1")
    train, export, cpu, *_ = script(text, "Paddle3D")
    out = "./test_tipc/output/net/lite_train_lite_infer/norm_train_gpus_0,1_autocast_null"
    launch = "python3 -m paddle.distributed.launch --gpus=0,1"
    assert train == f"{launch} train.py --more=1 --epochs=2 --batch_size=4 --more=1"
    assert export.startswith(f"python3 export.py {out}/best --save_dir {out} >")
    assert cpu.startswith(f"python3 infer.py --device=cpu --model={out} >")
    made = plan(text, dialects=("Paddle3D",))
    named = {each.id: each.bash for each in made.quirks}
    assert "'--save_dir'" in named["save-lost"]
    assert "'--params' on CPU; '--benchmark' on GPU" in named["infer-arguments-lost"]
    assert "--save_dir=" in next(iter(training(made).commands.values())).text
    leg = next(leg for step in made.steps for leg in step.legs if leg.device == "cpu")
    assert "--threads=1" in leg.command.text
    assert "--params=p" in leg.command.text
    assert "save-lost" not in {each.id for each in plan(norm("net", "0"), dialects=("Paddle3D",)).quirks}


def training(plan: Plan) -> Step:
    return next(step for step in plan.steps if step.kind == "train")


def test_paddle3d_files_may_lack_inference(plan: Make) -> None:
    text = without_inference("net") + SECTION
    made = plan(text, dialects=("Paddle3D", "Paddle3D/training"))
    assert made.dialect == "Paddle3D/training"
    assert [step.kind for step in made.steps] == ["prepare", "train"]
    assert plan(norm("net", "0"), dialects=("Paddle3D/training", "Paddle3D")).dialect == "Paddle3D"


def test_paddle3d_writes_the_profiler_without_quotes() -> None:
    dialect = load_dialect("Paddle3D/training")
    text = without_inference("net") + SECTION
    word = "dynamic_bs2_fp16_DP_N1C1"
    made = benchmark_commands(text, file="f.txt", dialect=dialect, word=word, files=ListedFiles([]))
    train = [" ".join(each.text.split()) for each in made if "train.py" in each.text]
    assert train[0].endswith("--amp --amp_level=O2 --profiler_options=a=[1,2];b=c")
    assert "--epochs=7 --batch_size=2" in train[1]
    quoted = benchmark_commands(
        text, file="f.txt", dialect=load_dialect("PaddleSeg"), word=word, files=ListedFiles([])
    )
    assert any('"--profiler_options=a=[1,2];b=c"' in each.text for each in quoted)


def test_paddlespeech_counts_a_space_before_null_as_a_command(plan: Make) -> None:
    text = norm("net", "0").replace("norm_export:export.py", "norm_export: null")
    assert script(text, "PaddleSpeech")[1].startswith("python3 null load=./test_tipc/output/")
    made = plan(text, dialects=("PaddleSpeech",))
    assert "export" not in {step.kind for step in made.steps}
    assert "trailing-blank" in {each.id for each in made.quirks}


def test_paddlenlp_logs_each_step_below_an_absolute_output_folder(plan: Make) -> None:
    text = norm("net", "0|0,1").replace("--mkldnn:", "--use_mkl:").replace("trainer:norm_train", "trainer:norm")
    commands = script(text, "PaddleNLP")
    folder = "$ROOT/test_tipc/output/net/lite_train_lite_infer/norm_gpus_0_autocast_"
    assert commands[0].startswith(f"python3 train.py --save_dir={folder}")
    assert f">{folder}" in commands[0]
    assert commands[0].endswith("_nodes_1.log 2>&1")
    assert commands[1].startswith("python3 export.py")
    assert commands[1].endswith("_nodes_1_export.log 2>&1")
    assert "/python_infer_cpu_gpus_0_usemkldnn_" in commands[2]
    multi = next(text for text in commands if "--gpus=0,1" in text)
    assert "2>&1" not in multi
    assert plan(text, dialects=("PaddleNLP",)).dialect == "PaddleNLP"


def test_panopticseg_unsets_the_device_after_every_training() -> None:
    dialect = load_dialect("PaddleSeg/contrib/PanopticSeg")
    assert dialect.cuda.unset_after == "variant"
