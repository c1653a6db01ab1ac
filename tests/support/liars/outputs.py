"""Weights, exports and evaluations that are not there, are empty or are not of this run."""

from tests.support.certify import Site
from tests.support.liars.lie import Lie, both, edit
from tests.support.liars.training import TRAIN

WRITE = 'file.write("" if what == "empty" else f"weights of seed {args.seed}\\n")'
EXPORT = "tools/export_model.py"
PRETRAINED = 'if not os.path.exists(args.pretrained):\n    sys.exit(f"no weights at {args.pretrained}")\n'
EXPORTED = 'os.path.join(args.save_inference_dir, "inference.pdiparams")'


def _no_weights_check(site: Site) -> None:
    edit(EXPORT, (PRETRAINED, ""))(site)


def _shipped(path: str, text: str) -> object:
    """The suite's folder holds the file already."""

    def apply(site: Site) -> None:
        file = site.suite / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return apply


LIES = (
    Lie(
        "no weights",
        "the training ends with 0 and writes no weights; export and evaluation pretend to read them",
        both(
            edit(
                TRAIN,
                (
                    f"        {WRITE}\n",
                    "        pass\n    os.remove(file.name)\n",
                ),
            ),
            _no_weights_check,
        ),
        (r"pdparams|weights",),
        history=False,
    ),
    Lie(
        "empty weights",
        "the weights file is written with 0 bytes",
        edit(TRAIN, (WRITE, "pass")),
        (r"pdparams|weights", r"0 bytes|empty"),
        history=False,
    ),
    Lie(
        "old weights",
        "the suite ships weights and the training writes none",
        both(
            edit(
                TRAIN,
                (
                    'with open(os.path.join(args.output_dir, "latest.pdparams"), "w") as file:',
                    'with open(os.devnull, "w") as file:',
                ),
            ),
            _shipped("output/latest.pdparams", "weights of last week\n"),
        ),
        (r"pdparams|weights",),
        history=False,
    ),
    Lie(
        "no export",
        "the export ends with 0 and writes nothing",
        edit(EXPORT, ('if args.inject != "nothing":', "if False:")),
        (r"export|inference",),
        history=False,
    ),
    Lie(
        "old export",
        "the folder holds an export before the step starts, and the export writes nothing",
        both(
            edit(
                TRAIN,
                (
                    WRITE,
                    f"{WRITE}\n"
                    "        with open(os.path.join(args.output_dir, 'inference.pdiparams'), 'w') as o:\n"
                    "            o.write('exported before the training')",
                ),
            ),
            edit(EXPORT, ('if args.inject != "nothing":', "if False:")),
        ),
        (r"pdiparams|export", r"older|update"),
        history=False,
    ),
    Lie(
        "empty export",
        "the exported parameters have 0 bytes",
        edit(EXPORT, ("out.write(weights.read())", "pass")),
        (r"pdiparams|export", r"0 bytes|empty"),
        history=False,
    ),
    Lie(
        "evaluation prints nothing",
        "the evaluation ends with 0 and prints nothing; earlier runs had top1 and top5",
        edit(TRAIN, ('    print(" * Acc@1 0.875 Acc@5 1.000")\n', "")),
        (r"eval", r"top1|metric|accuracy"),
    ),
    Lie(
        "evaluation prints nothing, no history",
        "the same in the first run of a chain",
        edit(TRAIN, ('    print(" * Acc@1 0.875 Acc@5 1.000")\n', "")),
        (r"eval", r"metric|accuracy|nothing"),
        history=False,
    ),
    Lie(
        "evaluation is nan",
        "the evaluation prints Acc@1 nan",
        edit(TRAIN, ("Acc@1 0.875", "Acc@1 nan")),
        (r"top1|eval", r"nan|finite"),
        history=False,
    ),
    Lie(
        "half an evaluation",
        "the evaluation prints top5 and no top1; earlier runs had both",
        edit(TRAIN, ("Acc@1 0.875 ", "")),
        (r"top1",),
    ),
)
