"""What the rivals' programs share: bench_train's command line, and the way it times."""

import argparse
import json
import sys
import time

TRAINS = ("nw_step", "gpt_cpu", "gpt_mid")  # their losses must fall
SIZED = ("attention", "gpt")  # made of the numbers behind their name, attention:1,256,256,4 say


def sized_rows(scalar_ops, attention, step, forward):
    """The workloads that are one function of a rival's at several sizes."""
    return {
        "tiny_1000ops": lambda: scalar_ops(1000),
        "mha_d2l": lambda: attention(2, 4, 100, 5),
        "mha_mid": lambda: attention(32, 64, 256, 8),
        "mha_long": lambda: attention(4, 512, 512, 8),
        "gpt_cpu": lambda: step(12, 64, 4, 4, 128),
        "gpt_mid": lambda: step(8, 256, 6, 6, 384),
        "gpt_cpu_fwd": lambda: forward(12, 64, 4, 4, 128),
        "gpt_mid_fwd": lambda: forward(8, 256, 6, 6, 384),
    }


def parse(workloads, name, version):
    parser = argparse.ArgumentParser(description=f"Times {name} {version} on the benchmark's workloads in float32.")
    parser.add_argument("workloads", nargs="*", metavar="NAME", help="workloads (all); -: their names come on stdin")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="number of threads (1)")
    parser.add_argument("--windows", type=int, default=7, metavar="N", help="windows, of which the least is reported (7)")
    parser.add_argument("--seconds", type=float, default=0.2, metavar="S", help="length of a window in seconds (0.2)")
    parser.add_argument("--list", action="store_true", help="list the workloads and stop")
    options = parser.parse_args()
    for workload in options.workloads:
        if workload not in workloads and workload != "-" and ":" not in workload:
            parser.exit(2, f"{parser.prog}: {workload}: there is no such workload; see --list\n")
    if options.list:
        print("\n".join(name for name in workloads if name not in SIZED))
        sys.exit(0)
    return options


def status_mib(key):
    """A line of Linux's /proc/self/status in MiB; 0 elsewhere."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(key)) / 1024
    except OSError:
        return 0


def restart_peak():
    try:
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
    except OSError:
        pass


def time_all(workloads, options, wait):
    """Prints a JSON line for each workload. Results may come late: `wait` is called on the last one of a window."""
    names = options.workloads or [name for name in workloads if name not in SIZED]
    calls = {}  # made once, for names that come again
    for name in map(str.strip, sys.stdin) if names == ["-"] else names:
        if name not in calls:
            calls[name] = workloads[name]() if name in workloads else sized(workloads, name)
        line = {"workload": name, "threads": options.threads, **measure(name, calls[name], options, wait)}
        print(json.dumps(line), flush=True)


def sized(workloads, name):
    kind, _, sizes = name.partition(":")
    return workloads[kind](*map(int, sizes.split(",")))


def measure(name, call, options, wait):
    """Least and median of the windows' means, in seconds, least CPU time, growth of memory: as bench_train takes them."""

    def window(calls):
        start = time.perf_counter()
        for _ in range(calls):
            result = call()
        wait(result)
        return time.perf_counter() - start, result

    restart_peak()
    resident = status_mib("VmRSS")
    first = window(1)[1]
    first_loss = first.item() if name in TRAINS else None
    calls, spent = 0, 0.0
    while spent < options.seconds / 2 or calls == 0:
        spent += window(1)[0]
        calls += 1
    per_window = max(1, int(calls * options.seconds / spent))
    times, cpu = [], []
    for _ in range(options.windows):
        used = time.process_time()
        seconds, last = window(per_window)
        times.append(seconds / per_window)
        cpu.append((time.process_time() - used) / per_window)
    if name in TRAINS and not last.item() < 1.001 * first_loss:  # it may have been as low as it gets
        sys.exit(f"{sys.argv[0]}: {name}: the loss did not fall")
    times.sort()
    mib = status_mib("VmHWM") - resident
    return {"s": times[0], "median": times[len(times) // 2], "cpu": min(cpu), "mib": mib}
