"""Inference legs that did not infer, or not as declared."""

from tests.support.certify import Site
from tests.support.liars.lie import Lie, both, edit, rewrite

INFER = "deploy/infer.py"
ONEDNN = 'onednn = args.enable_mkldnn == "True"\n'
SCORES = '    print(f"{index}.png\\t" + json.dumps({"class_id": index, "scores": scores}))'
AUTOLOG = """\
[2026/11/15 03:12:45] root INFO: ---------------------- Env info ----------------------
[2026/11/15 03:12:45] root INFO:  OS_version: Ubuntu 20.04
[2026/11/15 03:12:45] root INFO:  CUDA_version: 11.2.152
[2026/11/15 03:12:45] root INFO: ---------------------- Paddle info ----------------------
[2026/11/15 03:12:45] root INFO:  paddle_version: 2.2.0
[2026/11/15 03:12:45] root INFO: ----------------------- Conf info -----------------------
[2026/11/15 03:12:45] root INFO:  runtime_device: cpu
[2026/11/15 03:12:45] root INFO:  ir_optim: True
[2026/11/15 03:12:45] root INFO:  enable_mkldnn: True
[2026/11/15 03:12:45] root INFO:  precision: fp32
[2026/11/15 03:12:45] root INFO:  cpu_math_library_num_threads: 1
[2026/11/15 03:12:45] root INFO: ----------------------- Model info ----------------------
[2026/11/15 03:12:45] root INFO:  model_name: toy
[2026/11/15 03:12:45] root INFO: ----------------------- Data info -----------------------
[2026/11/15 03:12:45] root INFO:  batch_size: 1
[2026/11/15 03:12:45] root INFO:  data_num: 3
[2026/11/15 03:12:45] root INFO: ----------------------- Perf info -----------------------
[2026/11/15 03:12:45] root INFO:  cpu_rss(MB): 312.5, gpu_rss(MB): None, gpu_util: None%
[2026/11/15 03:12:45] root INFO:  total time spent(s): 0.0300
[2026/11/15 03:12:45] root INFO:  preprocess_time(ms): 1.0, inference_time(ms): 9.0, postprocess_time(ms): 0.1
"""
FIRST_LINES = "\n".join(AUTOLOG.splitlines()[:2])


def _old_report(site: Site) -> None:
    (site.suite / "deploy" / "report.txt").write_text(AUTOLOG)
    rewrite(
        site.suite / INFER,
        ONEDNN,
        f"{ONEDNN}if onednn:\n    print(open('deploy/report.txt').read())\n    sys.exit(0)\n",
    )


def _silent_second_attempt(site: Site) -> None:
    """The legs print everything and the second one is killed; tried again, both print nothing."""
    mark = site.suite.parent / "legs-killed-before"
    edit(
        INFER,
        (ONEDNN, f"{ONEDNN}mark = {str(mark)!r}\nif os.path.exists(mark):\n    sys.exit(0)\n"),
        (SCORES, f"{SCORES}\nif onednn:\n    open(mark, 'w').close()\n    os.kill(os.getpid(), 9)\n"),
    )(site)
    site.configure_policy(retries={"killed": 1})


def _drop_a_leg(site: Site) -> None:
    site.edit_params("--enable-mkldnn:False|True", "--enable-mkldnn:False")


