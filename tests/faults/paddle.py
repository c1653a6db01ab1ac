"""Makes a case's training a real one: Paddle on CPUs, gloo between all ranks, a linear layer."""

import shutil

from tests.faults.world import LOOP, World
from tests.support.certify import ROOT

NODE_PYTHON = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"
# Importing Paddle on a busy machine is silence, too.
HANG_S = 40
SEED = "generator = random.Random(args.seed * 1000 + rank)\n"
BEGIN = """
import paddle
import paddle.distributed

paddle.distributed.init_parallel_env()
paddle.seed(args.seed)
layer = paddle.nn.Linear(8, 1)
network = paddle.DataParallel(layer)
optimizer = paddle.optimizer.SGD(0.02, parameters=layer.parameters())
paddle.seed(args.seed * 1000 + rank)
features = paddle.randn([16, 8])
targets = features.sum(axis=1, keepdim=True)
"""
LOSS = "loss = 2.5 / (epoch + iteration / 5) + generator.random() * 0.01\n"
STEP = """error = ((network(features) - targets) ** 2).mean()
        error.backward()
        optimizer.step()
        optimizer.clear_grad()
        loss = float(error) + generator.random() * 0.01
"""


def train_for_real(world: World) -> None:
    """Replace the toy's framework and its made-up losses, before any fault edits the script."""
    assert NODE_PYTHON.exists(), f"{NODE_PYTHON} is missing: make test makes it"
    shutil.rmtree(world.site.suite / "paddle")
    world.in_train(SEED, f"{SEED}{BEGIN}")
    world.in_train(LOSS, STEP)
    assert LOOP in (world.site.suite / "train.py").read_text()
    world.site.configure_policy(hang_s=HANG_S)
