"""The scripts of the PyTorch suite, started by hand as documented: options, and ranks that do not join."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from tests.cluster.pytorch.conftest import PYTHON, SUITE


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return shutil.copytree(SUITE, tmp_path / "suite", ignore=shutil.ignore_patterns("output", "__pycache__"))


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def start(suite: Path, *words: str) -> "subprocess.Popen[str]":
    env = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    return subprocess.Popen(
        [PYTHON, *words], cwd=suite, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def ended(*processes: "subprocess.Popen[str]") -> list[tuple[int, str]]:
    """Exit code and output of each."""
    try:
        return [
            (process.returncode, out) for process in processes for out in [process.communicate(timeout=400)[0]]
        ]
    finally:
        for process in processes:
            process.kill()


def run(suite: Path, *words: str) -> tuple[int, str]:
    return ended(start(suite, *words))[0]


def test_the_toy_accepts_address_and_port(suite: Path, port: int) -> None:
    words = ("mmmg_toy.py", "--world-size", "2", "--ip", "127.0.0.1", "--port", str(port), "--iterations", "3")
    results = ended(*(start(suite, *words, "--rank", str(rank)) for rank in (0, 1)))
    for rank, (code, out) in enumerate(results):
        assert code == 0, out
        assert f"rank {rank} of 2, backend gloo, device cpu, seed 1\n" in out
        assert "exchanged 3 tensors of 262144 bytes with each neighbor: correct" in out


@pytest.mark.parametrize("script", ["mmmg_mnist.py", "mmmg_data.py"])
def test_a_rank_that_never_comes_is_named(suite: Path, port: int, script: str) -> None:
    data = suite / "data"
    assert run(suite, "tools/make_data.py", "--root", str(data), "--train", "20", "--test", "10")[0] == 0
    words = (script, "--root", str(data), "--init-method", f"tcp://127.0.0.1:{port}", "--timeout", "3")
    code, out = run(suite, *words, "--rank", "0", "--world-size", "3")
    assert code == 4, out
    result = f"error: rendezvous timed out after 3 s: ranks 1, 2 of 3 did not join at 127.0.0.1:{port}\n"
    assert out.endswith(result), out
    code, out = run(suite, *words, "--rank", "1", "--world-size", "2")
    assert code == 4, out
    assert f"rendezvous timed out after 3 s: rank 0 of 2 did not join at 127.0.0.1:{port}\n" in out
    assert "Traceback" not in out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--rank", "2", "--world-size", "2"), 2, "--rank 2 with --world-size 2: expected a rank from 0 to 1"),
        (("--rank", "0"), 2, "--rank without --world-size"),
        (("--init-method", "10.0.0.1:80", "--rank", "0", "--world-size", "2"), 2, "expected tcp://address:port"),
        (("--backend", "nccl", "--rank", "0", "--world-size", "1"), 3, "--backend nccl needs a GPU"),
        (("--root", "no/such"), 2, "no/such/train-images-idx3-ubyte is missing"),
        (("--timeout", "0"), 2, "expected seconds, such as 60, found '0'"),
    ],
)
def test_invalid_options_end_with_a_message(suite: Path, words: tuple[str, ...], code: int, message: str) -> None:
    found, out = run(suite, "mmmg_mnist.py", *words)
    assert (found, message in out) == (code, True), out
    assert "Traceback" not in out


def test_a_damaged_file_is_named(suite: Path) -> None:
    data = suite / "data"
    assert run(suite, "tools/make_data.py", "--root", str(data), "--train", "20", "--test", "10")[0] == 0
    file = data / "train-labels-idx1-ubyte"
    file.write_bytes(file.read_bytes()[:-1])
    code, out = run(suite, "mmmg_data.py", "--root", str(data))
    assert code == 2
    assert f"error: {file} is damaged: expected 20 items" in out


def test_a_sampler_that_leaves_out_images_is_found(suite: Path) -> None:
    """Without the world size the sampler's shares are unequal, and the script exits with code 1."""
    data = suite / "data"
    assert run(suite, "tools/make_data.py", "--root", str(data), "--train", "20", "--test", "10")[0] == 0
    module = suite / "multinode" / "training.py"
    text = module.read_text()
    assert "DistributedSampler(train_set, place.world, place.rank" in text
    module.write_text(
        text.replace("DistributedSampler(train_set, place.world, place.rank", "DistributedSampler(train_set, 2, 0")
    )
    code, out = run(suite, "mmmg_data.py", "--root", str(data), "--epochs", "1")
    assert code == 1, out
    assert "epoch 1: rank 0 trained on 10 images, expected 20" in out


def test_the_options_and_defaults_of_the_original_tests(suite: Path) -> None:
    """Each option of the document that the suite follows, with its default."""
    code = (
        "import sys; sys.argv = ['x']; import mmmg_toy, mmmg_mnist, mmmg_data; "
        "[print(vars(test.arguments())) for test in (mmmg_toy, mmmg_mnist, mmmg_data)]"
    )
    found, out = run(suite, "-c", code)
    assert found == 0, out
    toy, mnist, data = out.splitlines()[-3:]
    for line, texts in (
        (toy, ("'rank': None", "'world_size': None", "'ip': '127.0.0.1'", "'port': 22000")),
        (
            mnist,
            ("'batch_size': 1024", "'test_batch_size': 1000", "'epochs': 20", "'lr': 0.01", "'momentum': 0.5",
             "'no_cuda': False", "'seed': 1", "'log_interval': 10", "'init_method': 'tcp://127.0.0.1:23456'"),
        ),
        (
            data,
            ("'backend': 'gloo'", "'init_method': 'tcp://127.0.0.1:23456'", "'epochs': 20", "'no_cuda': False",
             "'learning_rate': 0.001", "PosixPath('../data')", "'batch_size': 128"),
        ),
    ):  # fmt: skip
        for text in texts:
            assert text in line, line
    short = run(suite, "mmmg_data.py", "--help")[1]
    assert re.search(r"-i|-r|-s|-lr", short)
    for letters in ("-i", "-r", "-s", "-lr"):
        assert re.search(rf"(?<!-){letters}\b", short), letters
