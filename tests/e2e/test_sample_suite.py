"""The sample suite alone, with real Paddle: it prepares, trains, exports and infers, and prints its steps."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tipcflow.domain.keys import PredictionKey
from tipcflow.parse import lines_of, parse_inference, parse_ranks, parse_training

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".tipcflow/envs/node-cpu/bin/python"
PARAMS = "test_tipc/configs/mobilenet_v3_small/train_fleet_infer_python.txt"
LAUNCH = "-m paddle.distributed.launch --nproc_per_node=2"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared copy of the suite, as a node gets it."""
    assert PYTHON.exists(), f"{PYTHON} is missing: make install"
    target = tmp_path_factory.mktemp("suite") / "mobilenet_v3_small"
    made = ("lite_data", "images", "output", "log", "pretrain_models", "__pycache__")
    shutil.copytree(ROOT / "examples/mobilenet_v3_small", target, ignore=shutil.ignore_patterns(*made))
    done = _run(target, "bash", "test_tipc/prepare.sh", PARAMS, "lite_train_lite_infer")
    assert done.returncode == 0, done.stdout
    return target


@pytest.fixture(scope="module")
def python(suite: Path) -> Run:
    """Runs words with the node's interpreter in the suite's root."""
    return lambda words, **env: _run(suite, str(PYTHON), *words.split(), **env)


@pytest.fixture(scope="module")
def trained(suite: Path, python: Run) -> Path:
    """A training on two ranks with seed 7: its folder, with the launcher's logs below `launch`."""
    return _train(suite, python, "first", seed=7)


@pytest.fixture(scope="module")
def exported(trained: Path, python: Run) -> Path:
    done = python(f"tools/export_model.py --pretrained={trained}/latest.pdparams --save-inference-dir={trained}/m")
    assert done.returncode == 0, done.stdout
    return trained / "m"


@pytest.fixture(scope="module")
def legs(exported: Path, python: Run) -> dict[bool, str]:
    """oneDNN on or off -> the leg's log."""
    logs = {}
    for onednn in (False, True):
        done = python(f"deploy/inference_python/infer.py --model-dir={exported} --enable-mkldnn={onednn} "
                      "--batch-size=4 --cpu-threads=2 --benchmark=True")  # fmt: skip
        assert done.returncode == 0, done.stdout
        logs[onednn] = done.stdout
    return logs


def test_preparing_again_changes_nothing(suite: Path) -> None:
    before = _pictures(suite)
    done = _run(suite, "bash", "test_tipc/prepare.sh", PARAMS, "lite_train_lite_infer")
    assert done.returncode == 0, done.stdout
    assert _pictures(suite) == before
    assert len(list((suite / "images").glob("*.png"))) >= 8


def test_preparing_elsewhere_gives_the_same_pixels(suite: Path, tmp_path: Path) -> None:
    other = shutil.copytree(
        suite, tmp_path / "other", ignore=shutil.ignore_patterns("lite_data", "images", "output")
    )
    assert _run(other, "bash", "test_tipc/prepare.sh", PARAMS, "lite_train_lite_infer").returncode == 0
    assert _pictures(other) == _pictures(suite)


def test_an_unknown_mode_is_refused(suite: Path) -> None:
    done = _run(suite, "bash", "test_tipc/prepare.sh", PARAMS, "lite_train")
    assert done.returncode != 0
    assert "unknown mode" in done.stdout
    assert "lite_train_lite_infer" in done.stdout


def test_every_rank_reports_its_number_and_logs_every_iteration(trained: Path) -> None:
    reports, lines = [], []
    for local in (0, 1):
        log = (trained / f"launch/workerlog.{local}").read_text()
        reports += parse_ranks(log)
        lines.append(len(_losses(log)))
    result = [(one.rank, one.world_size, one.backend, one.device, one.seed) for one in reports]
    assert result == [(0, 2, "gloo", "cpu", 7), (1, 2, "gloo", "cpu", 7)]
    assert lines[0] == lines[1] >= 20
    assert (trained / "train.log").is_file()


