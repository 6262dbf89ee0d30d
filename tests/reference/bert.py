"""Writes what the tests of WordPiece, Bert and SentenceEncoder compare with, from PyTorch, `transformers` and `tokenizers`:

tiny_bert/          a random model of width 32 in the folder layout of sentence-transformers, its vocabulary cut to size
sentences.json      texts, and their tokens by the tiny and by the real vocabulary
tiny_bert.json      the tiny model's embeddings of these texts, in double, and 20 losses of a fine-tuning
minilm.safetensors  all-MiniLM-L6-v2's embeddings of these texts, in float
minilm.json         20 losses of a fine-tuning of it, in float

    python3 tests/reference/bert.py MINILM_FOLDER      # as `make minilm` makes it
"""

import json
import pathlib
import sys

import numpy
import torch
from safetensors.torch import load_file, save_file
from tokenizers import BertWordPieceTokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from transformers import BertConfig, BertModel

HERE = pathlib.Path(__file__).parent
MODEL = pathlib.Path(sys.argv[1])
TINY = HERE / "tiny_bert"
torch.manual_seed(0)

SPOKEN = """
A man is playing a guitar on the stage.
Someone performs music for an audience.
The cat sleeps on the warm windowsill all afternoon.
Interest rates rose by 0.25 % in March, to 4.5 %.
She'd've said "no", wouldn't she?
Don't panic: it's only a test!
E = mc², so m = E/c².
Call +44 (0)20 7946-0958 or write to someone@example.org.
Visit https://example.org/a/b?c=d&e=f#top for more.
naïve café façade rôle coöperate Zoë
Resumé, résumé, RÉSUMÉ and re\u0301sume\u0301.
The quick brown fox jumps over the lazy dog
THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG
tHe QuIcK bRoWn FoX
antidisestablishmentarianism and floccinaucinihilipilification
An embedding maps words to vectors; similar words lie close together.
Gradient descent, step by step, finds a minimum.
int main() { return 0; }  // C++
for (auto& [k, v] : map) std::cout << k << '=' << v << "\\n";
SELECT * FROM t WHERE a <> 'b' AND c >= 10;
$100, £200, €300, ¥400, ₹500 and ₿6
1,234,567.89 and 1.234.567,89 and 1 234 567,89
50% off!!! Really??? Yes...
#hashtag @mention ~tilde ^caret `backtick` |pipe| \\backslash
{curly} [square] (round) <angle>
one-two–three—four―five‐six
“Double” ‘single’ „low“ «guillemets» ‹single›
a/b a\\b a|b a_b a+b a*b
3.14159 2.71828 1e-10 0xDEADBEEF
Mr. and Mrs. Smith, Ph.D., of Washington, D.C.
rock'n'roll o'clock 'twas
This is [MASK] and that is [SEP] and [CLS].
[PAD][UNK]x[MASK]y [mask] [Mask] [[CLS]] [MASK
[SEP]
##ing and ##s are pieces
Ça va bien, merci; et vous ? Où est l'été ?
Les élèves étudient l'œuvre d'un naïf garçon.
Le cœur a ses raisons que la raison ne connaît point.
Übung macht den Meister; Größe, Straße, GROẞE.
Der Fußgänger überquert die Straße bei Grün.
Falsches Üben von Xylophonmusik quält jeden größeren Zwerg
El niño comió piña en España. ¿Qué tal? ¡Olé!
O coração da avó não pára; pão, maçã e açúcar.
Perché no? È già così tardi.
Zażółć gęślą jaźń
Łódź leży nad Łódką.
Příliš žluťoučký kůň úpěl ďábelské ódy
Árvíztűrő tükörfúrógép
Ăștia țin în șură câțiva sâmburi.
Smørrebrød på Ærø, ål og øl
Flygande bäckasiner söka hwila på mjuka tuvor
Þórður ætlaði að sækja fréttirnar.
Törkylempijävongahdus
Iğdır'da ışık; İSTANBUL'da IŞIK
Đường phố Hà Nội rất đông vào buổi sáng.
Kaixo, zer moduz? Dw i'n hoffi coffi.
Съешь же ещё этих мягких французских булок, да выпей чаю
Привет, мир! Ёлка, йогурт, ЩЁГОЛЬ.
Жебракують філософи при ґанку церкви в Гадячі; їжак, єнот.
Љубазни фењерџија чађавог лица хоће да ми покаже штос.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.
Ο Οδυσσέας ΕΊΝΑΙ ΈΞΥΠΝΟΣ· ναι;
Բարեւ ձեզ, ինչպե՞ս եք։
გამარჯობა, როგორ ხართ? ᲒᲐᲛᲐᲠᲯᲝᲑᲐ
שלום עולם! מה שלומך?
בְּרֵאשִׁית בָּרָא אֱלֹהִים
مرحبا بالعالم! كيف حالك؟
بِسْمِ اللَّهِ الرَّحْمَٰنِ
سلام دنیا، حال شما چطور است؟
نمی‌خواهم بروم
ہیلو دنیا، آپ کیسے ہیں؟
नमस्ते दुनिया, आप कैसे हैं?
क्षत्रिय ज्ञान श्री ॐ।
হ্যালো বিশ্ব, তুমি কেমন আছো?
ਸਤ ਸ੍ਰੀ ਅਕਾਲ ਦੁਨੀਆ
નમસ્તે વિશ્વ
வணக்கம் உலகம்!
నమస్కారం ప్రపంచం
ನಮಸ್ಕಾರ ಪ್ರಪಂಚ
നമസ്കാരം ലോകം
ආයුබෝවන් ලෝකය
สวัสดีชาวโลก เป็นอย่างไรบ้าง
ສະບາຍດີຊາວໂລກ
မင်္ဂလာပါ ကမ္ဘာလောက
សួស្តី​ពិភពលោក
ཧེ་ལོ་འཇིག་རྟེན།
ሰላም ልዑል! እንዴት ነህ?
你好,世界!今天天气怎么样?
我喜欢吃苹果和香蕉。机器学习很有趣
繁體中文測試:龍鳳呈祥
中文English混合123文本
𠀀𠀁𪜀𫝀 are rare ideographs, 豈更車 are for compatibility
こんにちは世界!お元気ですか?
カタカナとひらがなと漢字ガギグゲゴ
ガギ ガギ ﾊﾝｶｸ
東京タワーは333メートルです。
안녕하세요 세계! 잘 지내세요?
한국어는 재미있다
Сайн байна уу, дэлхий? ᠮᠣᠩᠭᠣᠯ
Ƙungiyar ɗalibai sun yi ƴan waƙa. Ọjọ́ dára
ᏣᎳᎩ ꮳꮃꭹ Cherokee
ᚠᚢᚦᚨᚱᚲ ᚛ᚑᚌᚐᚋ᚜
𐌰𐌱𐌲 𐎠𐎡𐎢 𓀀𓀁 𒀀𒀁
I love pizza 🍕 and sushi 🍣!
😀😃😄😁
👩‍👩‍👧‍👦 family, 👍🏽 thumb, 🏳️‍🌈 flag
🇫🇷 🇯🇵 ☺️ ☺ ❤️ ❤
🥺🦄🫠🫶 newer than the tables
✓ ✗ ★ ☆ ♥ ♫ → ← ⇒ ∀x∈ℝ ∑∫√∞≠≤
ﬁne ﬂuﬀy ﬃ ligatures
Ⅷ ⅷ ½ ¼ ① ⒈ ㈱ ㍿ ℡ ™ © ®
𝐁𝐨𝐥𝐝 𝒮𝒸𝓇𝒾𝓅𝓉 𝔉𝔯𝔞𝔨𝔱𝔲𝔯 𝟙𝟚𝟛
Ｆｕｌｌｗｉｄｔｈ　ｔｅｘｔ，１２３！
ÅÅÅ Å ÅΩΩ
Z͑ͫ̓a̴͎l̵g̷o̸ t̶e̷x̴t̵
ạ̈ ạ̈ ạ̈ ậ̈
ŉ ǰ ΐ ΰ և ẖ ẗ ẘ ẙ ẚ
ǅ ǈ ǋ ǲ Ǆ Ǉ
Ωμέγα ΣΊΣΥΦΟΣ σς
׃ ؟ ، ؛ ۔ । ॥ ๏ ༄ ፠ ᙮ ᠁ ‽ ⁂ ⸮ 、 。 〽 ・
٠١٢٣ ۴۵۶ ०१२ ๐๑๒ 〇一二
""".strip("\n").split("\n")

