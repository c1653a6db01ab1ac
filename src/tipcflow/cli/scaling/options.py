"""Options that several commands of `tipcflow scaling` have."""

from pathlib import Path
from typing import Annotated

import typer

Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE.png", help="Write measured, linear and previous speeds as .png or .svg."),
]
