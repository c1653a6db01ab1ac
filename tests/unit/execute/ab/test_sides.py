"""The versions that an A/B comparison accepts."""

import pytest

from tipcflow.domain import ConfigError
from tipcflow.execute.ab.sides import check_release


@pytest.mark.parametrize("framework", ["", "paddlepaddle==3.3.1", "Torch == 2.13.0"])
def test_releases_are_accepted(framework: str) -> None:
    check_release(framework, "--framework-a")


@pytest.mark.parametrize(
    ("framework", "message"),
    [
        (
            "paddlepaddle>=3",
            "--framework-b: does not name one release; found 'paddlepaddle>=3'; expected NAME==VERSION",
        ),
        ("paddlepaddle==3.*", "--framework-b: does not name one release; found 'paddlepaddle==3.*'"),
        ("paddlepaddle", "--framework-b: does not name one release; found 'paddlepaddle'"),
        ("paddle paddle", "--framework-b: is not a valid requirement; found 'paddle paddle'"),
    ],
)
def test_ranges_and_invalid_requirements_are_refused(framework: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_release(framework, "--framework-b")
    assert str(error.value).startswith(message)
