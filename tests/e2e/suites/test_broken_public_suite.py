"""Public suites (Step6 of the models repository, PaddleClas) broken on purpose: never green, the right reason.

`TIPC_SUITES` names the repositories (see test_public_suites.py); each break is a commit on top of one. Nothing in
a suite reports what is broken: the proof comes from the runner, the probe, the files and the suite's own lines.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.suites.public_site import FLEET, IMAGENET, MOBILENET, WEIGHTS, Edit, PublicSite, changed
from tests.e2e.suites.synthetic import imagenet

from tipcflow.domain import Status

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(3600)]
STEP6 = "tutorials/mobilenetv3_prod/Step6"
TRAIN, INFER, EXPORT = "train.py", "deploy/inference_python/infer.py", "tools/export_model.py"
JOIN = "paddle.distributed.init_parallel_env()"


@dataclass(frozen=True)
class Break:
    """One change of the suite.

    Attributes:
        edits: file, a line's text, the new text; each must be found.
        status: what the run must be.
        reason: pattern in the run's reason.
    """

    name: str
    edits: tuple[Edit, ...]
    status: Status
    reason: str


# Without AutoLog, whose report() ends the process, infer.py comes to the line with the class.
PRINTS_A_CLASS = (FLEET, "--benchmark:True", "--benchmark:False")

BREAKS = (
    Break(
        "loss is nan from epoch 2",
        (
            (
                TRAIN,
                "            loss.backward()\n",
                "            loss = loss * (float('nan') if epoch > 1 else 1)\n{}",
            ),
        ),
        Status.FAILED,
        r"loss is nan at epoch 2, iteration 0",
    ),
    Break(
        "exit 0 before the training",
        ((TRAIN, '    print("Start training")\n', "    sys.exit(0)\n"),),
        Status.FAILED,
        r"exited with 0 but did not write|logged no training iteration",
    ),
    Break(
        "no report and no prediction",
        ((INFER, "    # postprocess\n", "    raise SystemExit(0)\n"),),
        Status.FAILED,
        r"ran\.evidence .*no AutoLog report and no prediction",
    ),
    Break(
        "another class than the network's",
        (PRINTS_A_CLASS, (INFER, "class_id: {class_id},", "class_id: {class_id + 1},")),
        Status.FAILED,
        r"ran\.evidence .*the log names class \d+ for \./images/demo\.jpg, but the predictor's outputs have class",
    ),
    Break(
        "a class that no network computed",
        (
            PRINTS_A_CLASS,
            (
                INFER,
                "import paddle\n",
                "print('image_name: a.jpg, class_id: 8, prob: 1')\nraise SystemExit(0)\n",
            ),
        ),
        Status.UNCONFIRMED,
        r"ran\.evidence .*has results .*but no process of the leg used a paddle\.inference predictor",
    ),
    Break(
        "inference exits 0 at once",
        ((INFER, "import paddle\n", "raise SystemExit(0)\n{}"),),
        Status.FAILED,
        r"ran\.evidence .*no AutoLog report and no prediction",
    ),
    Break(
        "export of empty files",
        (
            (
                EXPORT,
                '    print(f"inference model has been saved',
                "    for end in ('.pdmodel', '.pdiparams'):\n"
                "        open(os.path.join(args.save_inference_dir, 'inference' + end), 'w').close()\n{}",
            ),
        ),
        Status.FAILED,
        r"export.*(empty|0 bytes)",
    ),
    Break(
        "export of untrained weights",
        ((EXPORT, "pretrained=args.pretrained, num", "pretrained=None, num"),),
        Status.FAILED,
        r"ran\.weights",
    ),
    Break(
        "four ranks train alone",
        (
            (TRAIN, f"        {JOIN}\n", "        pass\n"),
            (TRAIN, "        model = paddle.DataParallel(model)\n", "        pass\n"),
        ),
        Status.FAILED,
        r"ran\.(group|world_size)",
    ),
    Break(
        "the ranks of node b exit 0 at once",
        (
            (TRAIN, f"        {JOIN}\n", "        sys.exit(0) if paddle.distributed.get_rank() > 1 else None\n"),
            (TRAIN, "        model = paddle.DataParallel(model)\n", "        pass\n"),
        ),
        Status.FAILED,
        r"ran\.group .*ranks? (2.*node b|0, 1 trained without a process group)",
    ),
    Break(
        "no data",
        (("test_tipc/prepare.sh", "    tar -xf ./test_images/lite_data.tar\n    ln", "    ln"),),
        Status.FAILED,
        r"a required file is missing on node .*'\./data/train'",
    ),
    Break(
        "the archive of the data cannot be read, prepare exits 0",
        (
            (
                "test_tipc/prepare.sh",
                "    tar -xf ./test_images/lite_data.tar\n    ln",
                "    tar -xf ./README.md\n    ln",
            ),
        ),
        # As after a download that brought an error page.
        Status.INFRA_FAILURE,
        r"prepar.*tar: This does not look like a tar archive",
    ),
    Break(
        "losses in another format",
        ((TRAIN, '"[Epoch {}, iter: {}] top1', '"E{} I{} top1'),),
        Status.FAILED,
        r"logged no training iteration",
    ),
    Break(
        "evaluation far worse than the training's own",
        (
            (
                TRAIN,
                "            acc1, acc5 = utils.accuracy(output, target, topk=(1, 5))\n",
                "            if '--test-only' not in sys.argv:\n                target = output.argmax(-1)\n{}",
            ),
        ),
        Status.FAILED,
        r"accuracy\.evaluation",
    ),
)


@pytest.mark.parametrize("one", BREAKS, ids=[one.name for one in BREAKS])
def test_a_broken_suite_is_not_green(public: PublicSite, tmp_path: Path, one: Break) -> None:
    public.serve(WEIGHTS, b"unused")
    edits = [(f"{STEP6}/{name}", old, new) for name, old, new in one.edits]
    public.clones["models_step6"] = changed("models", tmp_path / "broken", edits)
    outcome = public.run("models_step6", FLEET)
    assert outcome.run.status is one.status, outcome.output
    assert re.search(one.reason, outcome.run.reason), outcome.run.reason


# What PaddleClas needs to run to its end with Paddle 3 and without a network: `model_name` as the folder that the
# code writes to, the executor that enable_memory_optim requires, no pretrained weights.
FIT_FOR_PADDLE_3: tuple[Edit, ...] = (
    (MOBILENET, "model_name:MobileNetV3_small_x1_0\n", "model_name:.\n"),
    (MOBILENET, "gpu_list:0|0,1\n", "gpu_list:0\n"),
    ("ppcls/configs/ImageNet/MobileNetV3/MobileNetV3_small_x1_0.yaml", "pretrained: True", "pretrained: False"),
    (
        "deploy/utils/predictor.py",
        "        config.enable_memory_optim()\n",
        "        config.enable_new_executor()\n{}",
    ),
)
NEXT_CLASS_PRINTED = (
    "deploy/python/predict_cls.py",
    'clas_ids = result_dict["class_ids"]',
    'clas_ids = [number + 1 for number in result_dict["class_ids"]]',
)
NEXT_CLASS_CHOSEN = (
    "deploy/python/postprocess.py",
    '                "class_ids": clas_id_list,\n                "scores"',
    '                "class_ids": [number + 1 for number in clas_id_list],\n                "scores"',
)


@pytest.mark.parametrize(
    ("edits", "status"),
    [
        pytest.param((), Status.PASS, id="honest"),
        pytest.param((NEXT_CLASS_PRINTED,), Status.FAILED, id="prints the next class"),
        pytest.param((NEXT_CLASS_CHOSEN,), Status.FAILED, id="postprocessing returns the next class"),
    ],
)
def test_the_classes_that_paddleclas_prints(
    public: PublicSite, tmp_path: Path, edits: tuple[Edit, ...], status: Status
) -> None:
    """The file contains `benchmark:False`: the printed classes are the only output of a leg."""
    public.serve(IMAGENET, imagenet())
    public.clones["PaddleClas"] = changed("PaddleClas", tmp_path / "changed", (*FIT_FOR_PADDLE_3, *edits))
    outcome = public.run("PaddleClas", MOBILENET)
    assert outcome.run.status is status, outcome.output
    if edits:
        wrong = r"the log names class (\d+) for ILSVRC2012\S+, but the predictor's outputs have class (\d+)"
        found = re.search(r"ran\.evidence .*" + wrong, outcome.run.reason)
        assert found, outcome.run.reason
        assert int(found[1]) == int(found[2]) + 1
