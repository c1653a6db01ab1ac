"""A database with runs of chains, and a sink that records what teams are sent."""

from tests.support.stories import T0, a_run

from tipcflow.config.teams.team import Team
from tipcflow.domain import Status
from tipcflow.execute.notices.notify import Pass, notify
from tipcflow.report.notices.message import Message
from tipcflow.store import Store

DAY = 86_400.0
VISION = Team(name="vision", chains=("clas/*",), slack="x")


class Inbox:
    """A database, and a sink that records messages or fails."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.sent: list[tuple[str, Message]] = []
        self.lines: list[str] = []
        self.fails = False

    def run(self, day: float, status: Status, chain: str = "clas/a/x", **fields: object) -> None:
        name = f"{chain.replace('/', '-')}-{day}"
        known = {"chain": chain, "suite": "clas", "created_at": T0 + day * DAY, "ended_at": T0 + day * DAY + 9}
        known |= {"framework": "paddle 1", "reason": f"reason of day {day}"}
        self.store.runs.create(a_run(name, status=status, **(known | fields)))

    def notify(self, day: float, *teams: Team) -> list[str]:
        """The subjects that this pass sent."""
        before = len(self.sent)
        this = Pass(self.store, self.send, "http://af", self.lines.append, T0 + day * DAY)
        self.last = notify(this, teams or (VISION,))
        return [message.subject for _, message in self.sent[before:]]

    def send(self, team: Team, message: Message) -> None:
        if self.fails:
            raise ConnectionError("mail server is away")
        self.sent.append((team.name, message))
