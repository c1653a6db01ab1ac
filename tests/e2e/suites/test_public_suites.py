"""Public suites, unmodified, through `tipcflow run` and the suite files of the repository.

`TIPC_SUITES` names a folder with clones `models`, `PaddleClas`, `PaddleDetection`, `PaddleGAN`, `PaddleRec`,
`PaddleSeg` and `PaddleVideo`, and with AutoLog in its folder `autolog` (`pip install --target`); those of other
suites only if their dialects are to be compared. Without the variable the tests are skipped: the suites are not
part of this repository.
Data is synthetic where a script downloads it; a folder on the nodes replaces the server. If there is a folder
`wheels`, pip installs packages from there only.
"""

import re
import subprocess
from pathlib import Path

import pytest
from tests.e2e.suites.public_site import FLEET, IMAGENET, MOBILENET, STEP6, SUITES, WEIGHTS, PublicSite, changed
from tests.e2e.suites.synthetic import archive, coco, facades, imagenet, skeletons, supervisely
from tests.support.certify import MODE, TIPCFLOW

from tipcflow.domain import Status

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(3600)]
PICODET = "test_tipc/configs/picodet/picodet_s_320_coco_lcnet_train_infer_python.txt"
STGCN = "test_tipc/configs/STGCN/train_infer_python.txt"


def test_step6_is_certified_on_one_node(public: PublicSite) -> None:
    # prepare.sh downloads pretrained weights, which this mode does not use.
    public.serve(WEIGHTS, b"unused")
    outcome = public.run("models_step6", f"{STEP6}/train_infer_python.txt")
    assert outcome.run.status is Status.PASS, outcome.output


def test_step6_is_certified_on_two_nodes(public: PublicSite) -> None:
    public.serve(WEIGHTS, b"unused")
    outcome = public.run("models_step6", FLEET)
    assert outcome.run.status is Status.PASS, outcome.output


def test_paddlerec_trains_and_its_export_fails_with_paddle_3(public: PublicSite) -> None:
    public.serve("https://paddlerec.bj.bcebos.com/wide_deep/wide_deep.tar", archive({"wide_deep/README": b""}))
    outcome = public.run("PaddleRec", "test_tipc/configs/wide_deep/train_infer_python.txt")
    assert outcome.run.status is Status.FAILED, outcome.output
    # The suite's own code: to_static of models/rank/wide_deep/net.py.
    error = (
        "export: exit code 1 on node a: TypeError: (InvalidType) sigmoid(): argument (position 1) must be Value"
    )
    assert error in outcome.run.reason, outcome.output
    assert "loss.finite train 4 losses, all finite" in outcome.output


def test_paddlerec_deepfm_is_not_exported_by_paddle_3_either(public: PublicSite) -> None:
    public.serve("https://paddlerec.bj.bcebos.com/deepfm/deepfm.tar", archive({"deepfm/README": b""}))
    outcome = public.run("PaddleRec", "test_tipc/configs/deepfm/train_infer_python.txt")
    assert outcome.run.status is Status.FAILED, outcome.output
    assert "export: exit code 1 on node a: TypeError: (InvalidType) multiply(): argument" in outcome.run.reason
    # Batches of two lines: the losses rise and fall within their noise.
    assert "loss.falling" not in outcome.run.reason


def test_paddleseg_trains_and_exports(public: PublicSite, tmp_path: Path) -> None:
    public.serve("https://paddleseg.bj.bcebos.com/humanseg/data/mini_supervisely.zip", supervisely())
    params = "test_tipc/configs/pphumanseg_lite/train_infer_python.txt"
    # One of two equal trainings.
    public.clones["PaddleSeg"] = changed("PaddleSeg", tmp_path, [(params, "gpu_list:0|0,1\n", "gpu_list:0\n")])
    outcome = public.run("PaddleSeg", params)
    # deploy.yaml names a file that Paddle 3 does not write.
    assert outcome.run.status is Status.FAILED, outcome.output
    assert "model.pdmodel" in outcome.run.reason
    assert re.search(r"export: pass|loss\.finite train 2 losses, all finite", outcome.output), outcome.output


def test_paddlegan_trains_and_exports(public: PublicSite) -> None:
    public.serve("https://paddlegan.bj.bcebos.com/datasets/pix2pix_facade_lite.tar", facades())
    # The weights of FID, by which the training validates, come from a network. A batch takes up to 40 s.
    fewer = {"epochs": "lite_train_lite_infer=5"}
    public.configure("PaddleGAN", arguments={"train": "validate=None"}, slots=fewer, budget_minutes=60)
    outcome = public.run("PaddleGAN", "test_tipc/configs/Pix2pix/train_infer_python.txt")
    # tools/inference.py opens a file that Paddle 3 does not write.
    assert outcome.run.status is Status.FAILED, outcome.output
    assert re.search(r"infer_cpu.*Cannot open file \S+inference\.pdmodel", outcome.run.reason), outcome.output
    assert re.search(r"loss\.finite train \d+ losses, all finite", outcome.output), outcome.output


