"""What a person reads in Airflow's UI about a DAG and its tasks."""

TASKS = {
    "resolve": """Reads the suite at the ref that is tested, makes the plan, and keeps both: every later task reads
that plan. A wrong param, ref or file ends here as `config_error`; nothing was started. **Red?** The log names file, line
and key.""",
    "acquire": """Leases all slots of the run, all or none, then asks every node what it is and puts the suite's code
there. While somebody else holds a slot it waits deferred. **Red?** A node cannot be reached or lacks something: the log
names it and says how to mend it.""",
    "prepare": """Runs the suite's own prepare script on this node: data and weights. **Red?** See this task's log.""",
    "train": """This node's part of the training. All nodes start together or not at all, and stop together. The log
shows the node's training lines as they come. **Red?** The log names the node that is to blame; a node that only followed
says so. Clearing one node's task runs the whole gang again.""",
    "eval": "Evaluates the trained weights on the first node.",
    "export": "Exports the trained weights to an inference model on the first node.",
    "infer_cpu": """All CPU legs, one after the other: with and without oneDNN, by precision, threads and batch size. A leg
that fails does not stop the others.""",
    "infer_gpu": """All GPU legs, one after the other: with and without TensorRT, by precision and batch size. Skipped
when the cluster has no GPU: then those legs are `not_run`.""",
    "collect": """Gives every step a status: closes what nobody closed, says why what never started did not. Runs whatever
happened before.""",
    "release": "Lists every node, ends what is left of the run there, gives its slots back. Runs whatever happened before.",
    "judge": """Asks every check and stores the answers; they stand in the log, the worst first. Does a number look like a
regression, it is measured once more by a run of the DAG `confirm`; this task waits for it deferred, then asks again. Its
log says what is waited for, and until when.""",
    "verdict": """Gives the run its status and writes the certificate. **Red exactly when the run is not well**; the
reason is the last line of the log, and on the page *Certification*.""",
}


def chain_doc(name: str, file: str, variants: tuple[str, ...]) -> str:
    """The documentation of a chain's DAG, Markdown."""
    listed = (
        "\n".join(f"* `{variant}`" for variant in variants) or "* (those of the params file at the tested ref)"
    )
    return f"""### {name}

Certifies one model chain: **train → evaluate → export → inference on CPU and GPU → checks → certificate**.

Params file: `{file}`. Variants:

{listed}

**Run it**: *Trigger*, choose mode, suite ref and cluster; or `tipcflow trigger {name} --mode … --wait`.

**Where to look**: the page *Certification* shows the run with its legs, losses and checks. The reason of a red run is the
last line of the task `verdict`. Training lines are in the logs of `train`, one task per node.

**To try again**: clear the DAG run (everything anew), or a task with its downstream tasks; a step that runs again gets a
new attempt, and the run is judged again.
"""


CERTIFY_DOC = """### certify

Certifies a params file that has no DAG of its own: a model that a pull request adds, or a file that nobody has imported
yet. Give its suite and the file's path; everything else is as in a chain's DAG.
"""


CONFIRM_DOC = """### confirm

Measures once more what looks like a regression, before it is one. The task `judge` of a chain's run starts it and waits for
its end: **nobody needs to trigger it by hand**. It does only the steps and legs in doubt and what they need, with the same
files, on the cluster's nodes in another order (an evaluation alone: on its own node), and gets its slots before all others.

**Red?** The number could not be measured again: the run that is confirmed is `unconfirmed` with this run's reason, or
`failed` when the code failed in this run. A confirm run that is itself slower is no failure: what its numbers mean is said by
the run that it confirms (its note names it).
"""