def test_sample_training_learns(trained: Path, python: Run) -> None:
    log = (trained / "launch/workerlog.0").read_text()
    top1 = [one.value for one in parse_training(lines_of(log)) if one.metric == "top1" and one.epoch == 5]
    assert sum(top1) / len(top1) >= 0.6
    losses = [float(loss) for loss in _losses(log)]
    quarter = len(losses) // 4
    assert sum(losses[-quarter:]) < 0.5 * sum(losses[:quarter])
    done = python(f"train.py --test-only --pretrained={trained}/latest.pdparams")
    assert done.returncode == 0, done.stdout
    found = re.search(r"^ \* Acc@1 (\S+) Acc@5 (\S+)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    assert 50 <= float(found[1]) <= float(found[2]) <= 100


def test_equal_seeds_give_equal_losses_and_other_seeds_others(suite: Path, python: Run, trained: Path) -> None:
    one, two = (_train(suite, python, name, seed=8, epochs=1) for name in ("one", "two"))
    for local in (0, 1):
        name = f"launch/workerlog.{local}"
        first, second, other = (_losses((each / name).read_text()) for each in (one, two, trained))
        assert len(first) >= 10
        assert first == second
        assert first != other[: len(first)]


def test_the_engine_is_the_requested_one(legs: dict[bool, str]) -> None:
    for onednn, log in legs.items():
        assert parse_inference(log).engine == {
            "device": "cpu",
            "onednn": str(onednn),
            "tensorrt": "False",
            "precision": "fp32",
            "threads": "2",
            "batch_size": "4",
        }


def test_onednn_on_and_off_agree_on_several_classes(suite: Path, legs: dict[bool, str]) -> None:
    off, on = (parse_inference(legs[onednn]).predictions for onednn in (False, True))
    assert set(off) == set(on) == {PredictionKey(path.name) for path in (suite / "images").glob("*.png")}
    for name, scores in off.items():
        assert on[name] == pytest.approx(scores, rel=1e-4, abs=1e-5)
        assert on[name].index(max(on[name])) == scores.index(max(scores))
        assert len(scores) == 10
        assert sum(scores) == pytest.approx(1.0, abs=1e-4)
    assert len({scores.index(max(scores)) for scores in off.values()}) >= 2
    line = next(line for line in legs[False].splitlines() if "\t" in line)
    answer = json.loads(line.partition("\t")[2])
    assert answer["class_id"] == answer["scores"].index(max(answer["scores"]))


def test_the_report_can_be_read(legs: dict[bool, str]) -> None:
    for onednn, log in legs.items():
        read = parse_inference(log)
        assert len(read.blocks) == 1
        assert read.blocks[0].complete
        assert read.reporter == "tipcflow-sample" or read.reporter.startswith("auto_log ")
        assert read.autolog["enable_mkldnn"] == str(onednn)
        assert read.autolog["runtime_device"] == "cpu"
        assert read.autolog["model_name"] == "mobilenet_v3_small"
        values = {sample.metric: sample.value for sample in read.samples}
        assert values["inference_time"] > 0
        assert values["cpu_rss"] > 50
        assert log.index("Env info") > log.rindex('"class_id"')


def test_autolog_reports_if_installed(suite: Path, legs: dict[bool, str]) -> None:
    """The nodes' environment has AutoLog if TIPCFLOW_WHEEL_URL had it; else the suite's own reporter prints."""
    version = "import importlib.metadata as metadata; print(metadata.version('auto_log'))"
    requested = _run(suite, str(PYTHON), "-c", version)
    expected = "tipcflow-sample" if requested.returncode else f"auto_log {requested.stdout.strip()}"
    assert {parse_inference(log).reporter for log in legs.values()} == {expected}
    if (PYTHON.parents[1] / ".tipcflow-autolog").exists():
        assert expected == "auto_log 1.2.0"


def test_missing_weights_end_a_script_with_a_message(suite: Path, python: Run) -> None:
    for words in (
        "tools/export_model.py --pretrained=no/such.pdparams --save-inference-dir=nothing",
        "train.py --test-only --pretrained=no/such.pdparams",
    ):
        done = python(words)
        assert done.returncode not in (0, None)
        assert "no/such.pdparams" in done.stdout
        assert "Traceback" not in done.stdout
    assert not list(suite.glob("nothing/*"))


@pytest.mark.parametrize(
    ("word", "code"),
    [("fp31", 2), ("fp16", 3), ("int8", 3)],
)
def test_unavailable_precisions_are_refused(exported: Path, python: Run, word: str, code: int) -> None:
    done = python(f"deploy/inference_python/infer.py --model-dir={exported} --precision={word}")
    assert done.returncode == code, done.stdout
    assert word in done.stdout
    assert "Traceback" not in done.stdout


def test_missing_gpu_ends_a_script_with_a_message(suite: Path, exported: Path, python: Run) -> None:
    done = python(f"deploy/inference_python/infer.py --model-dir={exported} --use-gpu=True")
    assert done.returncode == 3
    assert "no GPU" in done.stdout
    done = python("train.py --use-gpu=True --epochs=1 --output-dir=output/gpu")
    assert done.returncode == 3, done.stdout
    assert "no GPU" in done.stdout
    assert not (suite / "output/gpu").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--auto-cast=amp Global.use_amp=True Global.scale_loss=1024.0", 3, "has no mixed precision"),
        ("--auto-cast=fp16", 2, "invalid choice: 'fp16'"),
        ("--auto-cast=amp Global.use_amp=False", 2, "--auto-cast=amp contradicts Global.use_amp=False"),
        ("--auto-cast=amp Global.scale_loss=0", 2, "Global.scale_loss=0: expected 1 or more"),
        ("--auto-cast=amp Global.level=O2", 2, "unknown setting Global.level=O2"),
    ],
)
def test_mixed_precision_is_refused_on_a_cpu(python: Run, words: str, code: int, message: str) -> None:
    done = python(f"train.py --use-gpu=False --output-dir=./amp {words}")
    assert done.returncode == code, done.stdout
    assert message in done.stdout


