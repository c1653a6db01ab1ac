"""Whether a params file exists at the refs that a search or a comparison begins with."""

from collections.abc import Mapping
from pathlib import Path

from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError
from tipcflow.execute.source.snapshot import take_snapshot


def check_params_at(
    suite: Suite, params: str, refs: Mapping[str, str], *, cache: Path, only_inside: bool = False
) -> None:
    """Check that the params file exists at each ref, so that no run starts without it.

    Args:
        params, cache, only_inside: as of `take_snapshot`.
        refs: option that names the ref -> the ref, '' for the working tree.

    Raises:
        ConfigError: no such params file at a ref; names the option.
        InfraError: the suite's git server is unreachable.
    """
    for option, ref in refs.items():
        try:
            take_snapshot(suite, params, ref or None, cache=cache, only_inside=only_inside)
        except ConfigError as error:
            if error.key != "PARAMS":
                raise
            what = f"{error.what} ({option})" if ref else error.what
            raise ConfigError(
                what, key=error.key, found=error.found, expected=error.expected, hint=error.hint
            ) from error
