"""Rules that classify failures by lines of logs, each with a printed example and its source.

The first matching rule applies: rules that name a cause precede rules that only name a consequence.
"""

from dataclasses import dataclass
from re import Pattern
from re import compile as re

from tipcflow.domain.run.failure import FailureClass as Is

# Distributions that a node's environment must provide; a module of any other name may belong to the suite.
_PACKAGES = (
    "paddle|paddlenlp|paddleslim|paddle2onnx|paddleseg|paddledet|paddlex|visualdl|auto_log|torch|torchvision|"
    "numpy|scipy|pandas|sklearn|skimage|cv2|PIL|matplotlib|yaml|tqdm|six|requests|setuptools|pkg_resources|"
    "prettytable|ujson|easydict|shapely|pyclipper|lmdb|imgaug|Polygon|faiss|lxml|h5py|pynvml|GPUtil|psutil|distro|"
    "onnx|onnxruntime|decorator|astor|google|protobuf|attr|attrdict|jieba|sentencepiece|pycocotools|tensorrt"
)


@dataclass(frozen=True)
class Rule:
    """One kind of line.

    Attributes:
        is_collateral: whether it only reports that a peer disconnected: the root cause is in another process.
        waited: whether it reports that a peer did not arrive in time, so that no process had ended by then.
        anywhere: whether it applies at any position in the end of a log; otherwise only to the exception
            that ended the process, or if no exception did: handled errors are printed, too.
        sample: a matching line, as printed.
        source: the program that prints it.
    """

    name: str
    failure_class: Is
    pattern: Pattern[str]
    sample: str
    source: str
    is_collateral: bool = False
    waited: bool = False
    anywhere: bool = False


# The rule of a process that aborted itself: earlier output may name a peer as the cause.
ABORT = "abort"

