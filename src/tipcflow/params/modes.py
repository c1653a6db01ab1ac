"""The words that a suite's script is started with."""

TRAINING_MODES = ("lite_train_lite_infer", "lite_train_whole_infer", "whole_train_whole_infer")
# The modes of training and inference, which nearly every file has.
MODES = (*TRAINING_MODES, "whole_infer")
KLQUANT, BENCHMARK = "klquant_whole_infer", "benchmark_train"
# Words that a mode table may have.
TABLE_MODES = (*MODES, KLQUANT, BENCHMARK)
# With those of a suite's other scripts.
ALL_MODES = (*TABLE_MODES, "paddle2onnx_infer", "pipeline_infer")
