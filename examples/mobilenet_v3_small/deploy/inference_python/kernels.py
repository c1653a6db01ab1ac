"""Which precision oneDNN really computes in, by its own report about each primitive that it executes."""

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import paddle

# Primitives that multiply by weights.
_LAYERS = ("convolution", "inner_product", "matmul")


def layer_kernels(run: Callable[[], object]) -> tuple[int, int] | None:
    """(layers in int8, all layers) that oneDNN executes during a call; None if its library cannot report them.

    oneDNN prints its report to standard output, which is redirected during the call.
    """
    found = sorted((Path(paddle.__file__).parent / "libs").glob("libdnnl.so*"))
    if not found:
        return None
    try:
        switch = ctypes.CDLL(str(found[0])).dnnl_set_verbose
    except (OSError, AttributeError):
        return None
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with tempfile.TemporaryFile() as report:
            os.dup2(report.fileno(), 1)
            try:
                switch(1)
                run()
            finally:
                switch(0)
                # The library writes through C's buffer.
                ctypes.CDLL(None).fflush(None)
                os.dup2(kept, 1)
            report.seek(0)
            lines = report.read().decode(errors="replace").splitlines()
    finally:
        os.close(kept)
    return _count(lines)


def _count(lines: list[str]) -> tuple[int, int]:
    """`onednn_verbose,v1,primitive,exec,cpu,convolution,<kernel>,forward_inference,src:s8:… wei:s8:…,…`"""
    layers = [words for words in (line.split(",") for line in lines) if "exec" in words and _layer(words)]
    return sum("wei:s8" in ",".join(words) or "wei_s8" in ",".join(words) for words in layers), len(layers)


def _layer(words: list[str]) -> bool:
    return any(name in words for name in _LAYERS)
