#!/usr/bin/env python3
"""Measures and draws how cost grows, ours and PyTorch's, on one core: attention's time and memory with the length, the
tape's overhead with the number of ops, a training step with width and batch; and how long the library takes to compile,
and how large it is."""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare

LENGTHS = [256, 512, 1024, 2048, 4096, 8192]

# name: what grows, the values, the workload's name for a value, the figure that is drawn and its unit
CURVES = {
    "attention_time": ("length T (batch 1, 4 heads of 64)", LENGTHS, "attention:1,{},256,4", "s", 1e3, "ms"),
    "attention_memory": ("length T (batch 1, 4 heads of 64)", LENGTHS, "attention:1,{},256,4", "mib", 1, "MiB"),
    "tape": ("number of ops", [10**n for n in range(3, 7)], "ops:{}", "s", 1e3, "ms"),
    "width": ("width (batch 12, 64 tokens, 4 layers, 4 heads)", [32, 64, 128, 256, 512], "gpt:12,64,4,4,{}", "s", 1e3, "ms"),
    "batch": ("batch (64 tokens, 4 layers, 4 heads, width 128)", [1, 2, 4, 8, 16, 32], "gpt:{},64,4,4,128", "s", 1e3, "ms"),
}


def run(command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def measure(workload, contenders, rounds, cache):
    """The least seconds and MiB of each contender, runs in pairs and each in a process of its own."""
    if workload not in cache:
        runs = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, command in contenders.items():
                runs[name].append(run([*command, workload]))
        cache[workload] = {name: {key: min(r[key] for r in lines) for key in ("s", "mib")} for name, lines in runs.items()}
    return cache[workload]


def slope(xs, ys):
    """The exponent of growth over the last two points: 1 is linear, 2 quadratic."""
    return math.log(ys[-1] / ys[-2]) / math.log(xs[-1] / xs[-2]) if min(ys[-2:]) > 0 else math.nan


def chart(title, unit, xs, series, base):
    names = list(series)
    data = "".join(" ".join(map(str, [x, *(series[name][i] for name in names)])) + "\n" for i, x in enumerate(xs))
    curves = ", ".join(
        f"$data using 1:{i + 2} with linespoints pt 7 lw 2 title '{'tapegrad' if name == 'tapegrad' else compare.RIVALS[name]}'"
        for i, name in enumerate(names)
    )
    compare.plot(base, "640,420", f"""
        set xlabel "{title}"
        set ylabel "{unit}"
        set logscale xy
        set grid
        set key top left
        $data << EOD
{data}EOD
        plot {curves}
        """)


def compile_figures(options):
    """Seconds to compile the library, and one file that includes all of it, from nothing on one core; sizes in MiB."""
    source = compare.HERE.parent
    figures = {}
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        switches = [f"-DTAPEGRAD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "BENCHMARKS")]
        configure = ["cmake", "-S", source, "-B", folder, "-DBUILD_SHARED_LIBS=ON", *switches]
        subprocess.run(configure, stdout=subprocess.DEVNULL, env=environment, check=True)
        start = time.monotonic()
        build = ["cmake", "--build", folder, "--target", "tapegrad"]
        subprocess.run(build, stdout=subprocess.DEVNULL, env=environment, check=True)
        figures["library_s"] = time.monotonic() - start
        library = Path(folder) / "libtapegrad.so"
        figures["library_mib"] = library.stat().st_size / 2**20
        user = Path(folder) / "user.cpp"
        user.write_text('#include "tapegrad.hpp"\nint main() { return tapegrad::ones({1}).item() == 1 ? 0 : 1; }\n')
        start = time.monotonic()
        compile_user = ["c++", "-std=c++20", "-O2", "-DXTENSOR_USE_XSIMD", f"-I{source}", "-c", user, "-o", f"{user}.o"]
        subprocess.run(compile_user, env=environment, check=True)
        figures["user_s"] = time.monotonic() - start
    find = "import torch, pathlib; print((pathlib.Path(torch.__path__[0]) / 'lib/libtorch_cpu.so').stat().st_size)"
    try:
        size = subprocess.run([options.python, "-c", find], capture_output=True, text=True, check=True).stdout
        figures["libtorch_cpu_mib"] = int(size) / 2**20
    except (OSError, subprocess.CalledProcessError):
        pass
    return figures


def parse():
    arguments = compare.parser(__doc__)
    known = [*CURVES, "compile"]
    arguments.add_argument("--curves", nargs="+", default=known, metavar="NAME", help=f"of {', '.join(known)} (all)")
    arguments.add_argument("--rounds", type=int, default=3, metavar="N", help="pairs of runs of each point (3)")
    options = arguments.parse_args()
    for name in options.curves:
        if name not in known:
            compare.fail(f"{name}: there is no such curve; there are {', '.join(known)}", 2)
    if options.rounds < 1:
        compare.fail("--rounds must be positive", 2)
    return compare.settle(options, "bench-growth")


def main():
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    report = {"cpu": compare.cpu(), "tapegrad": compare.build_info(options.build), "curves": {}}
    brief = ["--windows", "2", "--seconds", "0.05"]
    contenders = {"tapegrad": [options.build / "benchmarks/bench_train", "--json", *brief]}
    found, why = compare.version(options.python, "torch")
    if why is None:
        report["torch"] = found
        contenders["torch"] = [options.python, compare.HERE / "rival_torch.py", *brief]
    else:
        print(f"PyTorch is left out: {why}", file=sys.stderr)
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else None
    if cores:
        os.sched_setaffinity(0, {max(cores)})
    progress = compare.Progress(sum(len(CURVES[name][1]) for name in options.curves if name in CURVES))
    cache = {}
    for name in options.curves:
        if name == "compile":
            continue
        title, xs, workload, key, scale, unit = CURVES[name]
        rivals = {n: c for n, c in contenders.items() if n == "tapegrad" or name != "tape"}  # PyTorch's op is 100 times ours
        series = {contender: [] for contender in rivals}
        for x in xs:
            for contender, figures in measure(workload.format(x), rivals, options.rounds, cache).items():
                series[contender].append(figures[key] * scale)
            progress.update(f"{name}: {x}", last=True)
        exponents = {contender: slope(xs, ys) for contender, ys in series.items()}
        report["curves"][name] = {"x": title, "unit": unit, "at": xs, "series": series, "exponent_at_the_end": exponents}
        print(f"\n{name}: {unit} against {title}")
        print("".join(f"{head:>12}" for head in ["", *map(str, xs), "exponent"]))
        for contender, ys in series.items():
            print(f"{contender:>12}" + "".join(f"{y:>12.4g}" for y in ys) + f"{exponents[contender]:>12.2f}", flush=True)
        try:
            chart(title, unit, xs, series, options.out / f"growth_{name}")
        except (OSError, subprocess.CalledProcessError):
            print("growth.py: no chart: gnuplot is not there, or failed", file=sys.stderr)
    if "compile" in options.curves:
        figures = report["compile"] = compile_figures(options)
        print(f"\ncompiled on one core: the library in {figures['library_s']:.0f} s, a user's file in {figures['user_s']:.1f} s")
        torch = f", libtorch_cpu.so {figures['libtorch_cpu_mib']:.0f} MiB" if "libtorch_cpu_mib" in figures else ""
        print(f"libtapegrad.so {figures['library_mib']:.1f} MiB{torch}")
    if cores:
        os.sched_setaffinity(0, cores)
    (options.out / "growth.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
