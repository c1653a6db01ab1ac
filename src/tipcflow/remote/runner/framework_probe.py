"""Reports what Paddle or PyTorch did in a process: group, device, steps, parameters, exports, predictors.

The runner copies this file and probe_tensors.py into the job's folder, where `sitecustomize` loads them in every
Python process of the job. The probe only acts when the process imports a framework, reads and counts, and writes
one JSON file per process. An exception in it is noted in the report and never reaches the process.
"""

from __future__ import annotations

import os
import sys
import time

from .probe_tensors import KEPT, checksums, parameters, tensors_in, top_classes

TYPE_CHECKING = False  # the import of typing would take longer than all that is done in most processes
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    Function = Callable[..., Any]

REPORT_S = 30.0  # between reports of a running training
FILES, KEPT_OF_FILE = 24, 12  # saved files, of which the last ones count, and their hashes
NOTES, PREDICTORS = 5, 8
CLASSES = 512  # of the first outputs; with more, the report has none
COLLECTIVES = (
    "all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter", "scatter", "alltoall", "all_to_all",
    "barrier", "send", "recv",
)  # fmt: skip
ACTS = ("steps", "static_runs", "parallel", "collectives", "saved", "exported", "predictors")
FLAGS = (
    ("onednn", "mkldnn_enabled"), ("tensorrt", "tensorrt_engine_enabled"), ("ir_optim", "ir_optim"),
    ("gpu", "use_gpu"), ("threads", "cpu_math_library_num_threads"),
)  # fmt: skip


class Report:
    """What this process did so far.

    Args:
        place: folder of the reports.
    """

    def __init__(self, place: str, framework: str, module: Any) -> None:
        self.place, self.module, self.pid, self.written = place, module, os.getpid(), 0.0
        self.optimizers: list[Any] = []
        self.files: dict[str, list[str]] = {}
        self.busy, self.depth, self.overflowed = False, 0, False
        self.facts: dict[str, Any] = {
            "framework": framework, "version": str(getattr(module, "__version__", ""))[:40],
            "script": os.path.basename((getattr(sys, "argv", None) or [""])[0])[:80],
            "rank": os.environ.get("PADDLE_TRAINER_ID") or os.environ.get("RANK") or "",
            "initialized": False, "world_size": 0, "backend": "", "device": "", "dtype": "", "placed": "",
            "steps": 0, "static_runs": 0, "parallel": 0, "collectives": {},
            "first": [], "last": [], "saved": [], "loaded": [], "exported": [],
            "predictors": [], "predictions": 0, "classes": [], "dropped": 0, "notes": [],
        }  # fmt: skip

    def note(self, what: str, error: BaseException) -> None:
        """Add an exception of the probe itself."""
        if len(self.facts["notes"]) < NOTES:
            self.facts["notes"].append(f"{what}: {error!r}"[:200])

    def safely(self, what: str, function: Callable[[], object]) -> None:
        """Call a function of the probe, unless one is being called: the probe does not observe itself."""
        if self.busy or os.getpid() != self.pid:
            return  # a forked helper, such as a data loader, is not this process
        self.busy = True
        try:
            function()
        except Exception as error:
            self.note(what, error)
        finally:
            self.busy = False

    def counter(self, name: str) -> Function:
        """Return a function that counts its calls."""

        def count() -> None:
            self.facts[name] += 1

        return lambda *_, **__: self.safely(name, count)

    def called(self, name: str) -> None:
        """Count a collective call; the first one is written, because a group may be destroyed before the process
        ends."""
        counts = self.facts["collectives"]
        counts[name] = counts.get(name, 0) + 1
        if len(counts) == counts[name] == 1:
            self.write()

    def readable(self) -> bool:
        """Return whether tensors can be read: Paddle crashes if a static program is being made."""
        dynamic = getattr(self.module, "in_dynamic_mode", None)
        return bool(dynamic()) if self.facts["framework"] == "paddle" and callable(dynamic) else True

    def add(self, kind: str, tensors: Callable[[], Iterable[Any]]) -> None:
        """Add tensors to those of a kind, and write the report."""
        if self.readable():
            self.facts[kind] = sorted({*self.facts[kind], *checksums(tensors())})[:KEPT]
        self.write()

    def ran(self) -> None:
        """Count a run of a predictor; the first one is written, as a process may end with `os._exit`."""
        self.facts["predictions"] += 1
        if self.facts["predictions"] == 1:
            self.write()

    def output(self, array: Any) -> None:
        """Add the classes of an output that the script reads; too many cannot be compared."""
        found = [] if self.overflowed else top_classes(array)
        classes = self.facts["classes"]
        self.overflowed = self.overflowed or len(classes) + len(found) > CLASSES
        self.facts["classes"] = [] if self.overflowed else classes + found
        if not classes and found:
            self.write()  # a process that ends with `os._exit` reports nothing later

    def saved(self, state: Any, path: str) -> None:
        """Add a saved file; one that is written again replaces itself."""
        made = checksums(tensors_in(state))[:KEPT_OF_FILE] if self.readable() else []
        if made:
            self.files.pop(path, None)
            self.files[path] = made
        while len(self.files) > FILES:
            del self.files[next(iter(self.files))]
            self.facts["dropped"] += 1
        self.facts["saved"] = sorted({name for names in self.files.values() for name in names})
        self.finish()

    def before_step(self, optimizer: Any) -> None:
        """Count a step; take the parameters' first checksum, and report from time to time."""
        self.facts["steps"] += 1
        if not any(one is optimizer for one in self.optimizers):
            if len(self.optimizers) < 4:
                self.optimizers.append(optimizer)
                tensors = parameters(optimizer)
                one = (tensors or [None])[0]
                self.facts["dtype"] = self.facts["dtype"] or str(getattr(one, "dtype", ""))[-40:]
                place = getattr(one, "place", None) or getattr(one, "device", "")  # of Paddle, of PyTorch
                self.facts["placed"] = self.facts["placed"] or str(place)[:40]
                self.add("first", lambda: tensors)
        elif time.monotonic() - self.written > REPORT_S:
            self.finish()

    def finish(self) -> None:
        """Take the parameters' last checksum and write the report."""
        if self.readable():
            tensors = [one for optimizer in self.optimizers for one in parameters(optimizer)]
            self.facts["last"] = checksums(tensors)
        self.write()

    def write(self) -> None:
        """Write the report, with the process's current state in the framework."""
        import json

        self.written = time.monotonic()
        describe = describe_paddle if self.facts["framework"] == "paddle" else describe_torch
        try:
            describe(self.module, self.facts)
        except Exception as error:
            self.note("describe", error)
        path = os.path.join(self.place, f"{self.pid}.json")
        with open(f"{path}.tmp", "w") as handle:
            json.dump(self.facts, handle)
        os.replace(f"{path}.tmp", path)

    def at_exit(self) -> None:
        """Write the last report of a process that did anything."""
        facts = self.facts
        if any(
            facts[name] for name in ("steps", "static_runs", "parallel", "collectives", "exported", "predictors")
        ):
            self.safely("exit", self.finish)
            self.safely("exit", self.write)


