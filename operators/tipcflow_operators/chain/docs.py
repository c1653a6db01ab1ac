"""Documentation of a chain's DAG and its tasks in Airflow's UI."""

TASKS = {
    "resolve": """Reads the suite at the tested ref, makes the plan and stores both; all later tasks use that plan. An
invalid param, ref or file ends with `config_error` before anything starts. **Failed?** The log has file, line and key.""",
    "acquire": """Leases all slots of the run, or none; then collects facts from every node and copies the suite's code. While
another run holds a slot, the task is deferred. **Failed?** A node is unreachable or does not meet a requirement; the log names the requirement and the fix.""",
    "prepare": """Runs the suite's prepare script on this node: data and weights. **Failed?** See the log of this task.""",
    "train": """Runs this node's part of the training. All nodes start together or not at all, and stop together. The task streams the node's
training log. **Failed?** The log names the root cause; collateral failures are marked as such. Clearing one node's
task reruns the whole gang.""",
    "eval": "Evaluates the trained weights on the first node.",
    "export": "Exports the trained weights to an inference model on the first node.",
    "infer_cpu": """Runs all CPU legs in sequence: with and without oneDNN, by precision, threads and batch size. A failed leg
does not stop the others.""",
    "infer_gpu": """Runs all GPU legs in sequence: with and without TensorRT, by precision and batch size. Skipped if the cluster
has no GPU; these legs are `not_run`.""",
    "collect": """Sets the status of every step: closes orphaned attempts and records why steps were not started. Always
runs.""",
    "release": "Lists tipcflow's processes on every node, ends the run's processes, and releases the run's slots. Always runs.",
    "judge": """Evaluates all checks and stores the results; the log lists them, worst first. A suspected regression is
re-measured by a run of the DAG `confirm`: the task defers until that run ends, then evaluates the checks again. The log shows the confirm
run and the deadline.""",
    "verdict": """Sets the run's status and writes the certificate. **Fails if and only if the run fails**; the reason is in the
last line of the log and on the page *Certification*.""",
}


def chain_doc(name: str, file: str, variants: tuple[str, ...], problem: str = "") -> str:
    """The documentation of a chain's DAG as Markdown.

    Args:
        problem: why no chain of the suite can run; '' if they can.
    """
    listed = (
        "\n".join(f"* `{variant}`" for variant in variants) or "* (those of the params file at the tested ref)"
    )
    broken = f"**Each run is a `config_error` until this is fixed:**\n\n```\n{problem}\n```\n\n" if problem else ""
    return f"""### {name}

{broken}Certifies one model chain: **train → evaluate → export → inference on CPU and GPU → checks → certificate**.

Params file: `{file}`. Variants:

{listed}

**Run**: *Trigger* with mode, suite ref and cluster, or `tipcflow trigger {name} --mode … --wait`.

**Results**: the page *Certification* shows the run with its legs, losses and checks. The log of the task `verdict` ends with the
reason of a failed run. Training lines are in the logs of `train`, one task per node.

**Retry**: clear the DAG run (restarts everything), or a task with its downstream tasks; each rerun step gets a new attempt, and
the checks are evaluated again.
"""


CERTIFY_DOC = """### certify

Certifies a params file without a DAG: a model that a pull request adds, or a file that is not imported yet. Set its suite and
the file's path; everything else works as in a chain's DAG.
"""


CONFIRM_DOC = """### confirm

Re-measures a suspected regression. The task `judge` of a chain's run starts this DAG and waits for the result: **do not
trigger the DAG manually**. A confirm run repeats only the suspected steps and legs and their dependencies, with the same files, on the cluster's nodes in another order
(evaluations alone: on their own node), and gets slots before all other runs.

**Failed?** The value was not measured again. The confirmed run is `unconfirmed` with this run's reason, or `failed` if the code
failed in this run. A slower confirm run is not a failure: its values are evaluated in the run that it confirms (named in its note).
"""
