"""Documentation of a chain's DAG and its tasks in Airflow's UI."""

TASKS = {
    "resolve": """Reads the suite at the tested ref, makes the plan and stores both; all later tasks use that plan. A
wrong param, ref or file fails here as `config_error`, before anything starts. **If it fails**: the log names file, line
and key.""",
    "acquire": """Leases all slots of the run, all or none, then inspects every node and copies the suite's code to it.
Defers while another run holds a slot. **If it fails**: a node is unreachable or lacks a requirement; the log names the
node and the fix.""",
    "prepare": """Runs the suite's prepare script on this node (data and weights). **If it fails**: see this task's log.""",
    "train": """This node's part of the training. All nodes start and stop together. The log streams the node's training
output. **If it fails**: the log names the node that caused the failure; on the other nodes it says that they were
stopped. Clearing the task of one node reruns the training on all nodes.""",
    "eval": "Evaluates the trained weights on the first node.",
    "export": "Exports the trained weights to an inference model on the first node.",
    "infer_cpu": """Runs all CPU legs in sequence: with and without oneDNN, by precision, threads and batch size. A failed
leg does not stop the others.""",
    "infer_gpu": """Runs all GPU legs in sequence: with and without TensorRT, by precision and batch size. Skipped if the
cluster has no GPU; these legs are `not_run`.""",
    "collect": """Gives every step a status: closes orphaned attempts and records why steps were not started. Always
runs.""",
    "release": "Stops remaining processes of the run on every node and releases its slots. Always runs.",
    "judge": """Evaluates all checks, stores the results and logs them, worst first. A suspected regression is re-measured
by a run of DAG `confirm`; this task defers until it finishes, then evaluates again. The log names the confirm run and
the deadline.""",
    "verdict": """Sets the run's status and writes the certificate. **Fails if and only if the run's exit code is
non-zero**; the reason is the last line of the log and on the page *Certification*.""",
}


def chain_doc(name: str, file: str, variants: tuple[str, ...]) -> str:
    """Return the documentation of a chain's DAG, in Markdown."""
    listed = (
        "\n".join(f"* `{variant}`" for variant in variants) or "* (those of the params file at the tested ref)"
    )
    return f"""### {name}

Certifies one model chain: **train → evaluate → export → inference on CPU and GPU → checks → certificate**.

Params file: `{file}`. Variants:

{listed}

**Run it**: press *Trigger* and choose mode, suite ref and cluster, or call `tipcflow trigger {name} --mode … --wait`.

**Results**: the page *Certification* shows the run with its legs, losses and checks. The reason of a failed run is the last
line of task `verdict`. Training output is in the logs of `train`, one task per node.

**Retry**: clear the DAG run (repeats everything), or a task with its downstream tasks. A repeated step gets a new attempt,
and the run gets a new verdict.
"""


CERTIFY_DOC = """### certify

Certifies a params file without a DAG of its own: a model added by a pull request, or a file that is not imported yet. Set
the suite and the path of the file; everything else works as in a chain's DAG.
"""


CONFIRM_DOC = """### confirm

Re-measures a suspected regression before the verdict. Task `judge` of a chain's run starts it and waits for it: **do not
trigger it by hand**. It runs only the suspected steps and legs and their prerequisites, with the same files, on the
cluster's nodes in another order (an evaluation alone: on its own node), and has priority for slots over all other runs.

**If it fails**: the re-measurement is missing. The run being confirmed becomes `unconfirmed` with this run's reason, or
`failed` if the code failed in this run. A slow confirm run is not a failure: the run being confirmed (named in the
note) evaluates the numbers.
"""
