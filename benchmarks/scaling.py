#!/usr/bin/env python3
"""Measures training on several ranks by MPI, one thread each: a training step (gpt_mid, its batch of 8 rows shared) on
one rank and on one for each core, and the sum of gradients against its size. From these it draws what a model expects of
8 to 64 machines. Measures in turn, and takes the least times: other programs on the machine only add."""

import json
import os
import shutil
import subprocess
import sys

import compare

# What the model assumes. A ring all-reduce sends 2 (N - 1) / N of the bytes through each link, in 2 (N - 1) messages for each
# bucket. Every machine has a batch of its own, of the size measured, and as many cores as said, of the measured speed.
MACHINES = [1, 2, 4, 8, 16, 32, 64]
NETWORKS = {"10 Gbit/s": (10e9 / 8, 30e-6), "100 Gbit/s": (100e9 / 8, 5e-6)}  # bytes a second, seconds a message
CORES = [1, 16]  # in each machine; all of them share its network
BUCKET = 2 * 2**20
HIDDEN = 0.8  # the part of the backward pass in which sums can go on, where they need no help of the processor


def run(options, ranks, *arguments):
    """The lines of bench_scaling on so many ranks."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    command = ["mpirun", "--bind-to", "core", "-n", str(ranks), options.build / "benchmarks/bench_scaling", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        compare.fail(f"bench_scaling failed on {ranks} ranks", 1)
    return [json.loads(line) for line in done.stdout.splitlines()]


def efficiency(step, backward, size, machines, network, hidden):
    """The throughput of N machines over N times that of one."""
    rate, latency = network
    buckets = -(-size // BUCKET)
    ring = lambda count, amount: 2 * (machines - 1) / machines * amount / rate + count * 2 * (machines - 1) * latency
    last = ring(1, size / buckets)  # it begins when the pass has ended
    return step / (step + max(last, ring(buckets, size) - hidden * backward))


def model(step):
    """{cores: {network: {"hidden"/"open": [efficiency for each of MACHINES]}}}, of the processor's time of the step."""
    own, backward = step["cpu_s"], step["backward_s"] * step["cpu_s"] / step["step_s"]
    return {
        cores: {
            name: {
                kind: [
                    efficiency(own / cores, backward / cores, 4 * step["parameters"], n, network, part)
                    for n in MACHINES
                ]
                for kind, part in (("hidden", HIDDEN), ("open", 0))
            }
            for name, network in NETWORKS.items()
        }
        for cores in CORES
    }


def draw(curves, base):
    script = ["set multiplot layout 1,2", "set logscale x 2", "set xrange [1:72]", "set yrange [0:1.05]", "set grid", "set key bottom left"]
    script += ['set xlabel "machines"', 'set ylabel "throughput / (machines x throughput of one)"', f"set xtics ({', '.join(map(str, MACHINES))})"]
    for cores, networks in curves.items():
        columns = [ys for kinds in networks.values() for ys in kinds.values()]
        script += [f"$c{cores} << EOD", *(" ".join(map(str, row)) for row in zip(MACHINES, *columns)), "EOD"]
        titles = [f"{name}, sums {'behind the backward pass' if kind == 'hidden' else 'after it'}" for name, kinds in networks.items() for kind in kinds]
        lines = [
            f"$c{cores} using 1:{i + 2} with linespoints pt 7 lw 2 lc {i // 2 + 1} dt {i % 2 + 1} title '{title}'"
            for i, title in enumerate(titles)
        ]
        script += [f'set title "machines of {cores} core{"s" if cores > 1 else ""}"', f"plot {', '.join(lines)}"]
    compare.plot(base, "1000,420", "\n".join([*script, "unset multiplot"]))


def draw_sums(sums, base):
    rows = "\n".join(f"{line['bytes'] / 2**20} {1e3 * line['s']}" for line in sums)
    compare.plot(base, "640,420", f"""
        set xlabel "MiB"
        set ylabel "ms"
        set logscale xy
        set grid
        $data << EOD
{rows}
        EOD
        plot $data using 1:2 with linespoints pt 7 lw 2 title 'the sum over {sums[0]['ranks']} ranks'
        """)


def main():
    arguments = compare.parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds of runs (3)")
    arguments.add_argument("--times", type=int, default=5, metavar="N", help="steps, or sums, of a run (5)")
    options = arguments.parse_args()
    if options.rounds < 1 or options.times < 1:
        compare.fail("--rounds and --times must be positive", 2)
    options = compare.settle(options, "bench-scaling")
    if shutil.which("mpirun") is None:
        compare.fail("mpirun is not there: install an MPI, and build again", 2)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    counts = sorted({1, 2, min(cores, 8)} if cores > 1 else {1})
    times = ["--times", str(options.times)]
    steps = {}
    for _ in range(options.rounds):
        for ranks in counts:
            [line] = run(options, ranks, *times)
            best = min(steps.get(ranks, line), line, key=lambda one: one["step_s"])
            steps[ranks] = {**best, "cpu_s": min(line["cpu_s"], best["cpu_s"])}
    best = {}
    for _ in range(options.rounds):
        for line in run(options, counts[-1], "--sums", *times):
            best[line["bytes"]] = min(line, best.get(line["bytes"], line), key=lambda one: one["s"])
    sums = list(best.values())

    load = os.getloadavg()[0]
    curves = model(steps[1])
    assumed = {"networks": NETWORKS, "bucket_bytes": BUCKET, "hidden": HIDDEN, "all_reduce": "ring", "batch": "8 rows for each machine"}
    report = {"cpu": compare.cpu(), "cores": cores, "load": load, "steps": [steps[n] for n in counts], "sums": sums}
    report |= {"model": {"assumed": assumed, "machines": MACHINES, "efficiency": curves}}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scaling.json").write_text(json.dumps(report, indent=1) + "\n")

    print(f"{report['cpu']}, {cores} cores; a thread for each rank; load at the end {load:.1f}")
    print(f"{'ranks':>6}{'step, ms':>12}{'of it waiting':>15}{'throughput':>12}{'CPU, ms':>10}{'by it':>9}")
    for ranks in counts:
        step = steps[ranks]
        ratio, by_cpu = (steps[1][key] / step[key] for key in ("step_s", "cpu_s"))
        print(f"{ranks:>6}{1e3 * step['step_s']:>12.0f}{1e3 * step['wait_s']:>12.1f} ms{ratio:>10.2f} x{1e3 * step['cpu_s']:>10.0f}{by_cpu:>7.2f} x")
    print(f"\nthe sum over {sums[0]['ranks']} ranks, alone")
    for line in sums:
        print(f"{line['bytes'] / 2**20:>10.3f} MiB {1e3 * line['s']:>10.3f} ms {line['bytes'] / line['s'] / 1e9:>8.2f} GB/s")
    print(f"\nthe model: efficiency at {', '.join(map(str, MACHINES))} machines")
    for count, networks in curves.items():
        for name, kinds in networks.items():
            for kind, ys in kinds.items():
                print(f"{count:>4} cores each, {name:>10}, {kind:>6}: " + " ".join(f"{y:.3f}" for y in ys))
    try:
        draw(curves, options.out / "scaling")
        draw_sums(sums, options.out / "scaling_sums")
    except (OSError, subprocess.CalledProcessError):
        print("scaling.py: no charts: gnuplot is not there, or failed", file=sys.stderr)


if __name__ == "__main__":
    main()
