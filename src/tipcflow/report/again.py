"""How a run is done again from the command line."""

import shlex

from tipcflow.domain import Plan, Run

# How a run says that the folder that it tested was not as its commit.
LOCAL = "+local"


def again(run: Run, plan: Plan | None) -> str:
    """The `tipcflow run` that asks for the same; '' for a run that ended before it had a plan.

    A run of a suite's folder as it was (no commit, or one with local changes) is asked for without a ref: the
    folder may have changed since.
    """
    if plan is None:
        return ""
    commit = "" if run.suite_commit.endswith(LOCAL) else run.suite_commit
    options = [
        *("--suite", run.suite, "--mode", run.mode, "--cluster", run.cluster),
        *(("--suite-ref", commit) if commit else ()),
        *(("--seed", str(run.seed)) if run.seed is not None else ()),
        *(("--repeats", str(plan.repeats)) if plan.repeats > 1 else ()),
        *(("--diagnose",) if plan.diagnose else ()),
        *(("--compat", run.compat) if run.compat != "spec" else ()),
    ]
    return shlex.join(["tipcflow", "run", plan.params_file, *options])
