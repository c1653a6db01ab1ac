"""Names of what started a run (`Run.trigger`) that other code refers to."""

CONFIRM = "confirm"
BISECT = "bisect"
# Runs outside of a chain's sequence of runs: a confirm run repeats a run's steps, a bisection tests older commits.
# The newest of them is not the state of the chain.
SIDE_RUNS = (CONFIRM, BISECT)
