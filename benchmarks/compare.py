#!/usr/bin/env python3
"""Times tapegrad beside PyTorch and JAX on this machine and prints the ratios: a rival's time over ours.

Runs come in pairs (ours, rival, ours, rival, ...), so that what else the machine does meets both. Of all runs the least
time counts; the medians stand beside it, and where they tell another story the machine was busy. On one core, all
contenders are pinned to the same one; on all cores, nobody is pinned.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RIVALS = {"torch": "PyTorch", "jax": "JAX"}

# What our time shall be: the faster rival's over this, on one core. On all cores no rival shall be faster.
GOALS = {
    "nw_step": 2.5,
    "tiny_1000ops": 80,  # JAX compiles it away: shown, not counted
    "mha_d2l": 4,
    "mha_mid": 1.4,
    "mha_long": 1.5,
    "gpt_cpu": 1.8,
    "gpt_mid": 1.3,
    "gpt_cpu_fwd": 1.5,
    "gpt_mid_fwd": 1.25,
    "softmax_4096x512": 1.2,
    "layernorm_4096x512": 1.1,
    "gelu_1M": 1.1,
    "add_bcast_4096x512": 1.1,
    "linear_2048x512x512": 1.0,
    "bmm_64x64x64x64": 1.2,
    "gemm_1024": 1.0,
}
NOT_COUNTED = {("tiny_1000ops", "jax")}


def fail(message, code):
    sys.exit((print(f"compare.py: {message}", file=sys.stderr), code)[1])


class Ours:
    """bench_train: a process for each run."""

    def __init__(self, program, threads, options):
        self.command = [program, "--json", "--threads", str(threads), *timing(options)]

    def run(self, row):
        done = subprocess.run([*self.command, row], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            fail(f"bench_train failed on {row}", 1)
        return json.loads(done.stdout)


class Rival:
    """A rival's program: one process for all its runs, since it takes seconds to start and to compile."""

    def __init__(self, python, name, threads, options):
        command = [python, HERE / f"rival_{name}.py", "--threads", str(threads), *timing(options), "-"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, row):
        """The times of a row, or None when the program ended instead."""
        try:
            self.process.stdin.write(row + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            return None

    def stop(self):
        self.process.kill()
        self.process.wait()


def timing(options):
    return ["--windows", str(options.windows), "--seconds", str(options.seconds)]


def version(python, name):
    """The rival's version, or None and why it is not there."""
    try:
        done = subprocess.run([python, "-c", f"import {name}; print({name}.__version__)"], capture_output=True, text=True)
    except OSError as error:
        return None, f"cannot run {python}: {error.strerror}"
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["it does not start"])[-1]
    return done.stdout.strip(), None


def cpu():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def build_info(build):
    """Version, compiler and BLAS of our build, as CMake noted them."""
    cache = {}
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        if "=" in line and not line.startswith(("#", "//")):
            key, value = line.split("=", 1)
            cache[key.split(":")[0]] = value
    return {
        "version": cache.get("CMAKE_PROJECT_VERSION", "?"),
        "compiler": first_line([cache.get("CMAKE_CXX_COMPILER", "c++"), "--version"]),
        "blas": "/".join(Path(os.path.realpath(cache.get("CBLAS_LIBRARY", "?"))).parts[-2:]),
        "native": cache.get("TAPEGRAD_NATIVE", "?"),
    }


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.partition("\n")[0] or "?"
    except OSError:
        return "?"


class Progress:
    """Row, round and time left on stderr: one line that is rewritten on a terminal, else a line for each row."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()

    def update(self, text, last):
        self.done += 1
        spent = time.monotonic() - self.start
        left = spent / self.done * (self.total - self.done)
        line = f"{text}, {self.done}/{self.total}, about {left // 60:.0f} min {left % 60:02.0f} s left"
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end="\n" if self.done == self.total else "", file=sys.stderr, flush=True)
        elif last:
            print(line, file=sys.stderr, flush=True)


def measure(options, rivals, threads, progress):
    """{row: {contender: [line of a run, ...]}} with so many threads."""
    ours = Ours(options.build / "benchmarks/bench_train", threads, options)
    running = {name: Rival(options.python, name, threads, options) for name in rivals}
    runs = {row: {"tapegrad": [], **{name: [] for name in rivals}} for row in options.rows}
    try:
        for row in options.rows:
            for round_number in range(options.rounds):
                for name in list(running) or [None]:
                    runs[row]["tapegrad"].append(ours.run(row))
                    if name is None:
                        continue
                    line = running[name].run(row)
                    if line is None:
                        print(f"compare.py: {RIVALS[name]} failed on {row} and is left out from here on", file=sys.stderr)
                        running.pop(name).stop()
                    else:
                        runs[row][name].append(line)
                cores = "1 core" if threads == 1 else f"{threads} cores"
                last = round_number + 1 == options.rounds
                progress.update(f"{cores}: {row}, round {round_number + 1}/{options.rounds}", last)
    finally:
        for rival in running.values():
            rival.stop()
    return runs


def summary(row, threads, runs):
    """A row's figures: of each contender least and median seconds, and the ratios to ours."""
    result = {"workload": row, "threads": threads, "goal": GOALS[row] if threads == 1 else 1.0, "contenders": {}}
    for name, lines in runs.items():
        if lines:
            least, median = min(line["s"] for line in lines), statistics.median(line["median"] for line in lines)
            cpu, runs_s = min(line["cpu"] for line in lines), [line["s"] for line in lines]
            result["contenders"][name] = {"least": least, "median": median, "cpu": cpu, "runs": runs_s}
    ours = result["contenders"]["tapegrad"]
    for name, figures in result["contenders"].items():
        figures["ratio"] = figures["least"] / ours["least"]
        figures["ratio_of_cpu"] = figures["cpu"] / ours["cpu"]
        figures["ratio_of_medians"] = figures["median"] / ours["median"]
    counted = [f["ratio"] for name, f in result["contenders"].items() if name != "tapegrad" and (row, name) not in NOT_COUNTED]
    result["ratio"] = min(counted, default=None)
    return result