RULES = (
    Rule(
        "cuda out of memory",
        Is.OOM_GPU,
        re(r"CUDA out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation|CUDA error\(2\)"),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
        "15.77 GiB of which 1.12 GiB is free.",
        "PyTorch's caching allocator; `CUDA error(2)` is Paddle's",
        anywhere=True,
    ),
    Rule(
        "paddle out of memory on gpu",
        Is.OOM_GPU,
        re(r"Out of memory error on (?:GPU|CUDA)|Cannot allocate [\d.]+ ?[KMG]?B memory on (?:GPU|CUDA)"),
        "Out of memory error on GPU 0. Cannot allocate 1.171875GB memory on GPU 0, 15.650208GB memory has been "
        "allocated and available memory is only 131.437500MB.",
        "Paddle's GPU allocator",
        anywhere=True,
    ),
    Rule(
        "cuda library out of memory",
        Is.OOM_GPU,
        re(r"CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED"),
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuBLAS and cuDNN through PyTorch or Paddle",
        anywhere=True,
    ),
    Rule(
        "shared memory",
        Is.OOM_HOST,
        re(r"insufficient shared memory \(shm\)"),
        "ERROR: Unexpected BUS error encountered in DataLoader worker. This might be caused by insufficient "
        "shared memory (shm), please check whether use_shared_memory is set and storage space in /dev/shm is "
        "enough",
        "Paddle 3.3.1, a DataLoader worker that got SIGBUS; PyTorch has the same words",
        anywhere=True,
    ),
    Rule(
        "loader killed",
        Is.OOM_HOST,
        re(r"DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) is killed by signal: Killed"),
        "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.",
        "PyTorch's DataLoader: the kernel kills the process that uses most",
        anywhere=True,
    ),
    Rule(
        "paddle host memory",
        Is.OOM_HOST,
        re(r"\(ResourceExhausted\)|Fail to alloc memory of \d+ size"),
        "MemoryError: (ResourceExhausted) Fail to alloc memory of 8796093022208 size, error code is 12.",
        "Paddle 3.3.1 on a CPU with a limit on its address space",
        anywhere=True,
    ),
    Rule(
        "host memory",
        Is.OOM_HOST,
        re(r"\bMemoryError\b|std::bad_alloc|Cannot allocate memory|\[Errno 12\]|Unable to allocate [\d.]+ \wiB"),
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 2.00 TiB for an array with shape "
        "(4194304, 65536) and data type float64",
        "numpy 2.4; Python and C++ have their own words",
        anywhere=True,
    ),
    Rule(
        "disk full",
        Is.DISK,
        re(r"No space left on device|\[Errno 28\]|Disk quota exceeded|\[Errno 122\]"),
        "OSError: [Errno 28] No space left on device: 'output/latest.pdparams'",
        "the operating system, through Python or a shell",
        anywhere=True,
    ),
    Rule(
        "read-only disk",
        Is.DISK,
        re(r"Read-only file system|\[Errno 30\]|Input/output error|\[Errno 5\]"),
        "OSError: [Errno 30] Read-only file system: 'output'",
        "the operating system: a disk that had errors is mounted read-only",
    ),
    # The next two are for runs of older versions of the node runner: their exit records lack the field `unmet`.
    Rule(
        "package index",
        Is.DOWNLOAD,
        re(r"^pip cannot install .*: the package index cannot be reached: "),
        "pip cannot install paddlepaddle 3.9.9: the package index cannot be reached: Temporary failure in name "
        "resolution",
        "the step `environment` of a run, before exit records had the field `unmet`",
        anywhere=True,
    ),
    Rule(
        "package not installed",
        Is.ENVIRONMENT,
        re(r"^pip (?:cannot install|installed another build)|^\S+\.whl is missing or damaged"),
        "pip cannot install paddlepaddle 3.9.9",
        "the step `environment` of a run, before exit records had the field `unmet`",
        anywhere=True,
    ),
    Rule(
        "package missing",
        Is.ENVIRONMENT,
        re(rf"ModuleNotFoundError: No module named '(?:{_PACKAGES})(?:\.[\w.]+)?'"),
        "ModuleNotFoundError: No module named 'paddle'",
        "Python; a module of another name may be the suite's own and is a code error",
    ),
    Rule(
        "shared library",
        Is.ENVIRONMENT,
        re(r"cannot open shared object file|version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found"),
        "ImportError: libcudnn.so.8: cannot open shared object file: No such file or directory",
        "the dynamic linker",
    ),
    Rule(
        "abi",
        Is.ENVIRONMENT,
        re(r"ImportError: .*(?:libpaddle|numpy\.core\.multiarray failed|undefined symbol|google\.protobuf)"),
        "ImportError: cannot import name 'CommContext' from 'paddle.base.libpaddle'",
        "Paddle 3.3.1 from the package index, which has no parameter server",
    ),
    Rule(
        "driver",
        Is.ENVIRONMENT,
        re(r"CUDA driver version is insufficient|no CUDA-capable device|NVIDIA driver on your system is too old"),
        "OSError: (External) CUDA error(35), CUDA driver version is insufficient for CUDA runtime version.",
        "the CUDA runtime",
        anywhere=True,
    ),
    Rule(
        "framework without cuda",
        Is.ENVIRONMENT,
        re(
            r"(?i:not compiled with (?:CUDA|GPU|NCCL|BKCL|XPU|npu|MKLDNN|TensorRT)\b)|"
            r"Torch not compiled with CUDA enabled"
        ),
        "ValueError: The device should not be 'gpu', since PaddlePaddle is not compiled with CUDA",
        "Paddle 3.3.1 for CPUs, whose scripts request a GPU; PyTorch has `Torch not compiled with CUDA enabled`",
    ),
    Rule(
        "broken gpu",
        Is.ENVIRONMENT,
        re(r"uncorrectable ECC error|GPU has fallen off the bus|CUDA error: (?:device not ready|hardware stack)"),
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "the CUDA runtime",
        anywhere=True,
    ),
    Rule(
        "shared gpu",
        Is.NODE_UNREADY,
        re(r"Duplicate GPU detected"),
        "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60",
        "NCCL 2.28.9 through PyTorch 2.11, two ranks on one GPU; the number is that of the PCI bus",
        anywhere=True,
    ),
    Rule(
        "container engine",
        Is.NODE_UNREADY,
        re(r"^docker: (?:Error response from daemon|Cannot connect to the Docker daemon)"),
        "docker: Cannot connect to the Docker daemon at unix:///run/docker.sock. Is the docker daemon running?",
        "docker's client 28.2: the container did not start, or lost its daemon",
        anywhere=True,
    ),
    Rule(
        "command missing",
        Is.ENVIRONMENT,
        re(r"^\S*(?:bash|sh): (?:line )?\d*:? ?[\w.+-]+: (?:command )?not found$"),
        "bash: line 1: python3.7: command not found",
        "bash",
    ),
    Rule(
        "name resolution",
        Is.DOWNLOAD,
        re(
            r"unable to resolve host address|curl: \((?:5|6|7|18|28|35|52|56)\)|"
            r"<urlopen error|Temporary failure in name resolution|Could not resolve host|"
            r"Connecting to \S+\.\.\. failed:"
        ),
        "wget: unable to resolve host address ‘paddle-imagenet-models-name.bj.bcebos.com’",
        "wget 1.21, curl, urllib, git, on a node without a way out",
    ),
    Rule(
        "download",
        Is.DOWNLOAD,
        re(
            r"Download from \S+ failed|ERROR [45]\d\d: |The requested URL returned error: [45]\d\d|"
            r"Downloading from \S+ failed|requests\.exceptions\.\w+|urllib3\.exceptions\.\w+|HTTPError: HTTP Error"
        ),
        "RuntimeError: Download from https://example.org/x.pdparams failed. Retry limit reached",
        "Paddle 3.3.1's download helper, and tipcflow's wget; wget, curl, requests have their own words",
    ),
    Rule(
        "file missing",
        Is.DATA_MISSING,
        re(r"FileNotFoundError|\[Errno 2\]|No such file or directory"),
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/ILSVRC2012/train/n01440764_10026.JPEG'",
        "Python, from a process of Paddle's DataLoader",
    ),
    Rule(
        "path missing",
        Is.DATA_MISSING,
        re(r"\b(?i:path|file|folder|directory|dataset)\b.{0,300}(?:does not exist|doesn't exist|not exists?\b)"),
        "AssertionError: path ./dataset/ILSVRC2012/train_list.txt does not exist.",
        "PaddleClas; other suites check their paths with similar words",
    ),
    Rule(
        "archive broken",
        Is.DATA_MISSING,
        re(
            r"^tar: .*(?:Error is not recoverable|Unexpected EOF|does not look like a tar archive)|BadZipFile|"
            r"gzip: .*(?:unexpected end of file|not in gzip format)|End-of-central-directory signature not found"
        ),
        "tar: Error is not recoverable: exiting now",
        "GNU tar, in a suite's prepare.sh",
    ),
    Rule(
        "port taken",
        Is.COMMUNICATION,
        re(r"Address already in use|EADDRINUSE|errno: 98\b"),
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
        "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "PyTorch's TCPStore; Paddle's has `Address already in use`",
    ),
    Rule(
        "rendezvous",
        Is.COMMUNICATION,
        re(
            r"client socket has timed out|waiting for clients\. \d+/\d+ clients joined|_timeout:\d+ elapsed:\d+|"
            r"rendezvous.*(?:timed? ?out|timeout)|RendezvousTimeoutError|DistStoreError"
        ),
        "SystemError: (Fatal) TCPStore wait timeout: _timeout:900 elapsed:901",
        "Paddle 3.3.1 when a node of the job never comes; PyTorch's TCPStore has its own words",
    ),
    Rule(
        "peer is late",
        Is.COMMUNICATION,
        re(
            r"gloo.*TIMEOUT self_rank = (?:none|-1)\b|gloo::TimeoutException|"
            r"Timed out waiting \d+ms for (?:recv|send) operation|"
            r"Application timeout caused pair closure"
        ),
        "RuntimeError: [/paddle/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:80] TIMEOUT "
        "self_rank = none pair_rank = -1 peer_str = none",
        "gloo in Paddle 3.3.1, 30 s after a rank hung; PyTorch's gloo has `Timed out waiting 1800000ms`",
        is_collateral=True,
        waited=True,
    ),
    Rule(
        "peer went away",
        Is.COMMUNICATION,
        re(
            r"Connection (?:reset|closed) by (?:remote )?peer|Broken pipe|gloo::IoException|ncclRemoteError|"
            r"gloo.*TIMEOUT self_rank = \d+ pair_rank = \d+|gloo.*ex_ == nullptr|Socket closed|"
            r"remote process (?:has )?exit(?:ed|ing) prematurely|"
            r"remote process exited or there was a network error"
        ),
        "RuntimeError: [/paddle/third_party/gloo/gloo/transport/tcp/pair.cc:576] Read error [127.0.0.1]:50304: "
        "Connection reset by peer",
        "gloo in Paddle 3.3.1, on the rank whose peer was killed",
        is_collateral=True,
    ),
    Rule(
        "peer is behind",
        Is.COMMUNICATION,
        re(
            r"Watchdog caught collective operation timeout|collective operation timeout: WorkNCCL|"
            r"WorkNCCL\(.*\) timed out in blocking wait|"
            r"Find timeout (?:init but not start|start but not finish) task"
        ),
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, "
        "Timeout(ms)=600000) ran for 600042 milliseconds before timing out.",
        "PyTorch's NCCL watchdog; Paddle's has `Find timeout start but not finish task:group_key:…`",
        is_collateral=True,
        waited=True,
    ),
    Rule(
        "nccl",
        Is.COMMUNICATION,
        re(
            r"NCCL (?:error|ERROR)|ncclSystemError|ncclUnhandledCudaError|ncclInternalError|ncclInvalidUsage|"
            r"NCCL WARN|Nccl error|DistBackendError"
        ),
        "RuntimeError: NCCL error in: /paddle/paddle/fluid/distributed/collective/process_group_nccl.cc:120, "
        "unhandled system error, NCCL version 2.16.2 ncclSystemError: System call failed",
        "NCCL through Paddle or PyTorch; NCCL WARN is its own log",
    ),
    Rule(
        "connection refused",
        Is.COMMUNICATION,
        re(r"Connection refused|No route to host|Network is unreachable|Connection timed out"),
        "RuntimeError: [/paddle/third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [10.77.0.2]:31042: "
        "Connection refused",
        "the operating system, through gloo, TCPStore or a shell",
    ),
    Rule(
        "loader crashed",
        Is.CODE_ERROR,
        re(r"Unexpected segmentation fault encountered in DataLoader"),
        "ERROR: Unexpected segmentation fault encountered in DataLoader workers.",
        "Paddle 3.3.1",
        anywhere=True,
    ),
    Rule(
        "loader died",
        Is.KILLED,
        re(r"DataLoader \d+ workers? exit unexpectedly|Signal 9 \(SIGKILL\) received by PID"),
        "[2026-11-21 15:47:51,131] [ WARNING] dataloader_iter.py:733 - DataLoader 1 workers exit unexpectedly, "
        "pids: 32073",
        "Paddle 3.3.1 when a process of its DataLoader got SIGKILL; torchrun's summary",
        anywhere=True,
    ),
    Rule(
        ABORT,
        Is.CODE_ERROR,
        re(r"FatalError: `Process abort signal`|^Aborted\b|Fatal Python error: Aborted"),
        "FatalError: `Process abort signal` is detected by the operating system.",
        "Paddle 3.3.1 when C++ code aborts: its own fault, or a peer disconnected; faulthandler has its own words",
    ),
    Rule(
        "crash",
        Is.CODE_ERROR,
        re(
            r"FatalError: `(?!Termination signal)|^(?:Segmentation fault|Illegal instruction|"
            r"Floating point exception|Bus error)\b|Fatal Python error: (?!Aborted)"
        ),
        "FatalError: `Segmentation fault` is detected by the operating system.",
        "Paddle 3.3.1 and bash",
    ),
)