def test_losses_are_nan_on_request(python: Run) -> None:
    done = python("train.py --epochs=1 --batch-size=16 --output-dir=output/nan --inject=nan@3")
    lines = [line for line in done.stdout.splitlines() if line.startswith("[Epoch")]
    first = next(line for line in lines if "loss: nan" in line)
    assert first.startswith("[Epoch 1, iter: 3]")


def test_training_exits_on_request(suite: Path, python: Run) -> None:
    done = python("train.py --epochs=1 --batch-size=16 --output-dir=output/exit --inject=exit@3")
    assert done.returncode not in (0, None)
    assert len(_losses(done.stdout)) == 3
    assert not (suite / "output/exit/latest.pdparams").exists()


def _run(cwd: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PADDLE_", "FLAGS_", "CUDA_"))}
    env |= {"PATH": f"{PYTHON.parent}:{env['PATH']}", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", **more}
    return subprocess.run(
        words, cwd=cwd, env=env, text=True, timeout=240, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def _train(suite: Path, python: Run, name: str, *, seed: int, epochs: int = 5) -> Path:
    folder = suite / "output" / name
    words = f"train.py --output-dir={folder} --epochs={epochs} --batch-size=4 --seed={seed} --use-gpu=False"
    done = python(f"{LAUNCH} --log_dir={folder}/launch {words}")
    assert done.returncode == 0, done.stdout
    assert (folder / "latest.pdparams").stat().st_size > 10_000
    return folder


def _losses(log: str) -> list[str]:
    return re.findall(r"^\[Epoch \d+, iter: \d+\].* loss: ([^,]+),", log, re.MULTILINE)


def _pictures(suite: Path) -> dict[str, bytes]:
    files = [*(suite / "lite_data").rglob("*"), *(suite / "images").rglob("*")]
    return {str(each.relative_to(suite)): each.read_bytes() for each in files if each.is_file()}
