"""Stands in for Paddle's launcher: one process per rank, workerlog.N, the exit codes that Paddle's has."""

import argparse
import os
import subprocess
import sys
import time


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ips", default="127.0.0.1")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--nproc_per_node", type=int, default=1)
    parser.add_argument("--start_port", default="6070")
    parser.add_argument("--log_dir", default="log")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    ips = args.ips.split(",")
    os.makedirs(args.log_dir, exist_ok=True)
    world = len(ips) * args.nproc_per_node
    workers = []
    for local in range(args.nproc_per_node):
        rank = ips.index(args.host) * args.nproc_per_node + local
        env = dict(os.environ, PADDLE_TRAINER_ID=str(rank), PADDLE_TRAINERS_NUM=str(world))
        log = open(os.path.join(args.log_dir, f"workerlog.{local}"), "ab")
        command = [sys.executable, "-u", args.script, *args.rest]
        workers.append(subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT))
    with open(os.path.join(args.log_dir, "envlog.0"), "w") as dump:
        dump.write("\n".join(f"{key}={value}" for key, value in os.environ.items()))
    while True:
        codes = [worker.poll() for worker in workers]
        if any(codes):
            named = next(local for local, code in enumerate(codes) if code)
            print("LAUNCH INFO 2026-11-21 09:30:14,344 Pod failed")
            print("LAUNCH ERROR 2026-11-21 09:30:14,345 Container failed !!!")
            log = os.path.join(args.log_dir, f"workerlog.{named}")
            print(f"Container rank {named} status failed cmd ['x'] code {codes[named]} log {log}", flush=True)
            for worker in workers:
                worker.terminate()
            bad = next(code for code in codes if code)
            sys.exit(256 + bad if bad < 0 else bad)
        if all(code is not None for code in codes):
            return
        time.sleep(0.02)


if __name__ == "__main__":
    main()
