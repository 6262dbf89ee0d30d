"""That PyTorch reads a model which sentence_search trained and saved, strictly, and embeds lines as the index says:

    sentence_search --train FILE.tsv --encoder-rate 2e-5 --save MODEL
    sentence_search --model MODEL --index TEXT --save INDEX
    python3 tests/reference/bert_back.py MODEL INDEX
"""

import json
import pathlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel

folder = pathlib.Path(sys.argv[1])
model = BertModel(BertConfig(**json.loads((folder / "config.json").read_text())))
model.load_state_dict(load_file(folder / "model.safetensors"))
model.eval()
tokenizer = BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)
tokenizer.enable_truncation(json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"])
with safe_open(sys.argv[2], "pt") as index:
    lines = [line for line in index.metadata()["lines"].split("\n") if line.strip(" \t\f")]
    saved = index.get_tensor("embeddings")
with torch.no_grad():
    rows = [model(input_ids=torch.tensor([tokenizer.encode(line).ids])).last_hidden_state.mean(1) for line in lines]
worst = (torch.nn.functional.normalize(torch.cat(rows), dim=1) - saved).abs().max().item()
print(f"{len(lines)} lines, largest difference {worst:.2g}")
sys.exit(worst > 1e-5 or len(lines) != len(saved))