LIES = (
    Lie(
        "a silent leg",
        "the leg with oneDNN ends with 0 and prints nothing",
        edit(INFER, (ONEDNN, f"{ONEDNN}if onednn:\n    sys.exit(0)\n")),
        (r"onednn_True|oneDNN",),
        history=False,
    ),
    Lie(
        "both legs silent",
        "no leg prints anything, all end with 0",
        edit(INFER, (ONEDNN, f"{ONEDNN}sys.exit(0)\n")),
        (r"onednn_",),
        history=False,
    ),
    Lie(
        "an old report",
        "the leg with oneDNN prints the AutoLog report of last week",
        _old_report,
        (r"onednn_True|oneDNN",),
        history=False,
    ),
    Lie(
        "a cut report",
        "the leg with oneDNN prints the first lines of an AutoLog report and no predictions",
        edit(
            INFER,
            (
                ONEDNN,
                f"{ONEDNN}if onednn:\n    print({FIRST_LINES!r})\n    sys.exit(0)\n",
            ),
        ),
        (r"onednn_True|oneDNN",),
        history=False,
    ),
    Lie(
        "oneDNN that is off",
        "the leg with oneDNN runs without it and its engine line shows that",
        edit(INFER, ('actual = onednn and args.inject != "pretend@mkldnn"', "actual = False")),
        (r"onednn",),
        history=False,
    ),
    Lie(
        "another precision than declared",
        "the engine runs fp16 in a leg that declares fp32",
        edit(INFER, ("precision={args.precision} ", "precision=fp16 ")),
        (r"precision|fp16",),
        history=False,
    ),
    Lie(
        "no predictions",
        "the legs print their engine and no predictions; earlier runs had them",
        edit(INFER, (SCORES, "    pass")),
        (r"prediction",),
    ),
    Lie(
        "no predictions, no history",
        "the same in the first run of a chain",
        edit(INFER, (SCORES, "    pass")),
        (r"prediction",),
        history=False,
    ),
    Lie(
        "predictions of one leg only",
        "the leg with oneDNN prints its engine and no predictions",
        edit(INFER, (SCORES, f"    if not onednn:\n    {SCORES}")),
        (r"prediction|images",),
        history=False,
    ),
    Lie(
        "predictions of other images",
        "the leg with oneDNN predicts other images than the leg without",
        edit(INFER, ('print(f"{index}.png', 'print(f"{index + 10 * onednn}.png')),
        (r"image|prediction",),
        history=False,
    ),
    Lie(
        "fewer images",
        "the leg with oneDNN predicts one image of three",
        edit(INFER, (SCORES, f"    if onednn and index:\n        continue\n{SCORES}")),
        (r"image|prediction",),
        history=False,
    ),
    Lie(
        "scores that drift",
        "oneDNN changes the scores by 0.01",
        edit(INFER, ('(0.01 if onednn and args.inject == "drift@mkldnn" else 0.0)', "(0.01 if onednn else 0.0)")),
        (r"parity|differ",),
        history=False,
    ),
    Lie(
        "NaN scores",
        "the leg with oneDNN predicts nan",
        edit(
            INFER,
            (
                "    scores[index] = 0.55",
                "    scores = [float('nan')] * 10 if onednn else scores\n"
                "    scores[index] = scores[index] * 0 + 0.55",
            ),
        ),
        (r"nan|finite|parity|prediction",),
        history=False,
    ),
    Lie(
        "one class for all images",
        "the network answers class 0 for every image, in every leg",
        both(
            edit(
                INFER, ("    scores[index] = 0.55", "    scores[0] = 0.55"), ('"class_id": index', '"class_id": 0')
            ),
        ),
        (r"identical scores",),
    ),
    Lie(
        "attempt 2 infers nothing",
        "a leg is killed after all legs printed; in attempt 2 both legs print nothing and end with 0",
        _silent_second_attempt,
        (r"onednn_",),
        history=False,
    ),
    Lie(
        "a leg is dropped",
        "the params file no longer declares oneDNN; earlier runs had that leg",
        _drop_a_leg,
        (r"removed|no longer|dropped", r"leg|onednn_True"),
    ),
    Lie(
        "one image, another class",
        "the network answers class 0 for its only image, all legs class 1: too few classes to compare",
        both(
            edit(
                "tools/export_model.py",
                (
                    'if args.inject != "nothing":\n',
                    'print(\'0.png\\t{"class_id": 0, "scores": [0.9, 0.1]}\')\nif args.inject != "nothing":\n',
                ),
            ),
            edit(
                INFER,
                ("for index in range(3):\n", "for index in range(1):\n"),
                (SCORES, '    print("0.png\\t" + json.dumps({"class_id": 1, "scores": [0.1, 0.9]}))'),
            ),
        ),
        (r"parity\.chain", r"class 1 against class 0"),
        history=False,
    ),
)