SPECIAL = [
    "", " ", "   \t  \n ", "\u00a0\u2003\u3000", "a", "Z", ".", "...", "é", "e\u0301", "\u0301", "\u0301\u0302a", "中", "🙂", "\ufeff",
    "\ufeffmarked", "a\x00b", "\x00", "\x01\x02\x03", "bell\x07 and escape\x1b[31mred\x1b[0m", "tab\tnew\nline\rend\r\n",
    "a\x0bb\x0cc", "a\x85b\u2028c\u2029d", "a\u200bb\u200cc\u200dd\u2060e", "soft\u00adhyphen", "\u202eright to left\u202c",
    "a\ufffdb", "private \ue000\uf8ff use", "unassigned \u0378\u0379 \U000e0fff", "tag \U000e0041\U000e007f",
    "nonchar \ufdd0\uffff\U0001ffff", "x" * 99, "x" * 100, "x" * 101, "é" * 100, "é" * 101, "(" * 300, "\u0301" * 150 + "a",
    "中" * 300, "ab " * 300, "word " * 600, " ".join(f"word{i}" for i in range(600)), "😀" * 120, "one\u00a0two\u2009three\u3000four",
    "  leading and trailing  ", "double  spaces   inside", "line one\nline two\n\nline four", "A" * 50 + " " + "a" * 50,
    "unaffable", "UNAFFABLE", "unwanted,running", "transformerization", "electroencephalographically", "supercalifragilisticexpialidocious",
    "hello-world", "hello_world", "hello.world", "hello,world", "hello'world", "hello\u2019world", "hello\u2011world", "hello\u00b7world",
    "U\u0308ber", "\u212b", "\u1e9e", "\u0130", "\u0131", "\u01c5", "\ufb01", "\u1f88", "\u03a3\u03a3", "\u166d\u1734x", "\u0e33", "\u1112\u1161\u11ab",
    "\u0344\u0958\u2adc\ufb1d", "\U0001d15e\U0001d1bb", "\u09fd\u0a76", "\u0600x\u06ddy", "\u180ex", "\u2066a\u2069", "\ufe0f", "1\ufe0f\u20e3",
]
# A text from each of many parts of Unicode, marks and unassigned ones among them.
BLOCKS = ["".join(chr(start + (7 * i) % 96) + (" " if i % 5 == 4 else "") for i in range(20)) for start in
          [0x80, 0x100, 0x180, 0x250, 0x2b0, 0x300, 0x370, 0x400, 0x480, 0x530, 0x590, 0x600, 0x6a0, 0x700, 0x780, 0x900, 0xb80,
           0xe00, 0x1000, 0x10a0, 0x1200, 0x13a0, 0x1e00, 0x1f00, 0x2000, 0x2060, 0x20a0, 0x2100, 0x2190, 0x2200, 0x2460, 0x2500,
           0x2600, 0x2700, 0x2c00, 0x2e00, 0x3000, 0x3040, 0x3200, 0xa640, 0xf900, 0xfb00, 0xfe00, 0xff00, 0x10400, 0x1f300, 0x1f600]]
