"""benchmarks.py BENCH OUT: OUT/benchmarks.md, the part of the benchmark page that is made of what `make bench` left in BENCH."""

import json
import shutil
import sys
from pathlib import Path

bench, out = Path(sys.argv[1]), Path(sys.argv[2])
NAMES = {"torch": "PyTorch", "jax": "JAX"}


def milliseconds(figures):
    return f"{1e3 * figures['least']:.3g}"


def picture(name, text):
    """The picture, where the benchmark has drawn it."""
    if not (bench / name).exists():
        return ""
    shutil.copy(bench / name, out)
    return f"\n![{text}](/generated/{name})\n"


def page():
    if not (bench / "bench.json").exists():
        yield "`make bench` has not run in this build folder, so there is nothing to show. Run it, then `make docs` again."
        return
    report = json.loads((bench / "bench.json").read_text())
    tapegrad = report["tapegrad"]
    yield f"Measured on: {report['cpu']}, {report['cores']} cores; tapegrad {tapegrad['version']} ({tapegrad['compiler']}; {tapegrad['blas']})"
    yield "; " + ", ".join(f"{NAMES[name]} {version}" for name, version in report["versions"].items()) + "."
    for line in report["missing"]:
        yield f"\n\n{line}"
    for threads in sorted({row["threads"] for row in report["rows"]}):
        rows = [row for row in report["rows"] if row["threads"] == threads]
        rivals = [name for name in report["versions"] if any(name in row["contenders"] for row in rows)]
        yield f"\n\n## {'One core' if threads == 1 else f'All {threads} cores'}\n\n"
        yield "| workload | ours, ms | " + "".join(f"{NAMES[name]}, ms | ratio | " for name in rivals) + "\n"
        yield "|---|--:|" + "--:|--:|" * len(rivals) + "\n"
        for row in rows:
            yield f"| `{row['workload']}` | {milliseconds(row['contenders']['tapegrad'])} | "
            for name in rivals:
                figures = row["contenders"].get(name)
                yield f"{milliseconds(figures)} | {figures['ratio']:.2f} | " if figures else "– | – | "
            yield "\n"
        yield picture(f"ratios_{'one' if threads == 1 else 'all'}.svg", "How many times longer each rival takes than tapegrad, by workload")
    if report.get("mib", {}).keys() >= {"torch"}:
        yield f"\nMemory of `gpt_mid`, as growth over what was resident before the first step: {report['mib']['tapegrad']:.0f} MiB, PyTorch {report['mib']['torch']:.0f} MiB.\n"
    if "gb_s" in report:
        yield "\n## Row kernels beside a plain copy\n\nGB/s on one core, and in parts of a copy's.\n\n| kernel | GB/s | of a copy |\n|---|--:|--:|\n"
        for name, rate in report["gb_s"].items():
            yield f"| `{name}` | {rate:.2f} | {rate / report['gb_s']['copy_4096x512']:.2f} |\n"
    yield picture("growth_tape.svg", "How the cost of a step grows with the number of ops on the tape")
    yield picture("growth_batch.svg", "How the cost of a step grows with the batch")


def scaling():
    if not (bench / "scaling.json").exists():
        return
    report = json.loads((bench / "scaling.json").read_text())
    steps, alone = report["steps"], report["steps"][0]["step_s"]
    yield f"\n\n## On several ranks\n\n`make bench-scaling`, on {report['cpu']}, {report['cores']} cores: a training step of `gpt_mid`, its batch shared by ranks of one thread.\n\n"
    yield "| ranks | step, ms | of it waiting for sums, ms | throughput |\n|--:|--:|--:|--:|\n"
    for step in steps:
        yield f"| {step['ranks']} | {1e3 * step['step_s']:.0f} | {1e3 * step['wait_s']:.1f} | {alone / step['step_s']:.2f} |\n"
    yield picture("scaling_sums.svg", "Milliseconds of a sum over the ranks against its size in MiB")
    yield picture("scaling.svg", "Efficiency that a model expects of up to 64 machines")
    yield "\nWhat the model assumes is in [walkthrough 13](walkthroughs/13-data-parallel.md).\n"


(out / "benchmarks.md").write_text("".join([*page(), *scaling()]))
