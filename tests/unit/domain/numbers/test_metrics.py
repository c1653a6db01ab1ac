"""Which names are those of losses."""

import pytest

from tipcflow.domain.numbers.metrics import Scope, is_loss, objective, scope_of


@pytest.mark.parametrize(
    "name",
    [
        "loss",
        "train_loss",
        "G_loss",
        "D_A_loss",
        "loss_pixel",
        "CELoss",
        "epoch.loss",
        "loss_xy",
        "LOSS",
        "bboxloss",
    ],
)
def test_names_of_losses_are_recognized(name: str) -> None:
    assert is_loss(name)


@pytest.mark.parametrize("name", ["loss_scale", "lossless", "lr", "top1", "loss_weight", "LossScaling"])
def test_other_names_are_not_losses(name: str) -> None:
    assert not is_loss(name)


def test_objective_is_the_loss_that_a_training_minimizes() -> None:
    assert objective(["CELoss", "loss"]) == "loss"
    assert objective(["G_loss"]) == "G_loss"
    assert objective(["G_loss", "D_loss"]) == "", "a GAN's losses oppose each other"
    assert objective([]) == ""


@pytest.mark.parametrize(
    ("name", "scope", "is_plain"),
    [
        ("loss", Scope.PLAIN, True),
        ("epoch.loss", Scope.EPOCH, False),
        ("batch.top1", Scope.BATCH, False),
        ("best.mIoU", Scope.BEST, False),
        ("eval.top1", Scope.EVALUATION, True),
        ("peak_rss.rank0", Scope.PLAIN, True),
        ("best", Scope.PLAIN, True),
        (".loss", Scope.PLAIN, True),
    ],
)
def test_scope_is_the_first_part_of_the_name(name: str, scope: Scope, is_plain: bool) -> None:
    assert (scope_of(name), scope_of(name).is_plain) == (scope, is_plain)
    assert scope_of(f"{scope.prefix}x") is scope