TEXTS = SPOKEN + SPECIAL + BLOCKS


def tokenizer(folder):
    result = BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)
    result.enable_truncation(json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"])
    return result


def make_tiny():
    """Every character that the texts are made of, its piece, and what the real vocabulary has of their words."""
    normalizer, words = BertNormalizer(lowercase=True), BertPreTokenizer()
    real = [line for line in (MODEL / "vocab.txt").read_text().split("\n") if line]
    used = sorted({i for text in SPOKEN for i in REAL.encode(text).ids if i > 103})
    letters = sorted({c for text in SPOKEN for w, _ in words.pre_tokenize_str(normalizer.normalize_str(text)) for c in w})
    tokens = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + c for c in letters if c.isalpha() and ord(c) < 0x250]
    tokens += [real[i] for i in used if real[i] not in set(tokens)]
    config = {"architectures": ["BertModel"], "model_type": "bert", "vocab_size": len(tokens), "hidden_size": 32,
              "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "hidden_act": "gelu",
              "max_position_embeddings": 48, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0}
    TINY.mkdir(exist_ok=True)
    (TINY / "vocab.txt").write_text("".join(t + "\n" for t in tokens))
    (TINY / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (TINY / "sentence_bert_config.json").write_text('{"max_seq_length": 40, "do_lower_case": false}\n')
    model = BertModel(BertConfig(**{**config, "initializer_range": 0.3}))
    for parameter in model.parameters():  # short numbers, so that the file packs well
        parameter.data = (parameter.data * 64).round() / 64
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data = (torch.randn(parameter.shape) * 6).round() / 64
    state = {name: value.contiguous() for name, value in model.state_dict().items()}
    state["embeddings.position_ids"] = torch.arange(48).unsqueeze(0)  # as files of older versions have it
    save_file(state, TINY / "model.safetensors", metadata={"format": "pt"})


def load(folder, dtype):
    model = BertModel(BertConfig(**json.loads((folder / "config.json").read_text())))
    state = load_file(folder / "model.safetensors")
    state.pop("embeddings.position_ids", None)
    model.load_state_dict(state)
    return model.to(dtype).eval()


def batch_of(token_lists):
    longest = max(map(len, token_lists))
    ids = torch.tensor([t + [0] * (longest - len(t)) for t in token_lists])
    mask = torch.tensor([[1] * len(t) + [0] * (longest - len(t)) for t in token_lists])
    return ids, mask


def embed(model, token_lists):
    ids, mask = batch_of(token_lists)
    hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return torch.nn.functional.normalize((hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9), dim=1)


def embeddings(model, tokens):
    with torch.no_grad():
        return torch.cat([embed(model, [t]) for t in tokens])


def losses(model, tokens, rate):
    """20 steps of AdamW with the eps that BERT was trained with, on model and head: batches of 8 of the spoken texts, in order, whose label is position % 3."""
    width = model.config.hidden_size
    head = torch.nn.Linear(width, 3).to(next(model.parameters()).dtype)
    head.weight.data = 0.5 * torch.cos(1.0 + 0.7 * torch.arange(3 * width, dtype=torch.float64)).reshape(3, width).to(head.weight.dtype)
    head.bias.data.zero_()
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=rate, eps=1e-6)
    found = []
    for step in range(20):
        at = [(8 * step + i) % len(SPOKEN) for i in range(8)]
        loss = torch.nn.functional.cross_entropy(head(embed(model, [tokens[i] for i in at])), torch.tensor([i % 3 for i in at]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(f"{loss.item():.10g}"))
    return found


REAL = tokenizer(MODEL)
make_tiny()
small = tokenizer(TINY)
real_tokens = [REAL.encode(text).ids for text in TEXTS]
tiny_tokens = [small.encode(text).ids for text in TEXTS]
(HERE / "sentences.json").write_text("[\n" + ",\n".join(
    json.dumps({"text": text, "tiny": tiny, "minilm": real}, separators=(",", ":"))
    for text, tiny, real in zip(TEXTS, tiny_tokens, real_tokens)) + "\n]\n")

tiny = load(TINY, torch.float64)
(HERE / "tiny_bert.json").write_text(json.dumps({
    "embeddings": [[float(f"{x:.8g}") for x in row] for row in embeddings(tiny, tiny_tokens).tolist()],
    "spoken": len(SPOKEN), "losses": losses(tiny, tiny_tokens, 1e-4)}, separators=(",", ":")) + "\n")
model = load(MODEL, torch.float32)
save_file({"embeddings": embeddings(model, real_tokens)}, HERE / "minilm.safetensors")
(HERE / "minilm.json").write_text(json.dumps({"losses": losses(load(MODEL, torch.float32), real_tokens, 2e-5)}) + "\n")
print(len(TEXTS), "texts")
