"""Secrets in the events of a run."""

from tipcflow.execute.progress import Event, Kind, MaskedListener

KEY_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"
GAP = "\n[tipcflow: 9999999 bytes of this log are not shown; the whole is on the node]\n"


def shown(*texts: str) -> str:
    events: list[Event] = []
    masked = MaskedListener(events.append)
    for text in texts:
        masked(Event(Kind.LOG, text, step="train", node="a"))
    masked.flush()
    return "".join(event.text for event in events)


def test_colored_secret_split_between_events_is_masked() -> None:
    assert shown("\x1b[36mDB_PASSWORD\x1b[0m=\x1b[33mhun", "ter2\x1b[0m\n").count("***") == 1
    assert "ter2" not in shown("\x1b[36mDB_PASSWORD\x1b[0m=\x1b[33mhun", "ter2\x1b[0m\n")


def test_output_that_begins_within_a_private_key_is_hidden() -> None:
    assert shown(KEY_LINE * 3, "-----END PRIVATE KEY-----\nloss: 1\n").endswith("loss: 1\n")
    assert "MII" not in shown(KEY_LINE * 3, "loss: 1\n")


def test_gap_in_the_output_may_end_within_a_private_key() -> None:
    assert "MII" not in shown("epoch 1\nepoch 2\nepo", GAP, KEY_LINE * 3, "loss: 1\n")
    assert shown("epoch 1\nepo", GAP).startswith("epoch 1\nepo\n[tipcflow")


def test_gap_in_the_output_may_contain_the_end_of_a_private_key() -> None:
    assert shown("-----BEGIN PRIVATE KEY-----\nMII", GAP, "loss: 1\n").endswith("node]\nloss: 1\n")
