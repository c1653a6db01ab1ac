from pathlib import Path

import pytest

from tipcflow.parse.training.progress import Progress, last_progress

SAMPLES = Path(__file__).parents[3] / "golden" / "parse" / "suites.log"


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        ("[2022/05/01 10:00:00] ppcls INFO: [Train][Epoch 1/2][Iter: 0/12]lr: 0.1, loss: 7.0", (0, 12)),
        ("[TRAIN] epoch: 1, iter: 10/20, loss: 1.2345, lr: 0.009000", (10, 20)),
        ("INFO: Iter: 5/10 lr: 1.000e-04 loss_pixel: 0.123 batch_cost: 1.00000 sec", (5, 10)),
        ("[INFO] [TRAIN] Epoch=1/12, Step=10/50, loss=1.2, lr=0.001", (10, 50)),
        ("[Epoch 1, iter: 4780] top1: 0.10312, loss: 5.34719", None),
        ("[05/01] epoch 1/5 loss 0.5", None),
        ("iter: 12/10, loss: 1", None),
        ("iter: 3/0, loss: 1", None),
        ("all done", None),
        ("", None),
    ],
)
def test_progress_is_read_from_the_last_line(line: str, progress: tuple[int, int] | None) -> None:
    assert last_progress(line) == (Progress(*progress) if progress else None)


def test_the_last_training_line_counts() -> None:
    lines = [
        "[Train][Epoch 1/1][Iter: 8/10] loss: 2.0",
        "[Train][Epoch 1/1][Iter: 9/10] loss: 1.0",
        "[Eval][Epoch 1][Iter: 0/25] loss: 6.4",
        "saved best_model",
    ]
    assert last_progress("\n".join(lines)) == Progress(9, 10)
    assert last_progress("\r".join(["iter: 1/10 loss: 1", "iter: 2/10 loss: 1"])) == Progress(2, 10)
    assert last_progress("iter: 1/10 loss: 1\nloss: 0.5") is None, "the last line has no total"


def test_any_text_is_read() -> None:
    last_progress(SAMPLES.read_text(errors="replace"))
    last_progress("iter: " + "9" * 100_000 + "/1 loss")
