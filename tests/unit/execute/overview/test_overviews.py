"""The overviews of a small history, and of a generated one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import INFER, T0, a_run, open_store, record_run

from devcluster.sample_history.fill import fill
from tipcflow.cli.overview.coverage import coverage_lines
from tipcflow.cli.overview.flaky import flaky_lines
from tipcflow.cli.overview.today import today_lines
from tipcflow.config.run_documents import SuiteDocument
from tipcflow.config.suite import Suite
from tipcflow.domain import CheckResult, Status
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.domain.run_documents import QuarantinedDocument
from tipcflow.execute.overview.changes import Wanted, load_changes
from tipcflow.execute.overview.coverage import load_coverage
from tipcflow.execute.overview.flaky import load_flaky
from tipcflow.execute.overview.matrix import Grid, load_matrix
from tipcflow.execute.overview.today import Scope, load_today
from tipcflow.execute.overview.versions import load_versions
from tipcflow.store import Store

DAY = 86_400
NOW = T0 + 10 * DAY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "own.db") as store:
        yield store


def put(store: Store, day: int, status: Status, chain: str = "s/alpha/a", **fields: object) -> None:
    known = {"chain": chain, "suite": chain.split("/")[0], "framework": f"paddle {day}", "suite_commit": "c" * 40}
    known |= {"created_at": T0 + day * DAY, "ended_at": T0 + day * DAY + 9, "nodes": (f"node-{day}",)}
    store.runs.create(a_run(f"{chain.split('/')[1]}-{day}", status=status, **(known | fields)))


def test_new_problems_list_changes_since_the_last_green_run(store: Store) -> None:
    put(store, 1, Status.PASS)
    put(store, 9, Status.REGRESSION, suite_commit="d" * 40)
    put(store, 1, Status.PASS, "s/beta/a")
    put(store, 2, Status.FAILED, "s/beta/a")
    put(store, 9, Status.FAILED, "s/beta/a")
    put(store, 1, Status.PASS, "s/lost/a")
    put(store, 9, Status.INFRA_FAILURE, "s/lost/a")
    today = load_today(store, now=NOW)
    assert [(each.chain, each.suspects) for each in today.new] == [
        ("s/alpha/a", ("framework 1 -> 9", "suite ccccccc -> ddddddd")), ("s/lost/a", ()),
    ]  # fmt: skip
    assert [(each.chain, each.first_bad, each.last_good) for each in today.known] == [
        ("s/beta/a", "beta-2", "beta-1")
    ]
    assert [build.sentence for build in today.builds] == [
        "0 of 3 chains pass on paddle 9; 1 regression (new), 1 broken, 1 infrastructure failure (new)"
    ]
    assert len(load_today(store, now=NOW, new_days=9).new) == 3


def test_quarantined_runs_are_counted_next_to_the_passing_ones(store: Store, tmp_path: Path) -> None:
    put(store, 9, Status.PASS)
    put(store, 9, Status.PASS, "s/beta/a")
    put(store, 1, Status.PASS, "s/gone/a")
    for run in ("beta-9", "gone-1"):
        store.documents.put(run, QuarantinedDocument(numbers=(1,)))
    today = load_today(store, days=5, now=NOW)
    assert [each.chain for each in today.quarantined] == ["s/beta/a"]
    assert today.builds[0].sentence == "1 of 2 chains pass on paddle 9; 1 quarantined"
    assert [line for line in today_lines(today, width=None) if "quarantined" in line or "beta" in line] == [
        "1 of 2 chains pass on paddle 9; 1 quarantined",
        "quarantined (1): `tipcflow quarantine list`",
        "beta-9  s/beta/a on local",
    ]
    matrix = load_matrix(store, now=NOW)
    assert (matrix.models, matrix.passing) == (3, 1)
    coverage = load_coverage(store, tmp_path, now=NOW)
    assert {chain.chain: chain.passing for chain in coverage.chains} == {
        "s/alpha/a": 1,
        "s/beta/a": 0,
        "s/gone/a": 0,
    }
    assert coverage.totals["passing"] == 1


def test_flaky_failure_is_proposed_until_quarantined(store: Store) -> None:
    same = {"framework": "paddle 3", "environment": "cpu"}
    for day in range(4):
        put(store, day, Status.FAILED if day < 2 else Status.PASS, **same)
    failure = CheckResult(
        check="parity.onednn",
        status=Status.FAILED,
        reason="class 3 instead of 5",
        step="v/infer",
        values={"max_abs": 0.5, "code": "other_class"},
    )
    for day in range(2):
        store.checks.replace(f"alpha-{day}", [failure])
    overview = load_flaky(store, now=NOW)
    (proposal,) = overview.proposals
    assert (proposal.check, proposal.failed.hits, proposal.failed.runs) == ("parity.onednn", 2, 4)
    text = flaky_lines(overview, width=None)
    assert "50 % (15-85)   4     parity.onednn  alpha-1  s/alpha/a: other_class" in text
    assert proposal.command in text
    assert load_flaky(store, now=NOW, suite="t").proposals == ()
    assert store.quarantines.all() == [], "users decide"
    known = {"chain": "s/alpha/a", "mode": a_run().mode, "environment": "cpu", "check": "parity.onednn"}
    known |= {"step": "v/infer", "signature": proposal.signature, "run": "alpha-1", "failed": 2, "judged": 4}
    decided = {"owner": "kernels", "who": "mia", "why": "bug", "created_at": NOW - 1, "expires_at": NOW + 1}
    store.quarantines.add(Quarantine.model_validate(known | decided), per_day=1)
    assert load_flaky(store, now=NOW).proposals == ()
    assert len(load_flaky(store, now=NOW + 1).proposals) == 1


def test_old_states_are_stale(store: Store) -> None:
    put(store, 1, Status.FAILED)
    put(store, 9, Status.PASS, "s/beta/a")
    today = load_today(store, days=5, now=NOW)
    assert [each.chain for each in today.stale] == ["s/alpha/a"]
    assert (today.problems, today.builds[0].chains) == ((), 1)


@pytest.mark.parametrize(
    ("scope", "chains"),
    [
        (Scope(), ["s/alpha/a", "t/beta/a"]),
        (Scope(suite="t"), ["t/beta/a"]),
        (Scope(chain="ALPHA"), ["s/alpha/a"]),
        (Scope(build="paddle 9"), ["t/beta/a"]),
        (Scope(mode="other"), []),
        (Scope(cluster="other"), []),
    ],
)
def test_today_is_limited_to_a_scope(store: Store, scope: Scope, chains: list[str]) -> None:
    put(store, 8, Status.FAILED)
    put(store, 9, Status.FAILED, "t/beta/a")
    assert sorted(each.chain for each in load_today(store, scope, now=NOW).problems) == chains


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    for chain in ("s/alpha/a", "s/idle/a"):
        (tmp_path / "chains" / chain).parent.mkdir(parents=True)
        (tmp_path / "chains" / f"{chain}.txt").touch()
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / "s.yaml").write_text(
        "suite: s\nreferences:\n  - {model: alpha, metric: top1, target: 0.7, tolerance: 0.1, because: paper}\n"
    )
    (tmp_path / "goldens" / "s" / "alpha").mkdir(parents=True)
    (tmp_path / "goldens" / "s" / "alpha" / "a.lite_train_lite_infer.json").touch()
    return tmp_path


def test_coverage_lists_gaps_of_chains(store: Store, configs: Path) -> None:
    for day in range(5, 10):
        put(store, day, Status.PASS)
    put(store, 1, Status.FAILED, "t/other/a")
    coverage = load_coverage(store, configs, days=5, now=NOW)
    assert {each.chain: each.gaps for each in coverage.chains} == {
        "s/idle/a": ("never run", "no accuracy target"),
        "t/other/a": ("never passed", "not run lately", "no accuracy target", "no golden", "not declared"),
        "s/alpha/a": (),
    }
    assert (coverage.totals["ran"], coverage.totals["passed"], coverage.totals["passing"]) == (2, 1, 1)
    assert [each.chain for each in load_coverage(store, configs, suite="t", now=NOW).chains] == ["t/other/a"]


def test_legs_and_a_short_history_are_counted(store: Store, configs: Path) -> None:
    run = record_run(store, a_run(chain="s/alpha/a", suite="s"))
    store.steps.set_leg(run.id, INFER, "gpu", 0, Status.NOT_RUN, "no GPU")
    (alpha, _) = sorted(load_coverage(store, configs, now=T0 + DAY).chains, key=lambda each: each.chain)
    assert (alpha.legs, alpha.legs_ran, alpha.legs_passed, alpha.not_run) == (3, 2, 2, {"no GPU": 1})
    assert alpha.gaps == ("no history", "legs not run")


def test_a_wrong_file_of_targets_is_reported(store: Store, configs: Path) -> None:
    put(store, 9, Status.PASS)
    (configs / "references" / "s.yaml").write_text("suite: s\nreferenses: []\n")
    (problem,) = load_coverage(store, configs, now=NOW).problems
    assert "s.yaml" in problem
    assert "referenses" in problem


def test_flaky_chains_are_sorted_by_certainty(store: Store) -> None:
    for day in range(1, 9):
        status = Status.FAILED if day % 2 else Status.PASS
        put(store, day, status, "s/often/a", framework="p")
    put(store, 1, Status.PASS, "s/once/a", framework="p")
    put(store, 2, Status.FAILED, "s/once/a", framework="p")
    put(store, 1, Status.PASS, "t/stable/a", framework="p")
    put(store, 2, Status.PASS, "t/stable/a", framework="p")
    flaky = load_flaky(store, now=NOW)
    assert flaky.repeated == 3
    assert [(each.chain, each.disagreeing.hits, each.disagreeing.runs) for each in flaky.chains] == [
        ("s/often/a", 4, 8), ("s/once/a", 1, 2),
    ]  # fmt: skip
    assert (flaky.chains[1].examples[0].red, flaky.chains[1].examples[0].green) == ("once-2", "once-1")
    assert load_flaky(store, suite="t", now=NOW).chains == ()


def test_runs_with_different_suite_files_are_not_equal(store: Store) -> None:
    """`predictions` was added: the passed runs checked less than the failed ones."""
    for day, status in enumerate((Status.PASS, Status.PASS, Status.FAILED, Status.FAILED), 1):
        put(store, day, status, framework="p", nodes=("node",))
        changed = {"seed_argument": "--seed={seed}"} if status is Status.FAILED else {"data_recipe": f"day {day}"}
        store.documents.put(
            f"alpha-{day}", SuiteDocument(Suite(name="s", folder=f"/{day}", dialects=("d",), **changed))
        )
    flaky = load_flaky(store, now=NOW)
    assert (flaky.repeated, flaky.chains, flaky.proposals) == (1, (), ())
    rate = flaky.nodes[0].red_elsewhere_green
    assert rate is not None
    assert rate.hits == 0
    # Of two equal runs, one fails.
    put(store, 5, Status.PASS, framework="p", nodes=("node",))
    store.documents.put("alpha-5", store.documents.of_runs(SuiteDocument, ["alpha-4"])["alpha-4"])
    (chain,) = load_flaky(store, now=NOW).chains
    assert (chain.groups, chain.mixed, chain.disagreeing.hits, chain.disagreeing.runs) == (2, 1, 1, 5)
    assert [(example.red, example.green) for example in chain.examples] == [
        ("alpha-4", "alpha-5"), ("alpha-3", "alpha-5"),
    ]  # fmt: skip


@pytest.mark.slow
def test_sample_history_fills_all_overviews(tmp_path: Path) -> None:
    open_store(tmp_path / "history.db").close()
    url = f"sqlite:///{tmp_path / 'history.db'}"
    fill(url, lambda line: None, now=NOW, weeks=5, chains=20)
    with Store.open(url) as history:
        today = load_today(history, now=NOW)
        assert {each.kind for each in today.new} >= {"regression"}
        assert today.shared[0].change.startswith("framework ")
        assert load_flaky(history, now=NOW).repeated == 20
        assert load_coverage(history, tmp_path, now=NOW).totals["ran"] == 20


def test_suite_whose_framework_no_cluster_has(store: Store, configs: Path) -> None:
    (configs / "suites").mkdir()
    content = "name: s\nfolder: .\ndialects: [models/template]\nframework: torch\n"
    (configs / "suites" / "s.yaml").write_text(content)
    (configs / "clusters").mkdir()
    node = "  - {name: a, address: 192.0.2.1, python: /p, workspace: /w, frameworks: [%s]}\n"
    for name, framework in (("example", "torch"), ("lab", "paddlepaddle"), ("local", "paddlepaddle")):
        (configs / "clusters" / f"{name}.yaml").write_text(f"name: {name}\nnodes:\n{node % framework}")
    put(store, 9, Status.PASS)
    coverage = load_coverage(store, configs, now=NOW)
    (idle, alpha) = coverage.chains
    assert (idle.chain, idle.gaps[:2]) == ("s/idle/a", ("no framework", "never run"))
    assert idle.no_framework == ("cluster lab has no torch", "cluster local has no torch")
    assert coverage.gaps["no framework"] == 1
    # It passes: some cluster without a file here has the framework.
    assert (alpha.chain, alpha.no_framework) == ("s/alpha/a", ())
    shown = "\n".join(coverage_lines(coverage, width=None))
    assert "s/idle/a" in shown
    assert "(cluster lab has no torch; cluster local has no torch)" in shown
    (configs / "clusters" / "local.yaml").write_text(f"name: local\nnodes:\n{node % 'torch'}")
    assert "no framework" not in load_coverage(store, configs, now=NOW).gaps


def test_runs_with_a_path_in_their_chain_are_listed_but_not_counted(store: Store, tmp_path: Path) -> None:
    """Earlier versions stored the path of the suite file of a run with an invalid request."""
    put(store, 8, Status.PASS)
    path = "/tmp/s.yaml"
    chain = f"{path}/tiny/train_infer_python"
    put(store, 8, Status.CONFIG_ERROR, chain, suite=path)
    store.runs.create(
        a_run("newest", status=Status.CONFIG_ERROR, chain=chain, suite=path, created_at=NOW - 9, ended_at=NOW)
    )
    sentence = f"not counted: '{chain}' is not the name of a chain, '<suite>/<model>/<file>' "
    sentence += "(newest run: newest, config_error)"
    coverage = load_coverage(store, tmp_path, now=NOW)
    assert [each.chain for each in coverage.chains] == ["s/alpha/a"]
    assert (coverage.totals["ran"], coverage.problems) == (1, (sentence,))
    matrix = load_matrix(store, now=NOW)
    assert [row.name for row in matrix.rows] == ["s/alpha"]
    assert (matrix.models, matrix.unnamed) == (1, (sentence,))
    assert load_matrix(store, Grid(suite="s"), now=NOW).unnamed == ()
    assert [each.chain for each in load_today(store, Scope(suite=path), now=NOW).new] == [chain]
    assert load_flaky(store, suite="s", now=NOW).chains == ()
    assert load_changes(store, Wanted(suite="s"), now=NOW).rows == ()
    versions = load_versions(store, "paddle 8", suite="s")
    assert [pair.chain for pair in versions.pairs] == ["s/alpha/a"]
