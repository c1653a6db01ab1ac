"""Weights, exports and evaluations that are not there, are empty or are not of this run."""

from tests.support.certify import Site
from tests.support.framework.exported_model import write_model
from tests.support.liars.lie import Lie, both, edit
from tests.support.liars.training import TRAIN

WRITE = 'file.write("" if what == "empty" else f"weights of seed {args.seed}\\n")'
EXPORT = "tools/export_model.py"
PRETRAINED = 'if not os.path.exists(args.pretrained):\n    sys.exit(f"no weights at {args.pretrained}")\n'
WRITTEN = """\
if args.inject != "nothing":
    with (
        open(args.pretrained) as weights,
        open(os.path.join(args.save_inference_dir, "inference.pdiparams"), "w") as out,
    ):
        out.write(weights.read())
"""
COPIED = """\
for name in os.listdir("plain"):
    shutil.copyfile(os.path.join("plain", name), os.path.join(args.save_inference_dir, name))
"""
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


def _compressed(trainer: str, export: str, precision: str) -> object:
    """The params file also trains a compressed variant, and all exports write the same model in fp32."""

    def apply(site: Site) -> None:
        operators = [("conv2d", ["image", "w"], ["a"]), ("relu", ["a"], ["b"]), ("matmul_v2", ["b", "v"], ["c"])]
        tensors = [("float32", (4, 3), [0.5, -0.25, 1.0] * 4), ("float32", (4, 2), [0.125, 2.0] * 4)]
        write_model(site.suite / "plain", operators, tensors, old=False)
        edit(EXPORT, ("import os\n", "import os\nimport shutil\n"), (WRITTEN, COPIED))(site)
        for old, new in (
            ("trainer:norm_train", f"trainer:norm_train|{trainer}"),
            (f"{trainer}:null", f"{trainer}:train.py"),
            (f"{export}:null", f"{export}:{EXPORT}"),
            ("--precision:fp32", f"--precision:{precision}"),
        ):
            site.edit_params(old, new)

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
    Lie(
        "quantized in name only",
        "the params file trains a quantized variant, whose export is the fp32 model",
        _compressed("pact_train", "quant_export", "fp32|int8"),
        (r"ran.compression", r"declared: quantized", r"fp32"),
        history=False,
    ),
    Lie(
        "pruned in name only",
        "the params file trains a pruned variant, whose export has all parameters",
        _compressed("fpgm_train", "fpgm_export", "fp32"),
        (r"ran.compression", r"declared: pruned", r"20 parameters instead of 20"),
        history=False,
    ),
)
