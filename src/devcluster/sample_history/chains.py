"""The 60 chains of the sample history, and the clusters that they ran on."""

from dataclasses import dataclass

from tipcflow.domain.run.names import ChainName

V100, A100, CPU = "generated-v100", "generated-a100", "generated-cpu"
ENVIRONMENTS = {
    V100: "gpu/8x-tesla-v100/1-nodes/8-ranks/driver-535/cuda-12.6",
    A100: "gpu/8x-a100/1-nodes/8-ranks/driver-550/cuda-12.6",
    CPU: "cpu/xeon-8280-56/1-nodes/2-ranks",
}
NODES = {
    V100: tuple(f"generated-v100-{number}" for number in range(1, 6)),
    A100: tuple(f"generated-a100-{number}" for number in range(1, 3)),
    CPU: tuple(f"generated-cpu-{number}" for number in range(1, 4)),
}
# How much faster a training step is than on a V100.
SPEED = {V100: 1.0, A100: 0.55, CPU: 6.0}
_CLAS = (
    "ResNet18 ResNet50 ResNet101 ResNet152 ResNeXt50 SE_ResNet50 DenseNet121 DenseNet201 VGG16 VGG19 AlexNet "
    "SqueezeNet InceptionV3 InceptionV4 Xception41 MobileNetV1 MobileNetV2 MobileNetV3_small MobileNetV3_large "
    "ShuffleNetV2 EfficientNetB0 GhostNet SwinTransformer_tiny ViT_base"
)
_DET = (
    "YOLOv3 YOLOv3_MobileNet PPYOLO PPYOLOE_s PPYOLOE_l PicoDet FasterRCNN MaskRCNN CascadeRCNN SSD RetinaNet "
    "FCOS SOLOv2 DETR"
)
_NLP = "BERT_base BERT_large ERNIE3_base RoBERTa ALBERT ELECTRA GPT2 GPT3_small T5_small BART UIE BiLSTM_CRF"
_OCR = "DB_res50 DB_mobile EAST SAST PSENet CRNN SVTR SRN ABINet PicoDet_layout"
_SUITES = {
    "generated_clas": (_CLAS, "top1", 0.76, 0.11),
    "generated_det": (_DET, "mAP", 0.39, 0.31),
    "generated_nlp": (_NLP, "accuracy", 0.87, 0.24),
    "generated_ocr": (_OCR, "hmean", 0.82, 0.19),
}
_ON_CPU_TOO = ("MobileNetV3_small", "MobileNetV2", "PicoDet", "CRNN", "DB_mobile", "BiLSTM_CRF")
_ON_A100_TOO = ("ResNet50", "SwinTransformer_tiny", "PPYOLOE_l", "BERT_large", "GPT3_small", "SVTR")


@dataclass(frozen=True)
class SampleChain:
    """A chain.

    Attributes:
        metric, level: name and usual value of its accuracy.
        step_s: usual seconds of a training iteration on a V100.
        clusters: where it runs every week, the first one with legs on GPUs.
        has_tensorrt: whether its nodes have TensorRT.
    """

    suite: str
    model: str
    metric: str
    level: float
    step_s: float
    clusters: tuple[str, ...]
    has_tensorrt: bool

    @property
    def name(self) -> str:
        """`<suite>/<model>/<file>`."""
        return str(ChainName(self.suite, self.model, "train_infer_python"))


def _chain(suite: str, model: str, place: int) -> SampleChain:
    _, metric, level, step_s = _SUITES[suite]
    others = tuple(cluster for cluster, models in ((CPU, _ON_CPU_TOO), (A100, _ON_A100_TOO)) if model in models)
    return SampleChain(
        suite=suite,
        model=model,
        metric=metric,
        level=level - 0.01 * (place % 7),
        step_s=step_s * (0.6 + 0.13 * (place % 9)),
        clusters=(V100, *others),
        has_tensorrt=place % 6 != 5,
    )


CHAINS = tuple(
    _chain(suite, model, place)
    for suite, (models, *_) in _SUITES.items()
    for place, model in enumerate(models.split())
)
