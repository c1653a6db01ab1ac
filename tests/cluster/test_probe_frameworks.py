"""The framework probe with the real frameworks: Paddle's training, export and inference engine, and PyTorch."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.cluster.pytorch.conftest import NEEDS_TORCH, PYTHON

from tipcflow.domain import ProcessReport
from tipcflow.remote.runner.stack_signal import clear, collect, prepare

pytestmark = [pytest.mark.cluster, pytest.mark.process]
DEADLINE_S = 300
TRAIN_PADDLE = """
import paddle
net = paddle.nn.Linear(4, 3)
sgd = paddle.optimizer.SGD(0.1, parameters=net.parameters())
for _ in range(5):
    net(paddle.ones([2, 4])).sum().backward()
    sgd.step()
    sgd.clear_grad()
paddle.save(net.state_dict(), "weights.pdparams")
"""
EXPORT_PADDLE = """
import paddle
net = paddle.nn.Linear(4, 3)
net.set_state_dict(paddle.load("weights.pdparams"))
shape = [paddle.static.InputSpec([None, 4], "float32")]
paddle.jit.save(paddle.jit.to_static(net, input_spec=shape), "model")
"""
INFER_PADDLE = """
import os
import sys
import numpy
from paddle import inference
program = "model.json" if os.path.exists("model.json") else "model.pdmodel"
config = inference.Config(program, "model.pdiparams")
config.disable_gpu()
config.set_cpu_math_library_num_threads(2)
predictor = inference.create_predictor(config)
handle = predictor.get_input_handle(predictor.get_input_names()[0])
handle.copy_from_cpu(numpy.ones((2, 4), "float32"))
for _ in range(int(sys.argv[1])):
    predictor.run()
"""
TRAIN_TORCH = """
import torch
net = torch.nn.Linear(4, 3)
adam = torch.optim.Adam(net.parameters())
for _ in range(5):
    net(torch.ones(2, 4)).sum().backward()
    adam.step()
torch.save(net.state_dict(), "weights.pt")
"""
EXPORT_TORCH = """
import torch
net = torch.nn.Linear(4, 3)
net.load_state_dict(torch.load("weights.pt"))
torch.jit.save(torch.jit.script(net), "model.pt")
"""


def reported(folder: Path, python: Path, code: str, *words: str) -> ProcessReport:
    """What the probe reports of a process of a job."""
    job = folder / "the job, 1"
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    prepare(env, str(job), stacks=False, probe=True)
    clear(str(job))
    subprocess.run(
        [str(python), "-c", code, *words], env=env, cwd=folder, check=True, timeout=DEADLINE_S, capture_output=True
    )
    (report,) = collect(str(job))
    made = ProcessReport.model_validate(report)
    assert made.notes == ()
    return made


def test_paddle_is_observed_from_training_to_the_inference_engine(tmp_path: Path, node_python: Path) -> None:
    trained = reported(tmp_path, node_python, TRAIN_PADDLE)
    assert (trained.framework, trained.steps, trained.dtype[-7:]) == ("paddle", 5, "float32")
    assert trained.first != trained.last
    assert set(trained.last) <= set(trained.saved)
    exported = reported(tmp_path, node_python, EXPORT_PADDLE)
    assert set(trained.last) <= set(exported.exported)
    assert set(exported.loaded) == set(trained.saved)
    for runs in (0, 3):
        seen = reported(tmp_path, node_python, INFER_PADDLE, str(runs))
        (flags,) = seen.predictors
        assert (seen.predictions, flags["gpu"], flags["tensorrt"], flags["threads"]) == (runs, 0, 0, 2)


@pytest.mark.full
@NEEDS_TORCH
def test_pytorch_is_observed_from_training_to_the_export(tmp_path: Path) -> None:
    trained = reported(tmp_path, PYTHON, TRAIN_TORCH)
    assert (trained.framework, trained.steps, trained.dtype) == ("torch", 5, "torch.float32")
    assert trained.first != trained.last
    assert set(trained.last) <= set(trained.saved)
    exported = reported(tmp_path, PYTHON, EXPORT_TORCH)
    assert set(exported.loaded) == set(trained.saved)
    assert set(trained.last) <= set(exported.exported)
