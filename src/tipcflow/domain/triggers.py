"""Names of what started a run (`Run.trigger`) that other code refers to."""

CONFIRM = "confirm"
BISECT = "bisect"
AB = "ab"
SCALING = "scaling"
# Runs outside of a chain's sequence of runs: a confirm run repeats a run's steps, a bisection tests older commits,
# an A/B comparison two versions in turn. The newest of them is not the state of the chain.
SIDE_RUNS = (CONFIRM, BISECT, AB)
# Triggers of runs that other DAG runs start. A user who could choose them would be judged by other rules: the
# comparisons of a confirm run are shown only, a bisection's run leaves steps out, and the DAGs `weekly` and
# `pull_request` would report a run that they did not start.
RESERVED = frozenset({*SIDE_RUNS, SCALING, "auto", "github", "weekly"})
