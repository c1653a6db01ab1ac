"""Names of what started a run (`Run.trigger`) that other code refers to."""

CONFIRM = "confirm"
BISECT = "bisect"
AB = "ab"
SCALING = "scaling"
# Runs outside of a chain's sequence of runs: a confirm run repeats a run's steps, a bisection tests older commits,
# an A/B comparison two versions in turn. The newest of them is not the state of the chain.
SIDE_RUNS = (CONFIRM, BISECT, AB)