def table(results, rivals):
    """The rows as lines of text: milliseconds least/median, and ratios of the least times. On one core the ratio of the CPU
    times stands beside it, which neighbours disturb least; on all cores, where waiting counts, that of the medians."""
    beside = "ratio_of_cpu" if results[0]["threads"] == 1 else "ratio_of_medians"
    heads = ["workload", "ours, ms", *(f"{RIVALS[name]}, ms   ratio" for name in rivals), "ratio  goal"]
    widths = [21, 19, *(35 for _ in rivals), 14]
    lines = ["".join(f"{head:<{width}}" if i == 0 else f"{head:>{width}}" for i, (head, width) in enumerate(zip(heads, widths)))]
    for result in results:
        contenders = result["contenders"]
        cells = [f"{result['workload']:<21}", f"{times(contenders['tapegrad']):>19}"]
        for name in rivals:
            figures = contenders.get(name)
            ratio = f"{figures['ratio']:.2f} ({figures[beside]:.2f})" if figures else "-"
            cells.append(f"{times(figures) if figures else '-':>19}{ratio:>16}")
        if result["ratio"] is None:
            cells.append(f"{'-':>8}{result['goal']:>6g}")
        else:
            cells.append(f"{result['ratio']:>8.2f}{result['goal']:>6g}{'' if result['ratio'] >= result['goal'] else '  missed'}")
        lines.append("".join(cells))
    return lines


def times(figures):
    return f"{figures['least'] * 1e3:.4g} / {figures['median'] * 1e3:.4g}"


def bandwidth(options):
    """GB/s of kernels that only move memory, beside a plain copy on the same core."""
    command = [options.build / "benchmarks/bench_train", "--bandwidth", "--json", *timing(options)]
    best = {}
    for _ in range(options.rounds):
        for line in subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            line = json.loads(line)
            best[line["workload"]] = max(best.get(line["workload"], 0), line["gb_s"])
    return best


def memory(options, rivals, row="gpt_mid"):
    """MiB by which a training step makes memory grow at most, each contender in a process of its own; then the goal."""
    brief = ["--windows", "1", "--seconds", "0.001", row]
    commands = {"tapegrad": [options.build / "benchmarks/bench_train", "--json", *brief]}
    if "torch" in rivals:  # JAX plans its memory when it compiles
        commands["torch"] = [options.python, HERE / "rival_torch.py", *brief]
    found = {}
    for name, command in commands.items():
        found[name] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)["mib"]
    line = f"memory of {row}, growth over what was resident before the first step: ours {found['tapegrad']:.0f} MiB"
    if "torch" in found:
        line += f", PyTorch {found['torch']:.0f} MiB: {found['tapegrad'] / found['torch']:.2f} of it (goal: at most 0.8)"
    return found, line


def chart(results, rivals, title, base):
    """Bars of the ratios, and the goals, as base.svg and base.png."""
    data = "".join(
        " ".join([f'"{r["workload"]}"', str(r["goal"]), *(str(r["contenders"].get(n, {}).get("ratio", "NaN")) for n in rivals)]) + "\n"
        for r in results
    )
    bars = ", ".join(
        f"$data using {i + 3}{':xtic(1)' if i == 0 else ''} title '{RIVALS[name]}'" for i, name in enumerate(rivals)
    )
    plot(base, "1000,520", f"""
        set title "{title}"
        set ylabel "rival's time / ours (above 1: we are faster)"
        set style data histogram
        set style fill solid 0.8 noborder
        set logscale y
        set grid y
        set xtics rotate by -40 noenhanced
        set key top right
        $data << EOD
{data}EOD
        plot [][0.1:*] {bars}, $data using 0:2 with points pt 2 lc 'black' title 'goal', 1 with lines lc 'black' notitle
        """)


