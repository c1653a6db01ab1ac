"""The table of all commands, in the order of `tipcflow --help`. A new command is a new row."""

from tipcflow.cli.commands.lazy import LazyCommand

_SET_UP = "Set up"
_RUN = "Run"
_RESULTS = "Look at results"
_JUDGE = "Judge"
_ADMINISTER = "Administer"
# A chain of the sample suite, which every installation has.
_CHAIN = "mobilenet_v3_small/mobilenet_v3_small/train_infer_python"
_PARAMS = "test_tipc/configs/mobilenet_v3_small/train_infer_python.txt"

COMMANDS = (
    LazyCommand(
        "demo",
        "tipcflow.cli.demo.command:demo",
        _SET_UP,
        "Certify a real model on two local nodes, in Airflow.",
        "tipcflow demo --cli",
    ),
    LazyCommand(
        "init",
        "tipcflow.cli.init.command:init",
        _SET_UP,
        "Propose the file of a suite, and list what is unclear.",
        "tipcflow init https://github.com/PaddlePaddle/PaddleClas",
    ),
    LazyCommand(
        "import",
        "tipcflow.cli.importing.command:import_suite",
        _SET_UP,
        "Copy a suite's params files and generate its DAG file.",
        "tipcflow import ~/PaddleClas --suite PaddleClas",
    ),
    LazyCommand(
        "suites",
        "tipcflow.cli.suites_list.command:suites",
        _SET_UP,
        "List the suites, and what was verified with each.",
        "tipcflow suites PaddleOCR",
    ),
    LazyCommand(
        "lint",
        "tipcflow.cli.lint:lint",
        _SET_UP,
        "Report what a suite's script would drop or misread.",
        "tipcflow lint ~/PaddleClas/test_tipc/configs/ResNet --suite PaddleClas",
    ),
    LazyCommand(
        "dialect",
        "tipcflow.cli.dialect.command:app",
        _SET_UP,
        "Dialects: how params files are read.",
        "tipcflow dialect list",
        {
            "list": "tipcflow dialect list",
            "check": "tipcflow dialect check Mine test_tipc/configs/a/train_infer_python.txt",
        },
    ),
    LazyCommand(
        "plan",
        "tipcflow.cli.plan.command:plan",
        _RUN,
        "Show the plan of a run: steps, nodes, legs, commands.",
        f"tipcflow plan {_PARAMS} --suite mobilenet_v3_small --mode lite_train_lite_infer --cluster local",
    ),
    LazyCommand(
        "run",
        "tipcflow.cli.run:run",
        _RUN,
        "Run and certify a chain on a cluster.",
        f"tipcflow run {_PARAMS} --suite mobilenet_v3_small --mode lite_train_lite_infer --cluster local",
    ),
    LazyCommand(
        "trigger",
        "tipcflow.cli.trigger.command:trigger",
        _RUN,
        "Run chains in Airflow.",
        f"tipcflow trigger {_CHAIN} --mode lite_train_lite_infer --cluster local --wait",
    ),
    LazyCommand(
        "select",
        "tipcflow.cli.github.select:select",
        _RUN,
        "Show the chains that a change concerns, and why.",
        "tipcflow select my-repository --head my-branch --base main --explain",
    ),
    LazyCommand(
        "ab",
        "tipcflow.cli.ab.command:ab",
        _RUN,
        "Compare two versions by pairs of runs.",
        f"tipcflow ab {_PARAMS} --a v1.0 --b main --suite mobilenet_v3_small --mode lite_train_lite_infer "
        "--cluster local",
    ),
    LazyCommand(
        "bisect",
        "tipcflow.cli.bisect.command:bisect",
        _RUN,
        "Find the commit or build that made a chain worse.",
        f"tipcflow bisect {_PARAMS} batch_cost --good v1.0 --bad main --suite mobilenet_v3_small --mode "
        "lite_train_lite_infer --cluster local",
    ),
    LazyCommand(
        "runs",
        "tipcflow.cli.runs:runs",
        _RESULTS,
        "List runs, newest first.",
        "tipcflow runs --status failed --limit 50",
    ),
    LazyCommand(
        "show",
        "tipcflow.cli.show.command:show",
        _RESULTS,
        "Show a run: status, reason, steps, legs, checks, nodes.",
        "tipcflow show latest",
    ),
    LazyCommand(
        "logs",
        "tipcflow.cli.logs:logs",
        _RESULTS,
        "Print the logs of a step, or list the log files of a run.",
        "tipcflow logs latest train",
    ),
    LazyCommand(
        "history",
        "tipcflow.cli.history:history",
        _RESULTS,
        "Show a metric over the runs of a chain.",
        "tipcflow history mobilenet_v3_small batch_cost --weeks 8",
    ),
    LazyCommand(
        "chain",
        "tipcflow.cli.chain.command:chain",
        _RESULTS,
        "Show the metrics of a chain over its runs, with limits.",
        "tipcflow chain mobilenet_v3_small --last 20",
    ),
    LazyCommand(
        "compare",
        "tipcflow.cli.compare.command:compare",
        _RESULTS,
        "Compare two or three runs: what differs, metrics, legs, steps.",
        "tipcflow compare latest 20261123T",
    ),
    LazyCommand(
        "today",
        "tipcflow.cli.overview.today:today",
        _RESULTS,
        "Show the state of all chains, new problems first.",
        "tipcflow today",
    ),
    LazyCommand(
        "coverage",
        "tipcflow.cli.overview.coverage:coverage",
        _RESULTS,
        "Show what no run proves: chains, legs, targets.",
        "tipcflow coverage",
    ),
    LazyCommand(
        "flaky",
        "tipcflow.cli.overview.flaky:flaky",
        _RESULTS,
        "Show equal runs with different outcomes.",
        "tipcflow flaky",
    ),
    LazyCommand(
        "scaling",
        "tipcflow.cli.scaling.command:app",
        _RESULTS,
        "Show or measure throughput and speed-up over devices.",
        "tipcflow scaling table 1n1g.log 4n8g.log --batch-size-per-device 128",
        {
            "table": "tipcflow scaling table logs/ --batch-size-per-device 128",
            "run": "tipcflow scaling run test_tipc/benchmark/mobilenet_v3_small/train_benchmark.txt"
            " --suite mobilenet_v3_small_benchmark --cluster local --batch-size-per-device 4",
        },
    ),
    LazyCommand(
        "export",
        "tipcflow.cli.export:export",
        _RESULTS,
        "Export a run's measurements or inference legs as CSV.",
        "tipcflow export latest samples --output samples.csv.gz",
    ),
    LazyCommand(
        "parse",
        "tipcflow.cli.parse.command:parse",
        _RESULTS,
        "Summarize logs: metrics, losses, AutoLog reports.",
        "tipcflow parse train.log",
    ),
    LazyCommand(
        "certificate",
        "tipcflow.cli.certificate:app",
        _JUDGE,
        "Show and verify certificates of runs.",
        "tipcflow certificate show latest",
        {
            "show": "tipcflow certificate show latest --format markdown",
            "verify": "tipcflow certificate verify latest",
        },
    ),
    LazyCommand(
        "judge",
        "tipcflow.cli.judge.command:judge",
        _JUDGE,
        "Evaluate stored runs, or a series, with another policy.",
        "tipcflow judge latest --policy weekly",
    ),
    LazyCommand(
        "gate",
        "tipcflow.cli.gate:gate",
        _JUDGE,
        "Report the smallest change detected and false alerts.",
        "tipcflow gate mobilenet_v3_small",
    ),
    LazyCommand(
        "detect",
        "tipcflow.cli.detect:detect",
        _JUDGE,
        "Detect change points in any series of measurements.",
        "tipcflow detect --series speed.jsonl --policy weekly",
    ),
    LazyCommand(
        "baseline",
        "tipcflow.cli.baseline:app",
        _JUDGE,
        "Accept, pin or reset what runs are compared with.",
        "tipcflow baseline show latest",
        {
            "show": "tipcflow baseline show latest",
            "accept": "tipcflow baseline accept latest --because 'the new kernel is slower, agreed'",
            "pin": "tipcflow baseline pin latest --because 'release 3.3'",
            "reset": "tipcflow baseline reset latest --because 'new driver'",
        },
    ),
    LazyCommand(
        "golden",
        "tipcflow.cli.golden:app",
        _JUDGE,
        "Record predictions that later runs must repeat.",
        "tipcflow golden show latest",
        {
            "record": "tipcflow golden record latest --because 'checked by hand'",
            "show": "tipcflow golden show latest",
        },
    ),
    LazyCommand(
        "doctor",
        "tipcflow.cli.doctor.command:doctor",
        _ADMINISTER,
        "Check this machine and a cluster's nodes.",
        "tipcflow doctor --cluster lab",
    ),
    LazyCommand(
        "nodes",
        "tipcflow.cli.nodes.command:app",
        _ADMINISTER,
        "Show node health, leases and queue; add and clean nodes.",
        "tipcflow nodes --cluster lab",
        {
            "add": "tipcflow nodes add root@10.0.0.7 --cluster lab",
            "reap": "tipcflow nodes reap --cluster lab",
        },
    ),
    LazyCommand(
        "local",
        "tipcflow.cli.local.nodes:app",
        _ADMINISTER,
        "Start and stop local nodes.",
        "tipcflow local up --nodes 2",
        {"up": "tipcflow local up --nodes 2", "down": "tipcflow local down"},
    ),
    LazyCommand(
        "airflow",
        "tipcflow.cli.local.airflow:app",
        _ADMINISTER,
        "Start and stop a local Airflow.",
        "tipcflow airflow up --port 8080",
        {"up": "tipcflow airflow up --port 8080", "down": "tipcflow airflow down"},
    ),
    LazyCommand(
        "status",
        "tipcflow.cli.local.status:status",
        _ADMINISTER,
        "Show local nodes and the local Airflow.",
        "tipcflow status --json",
    ),
    LazyCommand(
        "db",
        "tipcflow.cli.db:app",
        _ADMINISTER,
        "Upgrade the metrics database, roll up old samples.",
        "tipcflow db upgrade",
        {
            "upgrade": "tipcflow db upgrade",
            "current": "tipcflow db current",
            "rollup": "tipcflow db rollup --older-than 90 --dry-run",
        },
    ),
    LazyCommand(
        "github",
        "tipcflow.cli.github.doctor:app",
        _ADMINISTER,
        "Check the GitHub App of this deployment.",
        "tipcflow github doctor",
        {"doctor": "tipcflow github doctor my-repository --no-ping"},
    ),
)
