import pytest
from tests.support import postgres


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_ci_does_not_skip_postgresql(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(postgres, "binaries", lambda: None)
    with pytest.raises(outcome, match="apt-get install postgresql"):
        postgres.need_binaries()
