"""The command that reproduces a run."""

import shlex

from tipcflow.domain import Plan, Run

# Suffix of a run's commit if the working tree had local changes.
LOCAL = "+local"


def rerun_command(run: Run, plan: Plan | None) -> str:
    """The `tipcflow run` command with the same options; '' for a run that ended before it had a plan.

    The command of a run of a working tree (no commit, or local changes) has no ref: the folder may have
    changed since.
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
