"""Names of results."""

import pytest

from tipcflow.domain.numbers.results import is_result, result_name


def test_result_has_a_separate_name() -> None:
    assert result_name("a.jpg", 2) == "a.jpg: result 2"
    assert is_result(result_name("a.jpg", 12))


@pytest.mark.parametrize("name", ["a.jpg", "result 1", "a: result 0", "a: result 1.jpg", "a: result \u0663"])
def test_other_names_are_images(name: str) -> None:
    assert not is_result(name)
