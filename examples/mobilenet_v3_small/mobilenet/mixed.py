"""Mixed precision of a training: forward pass in float16 where that is safe (level O1), or weights too (O2)."""

from contextlib import AbstractContextManager

import paddle
from paddle import nn

from mobilenet.arguments import MACHINE_CANNOT, Mixing, refuse


class Precision:
    """How this process trains: in fp32, or with mixed precision."""

    def __init__(self, mixing: Mixing | None) -> None:
        """Checks that the device computes in float16 if it is declared; ends the process with 3 if it does not.

        Args:
            mixing: loss scaling of a training with mixed precision; None for fp32.
        """
        self.mixed = mixing is not None
        self.level = mixing.level if mixing else "O1"
        self._scaler = None
        if mixing is None:
            return
        computed = _computed()
        if computed != "float16":
            refuse(
                f"--auto-cast=amp: Paddle on {paddle.device.get_device()} has no mixed precision, "
                f"a product of matrices is {computed} there",
                MACHINE_CANNOT,
            )
        self._scaler = paddle.amp.GradScaler(
            init_loss_scaling=mixing.scale, use_dynamic_loss_scaling=mixing.dynamic
        )

    @property
    def word(self) -> str:
        """The precision as params files write it."""
        return "amp" if self.mixed else "fp32"

    def decorate(
        self, model: nn.Layer, optimizer: paddle.optimizer.Optimizer
    ) -> tuple[nn.Layer, paddle.optimizer.Optimizer]:
        """At level O2 the weights become float16, and the optimizer keeps them in float32."""
        if not self.mixed or self.level != "O2":
            return model, optimizer
        return paddle.amp.decorate(
            models=model, optimizers=optimizer, level="O2", dtype="float16", master_weight=True
        )

    def restore(self, model: nn.Layer) -> str:
        """After the training, weights are float32 again. Returns: in which types they were trained, as text."""
        counts: dict[str, int] = {}
        for parameter in model.parameters():
            name = str(parameter.dtype).rpartition(".")[2]
            counts[name] = counts.get(name, 0) + 1
        model.to(dtype="float32")
        return ", ".join(f"{count} in {name}" for name, count in sorted(counts.items()))

    def forward(self) -> AbstractContextManager[None]:
        """The context of a forward pass."""
        return paddle.amp.auto_cast(enable=self.mixed, level=self.level, dtype="float16")

    def update(self, loss: paddle.Tensor, optimizer: paddle.optimizer.Optimizer) -> None:
        """Runs the backward pass and changes the weights; with scaled losses, only if all gradients are finite."""
        if self._scaler is None:
            loss.backward()
            optimizer.step()
        else:
            self._scaler.scale(loss).backward()
            self._scaler.step(optimizer)
            self._scaler.update()
        optimizer.clear_grad()


def _computed() -> str:
    """The type in which a product of matrices is computed under mixed precision: Paddle ignores it on CPUs."""
    matrix = paddle.ones([8, 8])
    with paddle.no_grad(), paddle.amp.auto_cast(level="O1", dtype="float16"):
        product = paddle.matmul(matrix, matrix)
    return str(product.dtype).rpartition(".")[2]
