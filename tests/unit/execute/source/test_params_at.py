"""A params file that a ref lacks is one error that names the option of the ref."""

from pathlib import Path

import pytest
from tests.support.bisections.repository import PARAMS, write_repository

from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError
from tipcflow.execute.source.params_at import check_params_at


def test_params_file_is_checked_at_each_ref(tmp_path: Path) -> None:
    suite = Suite(name="s", folder=str(write_repository(tmp_path / "checkout") / "suite"), dialects=("d",))
    check_params_at(suite, PARAMS, {"--good": "v1", "--bad": "main"}, cache=tmp_path)
    check_params_at(suite, PARAMS, {"--a": ""}, cache=tmp_path, only_inside=True)
    with pytest.raises(ConfigError, match=r"^PARAMS: .* no such params file at v1 \(--good\); found 'x/y'"):
        check_params_at(suite, "x/y", {"--good": "v1"}, cache=tmp_path, only_inside=True)
    with pytest.raises(ConfigError, match=r"PARAMS: suite s has no such params file; found 'x/y'"):
        check_params_at(suite, "x/y", {"--a": ""}, cache=tmp_path)
    with pytest.raises(ConfigError, match="the suite has no such ref; found 'v9'"):
        check_params_at(suite, PARAMS, {"--good": "v9"}, cache=tmp_path)