def plot(base, size, script):
    """Has gnuplot draw base.svg and base.png."""
    lines = [line.strip() for line in script.splitlines()]
    for terminal, look in (("svg", "font 'sans,12' background 'white'"), ("pngcairo", "font 'sans,10'")):
        output = f"{base}.{terminal[:3]}"
        begin = [f"set terminal {terminal} size {size} {look}", f"set output '{output}'"]
        subprocess.run(["gnuplot"], input="\n".join([*begin, *lines]), text=True, check=True)


def parser(description):
    """The options that say where things are; `settle` completes them."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=Path, default=Path("build"), metavar="DIR", help="our build folder (build)")
    options.add_argument("--python", type=Path, metavar="PATH", help="interpreter that has the rivals (BUILD/bench-venv/bin/python)")
    options.add_argument("--out", type=Path, metavar="DIR", help="where JSON and charts go (BUILD/bench)")
    return options


def settle(options, target):
    if not (options.build / "benchmarks/bench_train").exists():
        fail(f"{options.build}/benchmarks/bench_train is not there: `make {target}` builds it", 2)
    options.build = options.build.resolve()
    options.python = options.python or options.build / "bench-venv/bin/python"
    options.out = options.out or options.build / "bench"
    return options


def parse():
    arguments = parser(__doc__)
    arguments.add_argument("--rows", nargs="+", default=list(GOALS), metavar="NAME", help="workloads (all)")
    arguments.add_argument("--rounds", type=int, default=5, metavar="N", help="pairs of runs of each row (5)")
    arguments.add_argument("--threads", choices=("one", "all", "both"), default="both", help="one core, all cores, or both (both)")
    arguments.add_argument("--windows", type=int, default=3, metavar="N", help="windows in a run (3)")
    arguments.add_argument("--seconds", type=float, default=0.1, metavar="S", help="length of a window (0.1)")
    options = arguments.parse_args()
    for row in options.rows:
        if row not in GOALS:
            fail(f"{row}: there is no such workload; there are {', '.join(GOALS)}", 2)
    if options.rounds < 1 or options.windows < 1 or not options.seconds > 0:
        fail("--rounds, --windows and --seconds must be positive", 2)
    return settle(options, "bench")


def main():
    options = parse()
    rivals, versions, missing = [], {}, []
    for name in RIVALS:
        versions[name], why = version(options.python, name)
        if why is None:
            rivals.append(name)
        else:
            missing.append(f"{RIVALS[name]} is left out: {why}")
    for line in missing:
        print(line, file=sys.stderr)

    all_cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count()))
    counts = [n for n, choice in ((1, "one"), (len(all_cores), "all")) if options.threads in (choice, "both")]
    if len(all_cores) == 1:
        counts = [1]
    progress = Progress(len(counts) * len(options.rows) * options.rounds)
    info = build_info(options.build)
    report = {"cpu": cpu(), "cores": len(all_cores), "tapegrad": info, "versions": versions, "missing": missing, "rows": []}
    contenders = [f"tapegrad {info['version']} ({info['compiler']}; {info['blas']})", *(f"{RIVALS[n]} {versions[n]}" for n in rivals)]
    lines = [f"{report['cpu']}, {len(all_cores)} cores; {', '.join(contenders)}", *missing]
    lines.append("least / median milliseconds of one call; ratio: rival's time / ours, of the least times (one core: of the CPU's times; "
                 "all cores: of the medians)")
    options.out.mkdir(parents=True, exist_ok=True)
    for threads in counts:
        if threads == 1 and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {all_cores[-1]})  # inherited by every contender
        runs = measure(options, rivals, threads, progress)
        if threads == 1:
            report["gb_s"] = bandwidth(options)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, all_cores)
        results = [summary(row, threads, runs[row]) for row in options.rows]
        report["rows"] += results
        where = "one core, everybody pinned to it" if threads == 1 else f"all {threads} cores"
        lines += ["", where, *table(results, rivals)]
        if threads == 1:
            copied = report["gb_s"]["copy_4096x512"]
            lines += ["", f"GB/s on one core, beside a plain copy's {copied:.1f}"]
            lines += [f"{name:<21}{rate:>8.2f}{rate / copied:>8.2f}" for name, rate in report["gb_s"].items()]
            if "gpt_mid" in options.rows:
                report["mib"], line = memory(options, rivals)
                lines += ["", line]
        if rivals:
            try:
                chart(results, rivals, f"{where}: {report['cpu']}", options.out / f"ratios_{'one' if threads == 1 else 'all'}")
            except (OSError, subprocess.CalledProcessError):
                print("compare.py: no charts: gnuplot is not there, or failed", file=sys.stderr)
    text = "\n".join(lines) + "\n"
    (options.out / "bench.json").write_text(json.dumps(report, indent=1) + "\n")
    (options.out / "bench.txt").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    main()
