"""Sentences a second on one core, ours beside PyTorch's: all-MiniLM-L6-v2, batches of 32 of like length, both padded
to the longest of the batch, tokenising included. Rounds in turn, each in a process of its own, pinned to one core; the
least times count.

    python3 benchmarks/minilm.py --python VENV/bin/python [--rounds 5] [--lines 640] [--core 0]

VENV has torch, tokenizers, safetensors and transformers.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parent.parent


def torch_seconds(folder, path):
    """What the other process does: the seconds that the lines take PyTorch, without loading."""
    import json

    import torch
    from safetensors.torch import load_file
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel

    torch.set_num_threads(1)
    model = BertModel(BertConfig(**json.loads((folder / "config.json").read_text())))
    model.load_state_dict({k: v for k, v in load_file(folder / "model.safetensors").items() if k != "embeddings.position_ids"})
    model.eval()
    tokenizer = BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)
    tokenizer.enable_truncation(256)
    lines = path.read_text().splitlines()
    start = time.perf_counter()
    tokens = sorted((tokenizer.encode(line).ids for line in lines), key=len)
    with torch.inference_mode():
        for at in range(0, len(tokens), 32):
            batch = tokens[at:at + 32]
            longest = max(map(len, batch))
            ids = torch.tensor([t + [0] * (longest - len(t)) for t in batch])
            mask = torch.tensor([[1] * len(t) + [0] * (longest - len(t)) for t in batch])
            hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
            weights = mask.unsqueeze(-1).float()
            torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1), dim=1)
    print(f"{len(lines)} lines in {time.perf_counter() - start} s")


def run(command, core):
    """Seconds that the command says, and its process's peak memory in MiB."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment,
                               preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {command}")
    return float(re.search(r"lines in ([0-9.]+) s", output)[1]), usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "minilm")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=640)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--torch-lines", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch_lines:
        return torch_seconds(options.model, options.torch_lines)
    book = (ROOT / "examples/data/pride_and_prejudice.txt").read_text()
    sentences = [s.strip() for s in re.split(r"(?<=[.!?])\s", book.replace("\n", " ")) if len(s.strip()) > 3]
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text"
        text.write_text("".join(s + "\n" for s in sentences[:options.lines]))
        ours = [options.build / "examples/sentence_search", "--model", options.model, "--index", text,
                "--out", folder, "--quiet"]
        rival = [options.python, __file__, "--model", options.model, "--torch-lines", text]
        results = {"ours": [], "PyTorch": []}
        for _ in range(options.rounds):
            results["ours"].append(run(ours, options.core))
            results["PyTorch"].append(run(rival, options.core))
        for name, rounds in results.items():
            least = min(seconds for seconds, _ in rounds)
            print(f"{name:8} {options.lines / least:7.1f} sentences/s, {max(m for _, m in rounds):5.0f} MiB at most")
        start = time.perf_counter()
        subprocess.run([*ours[:3], "--similarity", "a", "b"], check=True, stdout=subprocess.DEVNULL)
        print(f"ours starts, and compares two texts, in {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
