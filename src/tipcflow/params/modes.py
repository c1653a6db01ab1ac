"""Modes: the arguments that suites' scripts are started with."""

TRAINING_MODES = ("lite_train_lite_infer", "lite_train_whole_infer", "whole_train_whole_infer")
# The modes of training and inference, which nearly every file supports.
MODES = (*TRAINING_MODES, "whole_infer")
KLQUANT, BENCHMARK = "klquant_whole_infer", "benchmark_train"
# Modes that a mode table may contain.
TABLE_MODES = (*MODES, KLQUANT, BENCHMARK)
# All modes, including those of suites' other scripts.
ALL_MODES = (*TABLE_MODES, "paddle2onnx_infer", "pipeline_infer")
