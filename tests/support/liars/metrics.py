"""Numbers that are wrong, renamed or gone."""

from tests.support.certify import Site
from tests.support.liars.lie import Lie, edit
from tests.support.liars.training import STEP, TRAIN

LOSS = "loss: {loss:.5f}"
LINE_END = "            flush=True,\n        )\n"
MEGABYTES = 70


def _renamed(name: str, value: str) -> object:
    return edit(TRAIN, (LOSS, f"{name}: {value}"))


def _nan_late(text: str) -> str:
    return f"{{'{text}' if epoch == 2 and iteration == 4 else format(loss, '.5f')}}"


def _target_of_another_variant(site: Site) -> None:
    folder = site.configs / "references"
    folder.mkdir(exist_ok=True)
    (folder / "toy.yaml").write_text(
        "suite: toy\nreferences:\n  - {model: toy, variant: norm_train_renamed, metric: top1, target: 95, "
        "tolerance: 1, unit: '%', because: measured}\n"
    )


def flood(code: str) -> str:
    """Print `MEGABYTES` MiB of debug lines before the second epoch, as a verbose framework does."""
    return (
        f"        if epoch == 2 and iteration == 1 and rank == 1:\n"
        f"            for _ in range({MEGABYTES}):\n"
        f"                print(('debug: ' + 'x' * 120 + chr(10)) * 8192, flush=True)\n"
        f"{code}"
    )


def _nan_behind_a_flood(site: Site) -> None:
    edit(
        TRAIN,
        (STEP, flood(STEP)),
        (LOSS, "loss: {float('nan') if epoch == 2 and rank == 1 else loss:.5f}"),
    )(site)


def _nan_behind_a_progress_bar(site: Site) -> None:
    bar = "print(''.join(chr(13) + 'downloading ' + str(n) + '%' for n in range(3000)), end=chr(13))"
    edit(
        TRAIN,
        (STEP, f"{STEP}        if epoch == 2 and iteration == 4:\n            {bar}\n"),
        (LOSS, "loss: {float('nan') if epoch == 2 and iteration == 4 else loss:.5f}"),
    )(site)


LIES = (
    Lie(
        "NaN loss of a GAN",
        "the loss is called G_loss and is nan from the beginning",
        _renamed("G_loss", "nan"),
        (r"G_loss|loss", r"nan|finite"),
        history=False,
    ),
    Lie(
        "NaN train_loss",
        "the loss is called train_loss and is nan",
        _renamed("train_loss", "nan"),
        (r"loss", r"nan|finite"),
        history=False,
    ),
    Lie(
        "NaN loss_pixel at the end",
        "loss_pixel is finite and becomes nan in the second last iterations",
        _renamed("loss_pixel", _nan_late("nan")),
        (r"loss_pixel|loss", r"nan|finite"),
        history=False,
    ),
    Lie(
        "infinite loss",
        "the loss is inf in one iteration",
        _renamed("loss", _nan_late("inf")),
        (r"loss", r"inf|finite"),
        history=False,
    ),
    Lie(
        "NaN in one rank",
        "only rank 3's loss is nan, rank 0 prints finite ones",
        edit(TRAIN, (LOSS, "loss: {float('nan') if rank == 3 else loss:.5f}")),
        (r"loss", r"rank 3|nan|finite"),
        history=False,
    ),
    Lie(
        "NaN top1",
        "the training accuracy is nan, the loss is not",
        edit(TRAIN, ("top1: {1 - loss / 3:.5f}", "top1: nan")),
        (r"top1", r"nan|finite"),
        history=False,
    ),
    Lie(
        "NaN gradient norm",
        "grad_norm is nan, the loss is not",
        edit(TRAIN, (LOSS, f"{LOSS}, grad_norm: nan")),
        (r"grad_norm", r"nan|finite"),
        history=False,
    ),
    Lie(
        "loss printed as a tensor of NaN",
        "the loss is printed as Tensor(shape=[1], …, [nan])",
        edit(TRAIN, (LOSS, "loss: Tensor(shape=[1], dtype=float32, place=cpu, [nan])")),
        (r"loss",),
        history=False,
    ),
    Lie(
        "loss printed as None",
        "the loss is printed as None",
        edit(TRAIN, (LOSS, "loss: None")),
        (r"loss",),
        history=False,
    ),
    Lie(
        "no loss in the log",
        "the training prints iterations and speeds, and no loss at all",
        edit(TRAIN, (f"{LOSS}, ", "")),
        (r"loss",),
        history=False,
    ),
    Lie(
        "a loss that does not fall",
        "the loss stays at 2.3",
        edit(TRAIN, (LOSS, "loss: {2.3 + loss * 0:.5f}")),
        (r"loss",),
        history=False,
    ),
    Lie(
        "a loss that rises",
        "the loss grows from iteration to iteration",
        edit(TRAIN, (LOSS, "loss: {epoch * 5 + iteration:.5f}")),
        (r"loss",),
        history=False,
    ),
    Lie(
        "NaN behind 70 MiB of debug lines",
        "rank 1 prints 70 MiB of debug lines, then its losses are nan",
        _nan_behind_a_flood,
        (r"loss|rank 1", r"nan|finite"),
        history=False,
    ),
    Lie(
        "NaN behind a progress bar",
        "a line with loss nan follows a progress bar of 60 kB on the same line",
        _nan_behind_a_progress_bar,
        (r"loss", r"nan|finite"),
        history=False,
    ),
    Lie(
        "a metric that disappears",
        "top1 is not printed any more; all earlier runs had it",
        edit(TRAIN, ("top1: {1 - loss / 3:.5f}, ", "")),
        (r"top1",),
    ),
    Lie(
        "speeds that disappear",
        "batch_cost and ips are not printed any more; all earlier runs had them",
        edit(
            TRAIN,
            ("avg_reader_cost: 0.00010 sec, avg_batch_cost: {args.step_time:.5f} sec, ", ""),
            (', "\n            f"avg_ips: {args.batch_size / args.step_time:.5f} images/sec.",', '",'),
        ),
        (r"batch_cost|ips",),
    ),
    Lie(
        "batches that take no time",
        "batch_cost is printed as 0",
        edit(TRAIN, ("avg_batch_cost: {args.step_time:.5f} sec", "avg_batch_cost: 0.00000 sec")),
        (r"batch_cost",),
    ),
    Lie(
        "a target that nothing measures",
        "the accuracy target of the model is of a variant that the params file no longer has",
        _target_of_another_variant,
        (r"accuracy\.final", r"variant norm_train_renamed", r"nothing measured"),
        history=False,
    ),
)
