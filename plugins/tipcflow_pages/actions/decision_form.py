"""Fields of the forms for decisions, and the texts of the pages around them."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from tipcflow.domain import ConfigError
from tipcflow.domain.alert.entry import MEANINGS
from tipcflow.domain.errors import KEYS_SEPARATOR
from tipcflow.execute.decide.decisions import LONGEST, field_of

_LONGEST = 200


@dataclass(frozen=True)
class Field:
    """A field of a form.

    Attributes:
        kind: `text`, `area`, `select`, `check` or `hidden`.
        choices: of a select: value -> its text.
    """

    name: str
    label: str
    hint: str = ""
    kind: str = "text"
    choices: Mapping[str, str] | None = None
    required: bool = False
    longest: int = _LONGEST


@dataclass(frozen=True)
class Form:
    """The form for one kind of decision.

    Attributes:
        title: heading of the page, with `{name}` for the value of a field.
        button: its text, and that of links to the form.
        role: who may decide, for messages.
        place: what the page of the subject shows.
        about: path of that page, with `{name}` for the value of a field.
        effect: what the decision changes.
    """

    title: str
    button: str
    role: str
    place: str
    about: str
    effect: str
    fields: tuple[Field, ...]

    def named(self, values: Mapping[str, str]) -> str:
        """Return the heading."""
        return self.title.format_map({field.name: values.get(field.name, "") for field in self.fields})

    def subject(self, values: Mapping[str, object]) -> str:
        """Return the path of the subject's page."""
        return self.about.format_map({field.name: quote(str(values.get(field.name, ""))) for field in self.fields})

    def problem(self, error: ConfigError) -> str:
        """Return the message with the labels of the fields."""
        labels = {field.name: field.label for field in self.fields}
        keys = [labels.get(field_of(key), key) for key in error.key.split(KEYS_SEPARATOR) if key]
        own = ConfigError(error.what, key=KEYS_SEPARATOR.join(keys), found=error.found, expected=error.expected)
        return own.message


_WHY = Field("why", "Reason", "stored with your name", kind="area", required=True, longest=LONGEST)
FORMS: Mapping[str, Form] = {
    "decide_alert": Form(
        title="Alert {number}: decide",
        button="Change state or comment",
        role="operator or approver",
        place="the alert",
        about="alerts/{number}",
        effect="The state expected does not change the baseline.",
        fields=(
            Field("number", "Alert", kind="hidden"),
            Field(
                "state",
                "State",
                kind="select",
                choices={"": "unchanged"}
                | {state.value: f"{state.value}: {text}" for state, text in MEANINGS.items()},
            ),
            Field("owner", "Owner", "user or team; empty: unchanged"),
            Field(
                "why",
                "Reason or comment",
                "required for expected, fixed and invalid; stored with your name",
                kind="area",
                longest=LONGEST,
            ),
            Field("group", "Same cause", "also the other alerts with the same cause", kind="check"),
        ),
    ),
    "decide_baseline": Form(
        title="Baselines: {run}",
        button="Decide about baselines",
        role="approver",
        place="the run",
        about="runs/{run}",
        effect="Applies to later verdicts of the chain in this mode and environment class; earlier ones stay.",
        fields=(
            Field("run", "Run", kind="hidden"),
            Field(
                "kind",
                "Decision",
                kind="select",
                choices={
                    "accept": "accept: the history restarts with this run",
                    "pin": "pin: later runs are also compared with this run",
                    "reset": "reset: all accepted runs count again",
                },
            ),
            Field("metrics", "Metrics", "names, separated by spaces; empty: all that are compared"),
            Field("step", "Step", "empty: all"),
            _WHY,
        ),
    ),
    "decide_quarantine": Form(
        title="Quarantine a failure: {run}",
        button="Quarantine a failure",
        role="approver",
        place="the run",
        about="runs/{run}",
        effect="Later failures with the same signature are measured and shown, but do not block until the end.",
        fields=(
            Field("run", "Run", kind="hidden"),
            Field("check_name", "Check", "name of the check that failed", required=True),
            Field("step", "Step", "only if the check has several failures"),
            Field("leg", "Leg", "only if the check has several failures"),
            Field("metric", "Metric", "only if the check has several failures"),
            Field("owner", "Owner", "user or team that fixes the failure", required=True),
            Field("until", "End (UTC)", "for example 2026-12-01; empty: half of the policy's maximum"),
            _WHY,
        ),
    ),
    "decide_release": Form(
        title="Release quarantine {number}",
        button="Release",
        role="approver",
        place="the quarantines",
        about="quarantines?show=all",
        effect="From the next verdict on, the failure blocks.",
        fields=(Field("number", "Quarantine", kind="hidden"), _WHY),
    ),
}
