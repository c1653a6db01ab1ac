"""How a job ended, in the lists of failed jobs."""

from tipcflow.domain import EndReason, ExitRecord
from tipcflow.report.text.jobs import job_end


def test_out_of_memory_kill_needs_the_process_in_the_kernel_log() -> None:
    record = ExitRecord(run="r", step="train", node="b", reason=EndReason.EXITED, exit_code=1, oom=True)
    assert job_end(record) == "exit code 1, out of memory"
    unnamed = record.model_copy(update={"oom_named": False})
    assert job_end(unnamed) == "exit code 1, out-of-memory kill on the machine"
