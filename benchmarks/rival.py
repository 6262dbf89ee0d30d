"""What the rivals' programs share: bench_train's command line and the way it times."""

import argparse
import json
import sys
import time

TRAINS = ("nw_step", "gpt_cpu", "gpt_mid")  # their losses must fall


def parse(workloads, name, version):
    parser = argparse.ArgumentParser(description=f"Times {name} {version} on the benchmark's workloads in float32.")
    parser.add_argument("workloads", nargs="*", metavar="NAME", help="names of workloads; all when none is given")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="number of threads")
    parser.add_argument("--windows", type=int, default=7, metavar="N", help="windows, of which the least is reported")
    parser.add_argument("--seconds", type=float, default=0.2, metavar="S", help="length of a window in seconds")
    parser.add_argument("--json", action="store_true", help="accepted, and always on: one JSON object a line")
    parser.add_argument("--list", action="store_true", help="list the workloads and stop")
    options = parser.parse_args()
    for workload in options.workloads:
        if workload not in workloads:
            parser.exit(2, f"{parser.prog}: {workload}: there is no such workload; see --list\n")
    if options.list:
        print("\n".join(workloads))
        sys.exit(0)
    return options


def time_all(workloads, options, wait):
    """Prints a line for each workload. Results may come late: `wait` is called on the last one of a window."""
    for name in options.workloads or workloads:
        call = workloads[name]()

        def window(calls):
            start = time.perf_counter()
            for _ in range(calls):
                result = call()
            wait(result)
            return time.perf_counter() - start, result

        first = window(1)[1]
        first_loss = first.item() if name in TRAINS else None
        calls, spent = 0, 0.0
        while spent < options.seconds / 2 or calls == 0:
            spent += window(1)[0]
            calls += 1
        per_window = max(1, int(calls * options.seconds / spent))
        times = []
        for _ in range(options.windows):
            seconds, last = window(per_window)
            times.append(seconds / per_window)
        if name in TRAINS and not last.item() < first_loss:
            sys.exit(f"{sys.argv[0]}: {name}: the loss did not fall")
        times.sort()
        line = {"workload": name, "threads": options.threads, "s": times[0], "median": times[len(times) // 2]}
        print(json.dumps(line), flush=True)