def wrapped(
    function: Function,
    before: Function | None = None,
    after: Function | None = None,
    at_end: Function | None = None,
) -> Function:
    """Return a function that does what `function` does, with calls of the probe before and after it."""
    import functools

    @functools.wraps(function)
    def call(*words: Any, **named: Any) -> Any:
        """Call the function between the probe's calls."""
        if before:
            before(*words, **named)
        try:
            result = function(*words, **named)
        finally:
            if at_end:
                at_end()
        if after:
            after(result, *words, **named)
        return result

    return call


def replace(owners: Iterable[Any], name: str, **calls: Function) -> None:
    """Replace a function in every module or class that has it."""
    made: dict[int, Function] = {}
    for owner in owners:
        function = getattr(owner, name, None)
        if callable(function):
            known = made.get(id(function)) or wrapped(function, **calls)
            made[id(function)] = known
            made[id(known)] = known
            setattr(owner, name, known)


def describe_paddle(paddle: Any, facts: dict[str, Any]) -> None:
    """Add the process's state in Paddle; a group may already be destroyed."""
    group = paddle.distributed
    if group.is_initialized():
        facts["initialized"] = True
        facts["world_size"], facts["backend"] = int(group.get_world_size()), str(group.get_backend()).lower()
    facts["device"] = str(paddle.get_device())


def describe_torch(torch: Any, facts: dict[str, Any]) -> None:
    """Add the process's state in PyTorch."""
    group = torch.distributed
    if group.is_available() and group.is_initialized():
        facts["initialized"] = True
        facts["world_size"], facts["backend"] = int(group.get_world_size()), str(group.get_backend()).lower()
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    facts["device"] = f"gpu:{torch.cuda.current_device()}" if cuda else "cpu"


def watch_saves(report: Report, modules: list[Any], exports: list[tuple[list[Any], str]]) -> None:
    """Watch what is saved, loaded and exported."""

    def watching(kind: str) -> Function:
        """Return the function to call after one that saves, loads or exports (`kind`)."""

        def after(result: Any, *words: Any, **named: Any) -> None:
            """Record the arguments, or the result of loading."""
            given = (*words, *named.values(), None, None)
            if kind == "saved":
                report.safely(kind, lambda: report.saved(given[0], str(given[1])))
            else:
                state = result if kind == "loaded" else given[0]
                report.safely(kind, lambda: report.add(kind, lambda: tensors_in(state)))

        return after

    replace(modules, "save", after=watching("saved"))
    replace(modules, "load", after=watching("loaded"))
    for owners, name in exports:
        replace(owners, name, after=watching("exported"))


