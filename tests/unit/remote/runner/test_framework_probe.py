"""The framework probe in Python processes: loaded beside others' modules, and no trouble of it reaches them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from tipcflow.domain import ProcessReport
from tipcflow.remote.runner.probe_tensors import top_classes
from tipcflow.remote.runner.stack_signal import MOST, clean, clear, collect, prepare

VERSIONS = sorted(Path("~/.pyenv/versions").expanduser().glob("*/bin/python"))
PYTHONS = sorted({str(path) for path in VERSIONS} | {sys.executable})
OLDER = re.compile("/(2[.][0-9]+|3[.][0-6])[.]")  # the probe needs 3.7
# A package named like a framework, with the parts that the probe watches.
PADDLE = """
class Optimizer:
    _parameter_list = ()
    def step(self):
        print("stepped")
class Adam(Optimizer):
    def step(self):
        super().step()
class optimizer: pass
optimizer.Optimizer, optimizer.Adam = Optimizer, Adam
def in_dynamic_mode(): return True
def save(state, path): print("saved", path)
def load(path): return {}
class jit: pass
class distributed:
    @staticmethod
    def is_initialized(): return True
    @staticmethod
    def get_world_size(): return 2
    @staticmethod
    def get_backend(): return "GLOO"
    @staticmethod
    def all_reduce(x): return x + 1
class DataParallel: pass
def get_device(): return "cpu"
"""

# PyTorch 2.13 deletes the names of its optimizers' modules; those remain in sys.modules.
TORCH = """
import torch.optim
class distributed:
    @staticmethod
    def is_available(): return False
class cuda:
    @staticmethod
    def is_available(): return False
class nn:
    class parallel: pass
class jit: pass
def save(state, path): pass
def load(path): return {}
"""
OPTIM = "from torch.optim.optimizer import Optimizer\ndel optimizer\n"
OPTIMIZER = """
hooks = []
def register_optimizer_step_pre_hook(hook): hooks.append(hook)
class Optimizer:
    param_groups = ()
    def step(self):
        for hook in hooks: hook(self)
"""

pytestmark = pytest.mark.process


@pytest.fixture
def env(tmp_path):
    """The environment of a job with the probe, and a package `paddle`."""
    made = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "packages"), "PADDLE_TRAINER_ID": "1"}
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "paddle.py").write_text(PADDLE)
    prepare(made, str(tmp_path / "the job, 1"), stacks=False, probe=True)
    return made


def run(python, code, env):
    done = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("python", [one for one in PYTHONS if not OLDER.search(one)])
def test_a_framework_is_watched_and_works_as_before(env, tmp_path, python):
    code = """
import paddle
adam = paddle.optimizer.Adam()
adam.step()
adam.step()
paddle.save({}, "file")
print(paddle.distributed.all_reduce(1))
assert paddle.save.__code__.co_filename == "<tipcflow_probe>"  # Paddle cannot read a path with a comma
"""
    assert run(python, code, env) == (0, "stepped\nstepped\nsaved file\n2\n", "")
    (collected,) = collect(str(tmp_path / "the job, 1"))
    report = ProcessReport.model_validate(collected)
    assert (report.rank, report.steps, report.collectives) == ("1", 2, {"all_reduce": 1}), report
    assert (report.initialized, report.world_size, report.backend, report.device) == (True, 2, "gloo", "cpu")
    assert report.notes == ()


def test_group_that_is_destroyed_before_the_end_is_reported(env, tmp_path):
    """A rank that neither trains nor saves, such as rank 1 of an exchange of tensors."""
    code = """
import paddle
paddle.distributed.all_reduce(1)
paddle.distributed.is_initialized = lambda: False
"""
    assert run(sys.executable, code, env) == (0, "", "")
    (collected,) = collect(str(tmp_path / "the job, 1"))
    report = ProcessReport.model_validate(collected)
    assert (report.initialized, report.world_size, report.collectives) == (True, 2, {"all_reduce": 1})


@pytest.mark.parametrize("python", PYTHONS)
def test_a_process_without_a_framework_reports_nothing(env, tmp_path, python):
    assert run(python, "import sys; print([p for p in sys.path if 'the job, 1' in p])", env) == (0, "[]\n", "")
    assert collect(str(tmp_path / "the job, 1")) == []


def test_the_environments_own_module_runs_too(env, tmp_path):
    (tmp_path / "packages" / "sitecustomize.py").write_text("print('own')\n")
    assert run(sys.executable, "import paddle", env)[:2] == (0, "own\n")


@pytest.mark.parametrize(
    ("change", "code", "out"),
    [
        ("def get_device(): raise ValueError('broken')", "paddle.optimizer.Adam().step()", "stepped\n"),
        ("Optimizer._parameter_list = 5", "paddle.optimizer.Adam().step()", "stepped\n"),
        ("class optimizer:\n    Optimizer = 3\ndel distributed", "print(1)", "1\n"),
        ("del optimizer", "print(1)", "1\n"),
    ],
)
def test_trouble_of_the_probe_stays_its_own(env, tmp_path, change, code, out):
    with (tmp_path / "packages" / "paddle.py").open("a") as package:
        package.write(f"\n{change}\n")
    assert run(sys.executable, f"import paddle; {code}", env) == (0, out, "")
    reports = collect(str(tmp_path / "the job, 1"))
    assert change == "del optimizer" or reports[0]["notes"], reports


def test_tensors_are_not_read_while_a_static_program_is_made(env, tmp_path):
    """Paddle's quantization saves its network in static mode; reading a tensor there ends the process."""
    with (tmp_path / "packages" / "paddle.py").open("a") as package:
        package.write("\ndef in_dynamic_mode(): return False\n")
    code = """
import os, paddle
class Tensor:
    dtype = "float32"
    shape = property(lambda self: os._exit(11))
paddle.save({"w": Tensor()}, "file")
"""
    assert run(sys.executable, code, env) == (0, "saved file\n", "")


