"""A public suite (Step6 of the models repository) broken on purpose on two nodes: never green, the right reason.

`TIPC_SUITES` names the repository (see test_public_suites.py); each break is a commit on top of it. Nothing in the
suite reports what is broken: the proof comes from the runner, the probe, the files and the suite's own lines.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.suites.public_site import FLEET, SUITES, WEIGHTS, PublicSite

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
    edits: tuple[tuple[str, str, str], ...]
    status: Status
    reason: str


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


def broken(folder: Path, edits: tuple[tuple[str, str, str], ...]) -> Path:
    """Clone the suite and commit the edits."""
    clone = folder / "models"
    subprocess.run(["git", "clone", "-q", str(SUITES / "models"), str(clone)], check=True)
    for name, old, new in edits:
        path = clone / STEP6 / name
        text = path.read_text()
        assert old in text, (name, old)
        path.write_text(text.replace(old, new.replace("{}", old) if new.endswith("{}") else new, 1))
    author = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "-C", str(clone), *author, "commit", "-qam", "break"], check=True)
    return clone


@pytest.mark.parametrize("one", BREAKS, ids=[one.name for one in BREAKS])
def test_a_broken_suite_is_not_green(public: PublicSite, tmp_path: Path, one: Break) -> None:
    public.serve(WEIGHTS, b"unused")
    public.clones["models_step6"] = broken(tmp_path / "broken", one.edits)
    outcome = public.run("models_step6", FLEET)
    assert outcome.run.status is one.status, outcome.output
    assert re.search(one.reason, outcome.run.reason), outcome.run.reason