def watch_group(report: Report, modules: list[Any], parallel: list[Any]) -> None:
    """Watch collective calls and wrappers for data parallelism."""
    for name in COLLECTIVES:
        replace(modules, name, before=lambda *_, name=name, **__: report.safely(name, lambda: report.called(name)))
    for owner in parallel:
        replace([owner], "__init__", after=report.counter("parallel"))


def patch_paddle(place: str, paddle: Any) -> None:
    """Watch Paddle."""
    import atexit

    if not hasattr(paddle, "optimizer"):
        return  # another package of that name
    report = Report(place, "paddle", paddle)
    atexit.register(report.at_exit)
    for owner in [one for one in vars(paddle.optimizer).values() if isinstance(one, type) and "step" in vars(one)]:
        watch_steps(report, owner, paddle.in_dynamic_mode)
    io = [paddle, getattr(paddle, "framework", None), sys.modules.get("paddle.framework.io")]
    watch_saves(report, [one for one in io if one], [([paddle.jit, sys.modules.get("paddle.jit.api")], "save")])
    static = getattr(getattr(paddle, "static", None), "Executor", None)
    if static:
        for name in ("run", "train_from_dataset"):
            replace([static], name, after=report.counter("static_runs"))
    watch_group(report, [paddle.distributed], [paddle.DataParallel])
    watch_predictors(report, getattr(paddle, "inference", None))


def watch_steps(report: Report, owner: Any, dynamic: Function) -> None:
    """Watch the steps of a class of optimizers; one whose step calls that of its base makes one step."""
    function = owner.step

    def before(optimizer: Any, *_: Any, **__: Any) -> None:
        report.depth += 1
        if report.depth == 1 and dynamic():
            report.safely("step", lambda: report.before_step(optimizer))

    owner.step = wrapped(
        function, before=before, at_end=lambda: setattr(report, "depth", max(0, report.depth - 1))
    )


def watch_predictors(report: Report, inference: Any) -> None:
    """Watch the creation of predictors, and their runs."""

    def created(_: Any, config: Any = None, *__: Any, **___: Any) -> None:
        """Record the switches of a new predictor's configuration."""
        flags = {}
        for name, method in FLAGS:
            if callable(getattr(config, method, None)):
                flags[name] = int(getattr(config, method)())
        del report.facts["predictors"][PREDICTORS - 1 :]
        report.facts["predictors"].append(flags)
        report.write()

    if inference is not None:
        after = lambda *words, **named: report.safely("predictor", lambda: created(*words, **named))  # noqa: E731
        replace([inference], "create_predictor", after=after)
        if hasattr(inference, "Predictor"):
            replace([inference.Predictor], "run", after=lambda *_, **__: report.safely("run", report.ran))
        if hasattr(inference, "Tensor"):
            read = lambda array, *_, **__: report.safely("output", lambda: report.output(array))  # noqa: E731
            replace([inference.Tensor], "copy_to_cpu", after=read)


def patch_torch(place: str, torch: Any) -> None:
    """Watch PyTorch."""
    import atexit

    if not hasattr(torch, "optim"):
        return  # another package of that name
    report = Report(place, "torch", torch)
    atexit.register(report.at_exit)
    # Since 2.13, `torch.optim` deletes the names of its modules.
    module = sys.modules.get("torch.optim.optimizer")
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register:  # PyTorch 2.0 and newer
        register(lambda optimizer, *_, **__: report.safely("step", lambda: report.before_step(optimizer)))
    watch_saves(
        report,
        [torch, sys.modules.get("torch.serialization")],
        [([torch.jit], "save"), ([getattr(torch, "onnx", None)], "export")],
    )
    group = sys.modules.get("torch.distributed")
    parallel = getattr(torch.nn.parallel, "DistributedDataParallel", None)
    watch_group(report, [group] if group else [], [parallel] if parallel else [])


class Finder:
    """Imports a framework as any other finder does, and lets the probe watch it afterwards."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.waiting: dict[str, Function] = {"paddle": patch_paddle, "torch": patch_torch}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a framework with a loader that also lets the probe watch it."""
        patch = self.waiting.pop(name, None)
        if patch is None:
            return None
        import importlib.util

        spec = importlib.util.find_spec(name)
        loader = spec.loader if spec else None
        load = getattr(loader, "exec_module", None)
        if load is None:
            return spec

        def exec_module(module: Any) -> None:
            load(module)
            try:
                patch(self.place, module)
            except Exception as error:
                self.fail(name, error)

        try:
            setattr(loader, "exec_module", exec_module)  # noqa: B010 (a method for type checkers)
        except AttributeError as error:
            self.fail(name, error)
        return spec

    def fail(self, name: str, error: Exception) -> None:
        """Write a report of a framework that cannot be watched."""
        try:
            report = Report(self.place, name, None)
            report.note("install", error)
            report.write()
        except Exception:
            pass  # nothing can be reported


def install(place: str) -> None:
    """Watch the frameworks that this process will import.

    Args:
        place: folder of the reports.
    """
    sys.meta_path.insert(0, Finder(place))