def test_exceptions_of_the_suite_are_unchanged(env, tmp_path):
    with (tmp_path / "packages" / "paddle.py").open("a") as package:
        package.write("\ndef save(state, path): raise OSError('disk full')\n")
    code, _, err = run(sys.executable, "import paddle; paddle.save({}, 'x')", env)
    assert code == 1
    assert err.strip().endswith("OSError: disk full")
    (tmp_path / "packages" / "paddle.py").write_text("raise ImportError('no such library')")
    assert run(sys.executable, "import paddle", env)[2].strip().endswith("ImportError: no such library")


def test_no_folder_for_reports(env, tmp_path):
    """A full disk, or a suite that deletes the folder."""
    reports = tmp_path / "the job, 1" / "python" / "reports"
    reports.rmdir()
    assert run(sys.executable, "import paddle; paddle.optimizer.Adam().step()", env) == (0, "stepped\n", "")


def test_only_well_formed_reports_are_read(tmp_path):
    place = tmp_path / "python" / "reports"
    place.mkdir(parents=True)
    wrong = {
        "rank": "../1", "steps": -5, "world_size": 1 << 90, "initialized": 1, "first": "text", "last": [{}, 7],
        "collectives": [1], "predictors": [5, {"gpu": "x", "ir_optim": 1}], "framework": {"a": 1}, "new": 1,
        "classes": [3, "4"],
    }  # fmt: skip
    (place / "1.json").write_text(json.dumps(wrong))
    (place / "2.json").write_text("{")
    (place / "3.json").write_text("x" * 100_000)
    (place / "4.json").write_text("[]")
    os.mkfifo(place / "5.json")
    (found,) = collect(str(tmp_path))
    report = ProcessReport.model_validate(found)
    assert (report.rank, report.steps, report.world_size, report.initialized, report.first) == (
        "",
        0,
        0,
        False,
        (),
    )
    assert report.classes == ()
    assert (report.last, report.predictors) == (("{}", "7"), ({"gpu": 0, "ir_optim": 1},))
    clear(str(tmp_path))
    assert collect(str(tmp_path)) == []
    for number in range(100):
        (place / f"{number}.json").write_text(json.dumps({"rank": str(number)}))
    assert [one["rank"] for one in collect(str(tmp_path))] == [str(number) for number in range(MOST)]


def test_steps_of_pytorch_are_seen(env, tmp_path):
    optim = tmp_path / "packages" / "torch" / "optim"
    optim.mkdir(parents=True)
    (optim.parent / "__init__.py").write_text(TORCH)
    (optim / "__init__.py").write_text(OPTIM)
    (optim / "optimizer.py").write_text(OPTIMIZER)
    assert run(sys.executable, "import torch; torch.optim.Optimizer().step()", env) == (0, "", "")
    (report,) = collect(str(tmp_path / "the job, 1"))
    assert (report["framework"], report["steps"], report["notes"]) == ("torch", 1, [])
    assert (report["device"], report["placed"]) == ("cpu", "")


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("from torch.optim import Optimizer\nOptimizer.param_groups = [{'params': [one]}]", "cuda:0"),
        (
            "from paddle import Optimizer\none.place = 'Place(gpu:0)'\nOptimizer._parameter_list = [one]",
            "Place(gpu:0)",
        ),
    ],
    ids=["torch", "paddle"],
)
def test_the_device_of_trained_parameters_is_reported(env, tmp_path, code, place):
    torch = tmp_path / "packages" / "torch" / "optim"
    torch.mkdir(parents=True)
    (torch.parent / "__init__.py").write_text(TORCH)
    (torch / "__init__.py").write_text(OPTIM)
    (torch / "optimizer.py").write_text(OPTIMIZER)
    tensor = "class one:\n    shape, dtype, device = (), 'float32', 'cuda:0'\n"
    assert run(sys.executable, f"{tensor}{code}\nOptimizer().step()", env)[::2] == (0, "")
    (report,) = collect(str(tmp_path / "the job, 1"))
    assert (report["dtype"], report["placed"], report["notes"]) == ("float32", place, [])


def test_a_cleaned_report_is_unchanged():
    report = ProcessReport(framework="torch", rank="3", steps=2, collectives={"barrier": 1}, saved=("ab",))
    assert clean(json.loads(report.model_dump_json())) == json.loads(report.model_dump_json())


def test_the_job_has_the_reports_in_its_record(bench, tmp_path):
    (bench.root / "paddle.py").write_text(PADDLE)
    text = f"PADDLE_TRAINER_ID=0 {sys.executable} -c 'import paddle; paddle.optimizer.Adam().step()'"
    record = bench.end_of(f"export PYTHONPATH=$PYTHONPATH:.; {text}", framework_probe=True)
    assert record.probed
    assert [(one.rank, one.steps) for one in record.processes] == [("0", 1)]
    record = bench.end_of(f"export PYTHONPATH=$PYTHONPATH:.; {text}", step="train/other")
    assert not record.probed
    assert record.processes == ()


def test_every_row_of_an_output_has_a_class() -> None:
    table = numpy.array([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0], [0.0, float("nan"), 1.0]], dtype="float32")
    assert top_classes(table) == [1, -1, -1]
    assert top_classes(table[0]) == top_classes(table[:1].astype("int64")) == top_classes(table[:, :1]) == []


def test_the_classes_of_a_report_are_kept() -> None:
    assert ProcessReport.model_validate(clean({"classes": [3, -1]})).classes == (3, -1)