def test_paddledetection_trains_and_writes_weights_elsewhere(public: PublicSite, tmp_path: Path) -> None:
    _serve_detection(public)
    # One of two equal trainings.
    public.clones["PaddleDetection"] = changed(
        "PaddleDetection", tmp_path, [(PICODET, "gpu_list:0|0,1\n", "gpu_list:0\n")]
    )
    outcome = public.run("PaddleDetection", PICODET)
    assert outcome.run.status is Status.FAILED, outcome.output
    # The code writes to save_dir; the script reads from the folder with the model's name below.
    folder = r"norm_train_gpus_0_autocast_null_nodes_1/picodet_s_320_coco_lcnet"
    assert re.search(rf"exited with 0 but did not write \S+/{folder}/model_final\.pdparams", outcome.run.reason)
    assert "loss.finite train 16 losses, all finite" in outcome.output


def test_paddledetection_is_evaluated_and_exported(public: PublicSite, tmp_path: Path) -> None:
    """The weights are where the script expects them, and the executor is that of enable_memory_optim."""
    _serve_detection(public)
    edits = (
        (PICODET, "gpu_list:0|0,1\n", "gpu_list:0\n"),
        (PICODET, "model_name:picodet_s_320_coco_lcnet\n", "model_name:.\n"),
        ("deploy/python/infer.py", "    config.enable_memory_optim()\n", "    config.enable_new_executor()\n{}"),
    )
    public.clones["PaddleDetection"] = changed("PaddleDetection", tmp_path, edits)
    outcome = public.run("PaddleDetection", PICODET)
    assert outcome.run.status is Status.FAILED, outcome.output
    # The code leaves oneDNN at Paddle's default, on, also for `--enable_mkldnn=False`.
    assert re.search(
        r"/infer_cpu/\S+: exit code 1 on node a: NotImplementedError: .*Attribute", outcome.run.reason
    )
    with public.store() as store:
        facts = store.history.facts(outcome.run.id)
    passed = {step.rpartition("/")[2] for step, status in facts.step_status.items() if status is Status.PASS}
    assert passed >= {"train", "eval", "export"}, outcome.output
    assert {"AP", "AP50"} <= {sample.metric for sample in facts.measurements}


def _serve_detection(public: PublicSite) -> None:
    """Serve the data that prepare.sh of PaddleDetection downloads in any mode with training."""
    base = "https://paddledet.bj.bcebos.com/data/tipc"
    public.serve(f"{base}/coco_tipc.tar", coco())
    for name in ("wider", "spine_coco", "mot"):
        public.serve(f"{base}/{name}_tipc.tar", archive({f"{name}_tipc/README": b""}))
    # The pretrained weights come from a network.
    public.configure("PaddleDetection", arguments={"train": "pretrain_weights=null"})


def test_paddlevideo_requires_a_gpu(public: PublicSite) -> None:
    for name, data in zip(("data", "label"), skeletons(), strict=True):
        public.serve(f"https://videotag.bj.bcebos.com/Data/FSD_train_{name}.npy", data)
    public.configure("PaddleVideo", slots={"batch": "2"})
    outcome = public.run("PaddleVideo", STGCN)
    # paddlevideo/tasks/train.py always sets the device gpu.
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert "PaddlePaddle is not compiled with CUDA" in outcome.run.reason, outcome.output


def test_paddleclas_runs_unmodified(public: PublicSite) -> None:
    public.serve(IMAGENET, imagenet())
    public.configure("PaddleClas", arguments={"train": "-o Arch.pretrained=False"})
    outcome = public.run("PaddleClas", MOBILENET)
    assert outcome.run.status is Status.FAILED, outcome.output
    # The params file names a folder that the commit's code does not write to.
    assert "exited with 0 but did not write ./test_tipc/output/MobileNetV3_small_x1_0" in outcome.run.reason
    assert "ppcls INFO: [Train][Epoch 1/2][Iter: 0/2]lr(LinearWarmup)" in outcome.output


@pytest.mark.parametrize(
    ("dialect", "folder", "options"),
    [
        (
            "models/mobilenetv3_prod",
            "models/tutorials/mobilenetv3_prod/Step6",
            ("--mode", MODE, "--mode", "whole_infer"),
        ),
        ("PaddleRec", "PaddleRec", ()),
        ("PaddleClas", "PaddleClas", (STEP6.replace("mobilenet_v3_small", "MobileNetV3"),)),
        ("PaddleRS", "PaddleRS", ("--mode", MODE, "--mode", "whole_infer")),
        ("Paddle3D", "Paddle3D", ("--mode", MODE, "--mode", "whole_infer")),
        ("Paddle3D/training", "Paddle3D", ()),
        # The branch or tag v1.1.1, which still has params files.
        ("PASSL", "PASSL", ("test_tipc/config", "--mode", MODE, "--mode", "whole_infer")),
        ("PaddleSpeech", "PaddleSpeech/tests", ()),
        ("PaddleNLP", "PaddleNLP/tests", ("--mode", MODE, "--mode", "whole_infer")),
        ("PaddleSeg/contrib/PanopticSeg", "PaddleSeg/contrib/PanopticSeg", ()),
    ],
)
def test_the_scripts_run_the_commands_of_their_dialects(
    dialect: str, folder: str, options: tuple[str, ...]
) -> None:
    """A folder stands for the params files in it that match the line map."""
    if not (SUITES / folder).is_dir():
        pytest.skip("TIPC_SUITES names no folder with the suite")
    done = subprocess.run(
        [TIPCFLOW, "dialect", "check", dialect, *options, "--against", SUITES / folder],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
