r"""
Pre-tokenizers of byte-pair vocabularies by the name that GGUF files have in `tokenizer.ggml.pre`.

Each is a list of regular expressions in Oniguruma's syntax. They are applied in turn: each one splits the parts that
the ones before it made, into matches and what lies between them. The expressions are those of the tokenizer.json files
of the models, as llama.cpp names them.
"""

from __future__ import annotations

from collections.abc import Mapping

from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class PreTokenizer:
    """
    The splits of a text before its parts are merged.

    `ignore_merges`: a part that is a token is that token, whatever merges say. `in_bytes`: parts are merged as bytes,
    each written as one printable character as GPT-2 does; otherwise as characters, with spaces written as `▁` and with
    tokens `<0xFF>` for bytes of characters that the vocabulary lacks. `adds_begin`: whether a file that has no
    `add_bos_token` means true.
    """

    splits: tuple[str, ...]
    ignore_merges: bool = False
    in_bytes: bool = True
    adds_begin: bool = False


CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
ANY_CASE = f"(?i:{CONTRACTIONS})"
DIGIT, THREE_DIGITS = r"\p{N}", r"\p{N}{1,3}"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"

GPT2 = rf"{CONTRACTIONS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"


def _words(
    digits: str, *, contractions: str = f"{ANY_CASE}|", letters: str = r"\p{L}+", marks: str = "", spaces: str = SPACES
) -> str:
    """Words with one character before them, numbers, and symbols with the line ends behind them."""
    symbols = rf" ?[^\s\p{{L}}{marks}\p{{N}}]+[\r\n]*"
    return rf"{contractions}[^\r\n\p{{L}}\p{{N}}]?{letters}|{digits}|{symbols}|{spaces}"


def _cased_words(digits: str, *, contractions: str = "", only: str = "", symbols: str = r"[\r\n/]*") -> str:
    """Words that begin with upper case and go on in lower case."""
    upper, lower = rf"[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{only}]", rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{only}]"
    before = r"[^\r\n\p{L}\p{N}]?"
    words = f"{before}{upper}*{lower}+{contractions}|{before}{upper}+{lower}*{contractions}"
    return rf"{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+{symbols}|{SPACES}"


_LLAMA3 = _words(THREE_DIGITS)
_QWEN2 = _words(DIGIT)
_GPT4O = _cased_words(THREE_DIGITS, contractions=f"{ANY_CASE}?")

_CJK = "[一-龥぀-ゟ゠-ヿ]+"
_ASCII_SYMBOLS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""
_SYMBOLS_APART = rf"{_ASCII_SYMBOLS}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+"
_DEEPSEEK3 = (THREE_DIGITS, _CJK, rf"{_SYMBOLS_APART}[\r\n]*|{SPACES}")

# Letters that another form of Unicode writes otherwise are escaped.
_CASED_LETTERS = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼ"
    "ℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
_EAST_ASIAN = "[一-龥ࠀ-一가-퟿]+"
_DEEPSEEK_LLM = (
    r"[\r\n]", rf"\s?[{_CASED_LETTERS}]+", "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$", _EAST_ASIAN, r"\p{N}+",
)  # fmt: skip
_DEEPSEEK_CODER = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EAST_ASIAN, DIGIT)
_BLOOM = " ?[^(\\s|.,!?…。，、।۔،)]+"
_DIGITS_FROM_RIGHT = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))"
_ASIAN_SCRIPTS = "[一-鿿㐀-䶿豈-\ufaff぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-\ud7afᄀ-ᇿ]+"
_YOUTU_SCRIPTS = "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"
_KIMI_WORDS = _cased_words(THREE_DIGITS, contractions=f"{ANY_CASE}?", only=r"&&[^\p{Han}]", symbols=r"[\r\n]*")
_KIMI = rf"[\p{{Han}}]+|{_KIMI_WORDS}"
_HALVED_SPACES = "|".join(rf"\s{{{1 << power}}}(?!\S)" for power in range(9, 1, -1))
_JAIS2 = _words(THREE_DIGITS, spaces=rf"\s*[\r\n]+|{_HALVED_SPACES}|\s{{1,2}}(?!\S)|\s{{1}}")
_BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
_EXAONE_MOE = (
    rf"{ANY_CASE}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)
_SEED_CODER = rf"{ANY_CASE}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{SPACES}"
_CHAMELEON = (
    "<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", DIGIT,
    r"[\p{P}!-/:-@\[-`{-~]", GPT2,
)  # fmt: skip
_LINES = r"[^\n]+|[\n]+"

_BY_DIGITS = PreTokenizer((DIGIT, GPT2))
_BY_GPT2 = PreTokenizer((GPT2,))
_BY_LLAMA3 = PreTokenizer((_LLAMA3,))
_BY_LLAMA3_TOKENS = PreTokenizer((_LLAMA3,), ignore_merges=True, adds_begin=True)
_BY_QWEN2 = PreTokenizer((_QWEN2,))
_BY_GPT4O = PreTokenizer((_GPT4O,))
_BY_DEEPSEEK3 = PreTokenizer(_DEEPSEEK3)
_BY_BLOOM = PreTokenizer((_BLOOM,))
_BY_LINES = PreTokenizer((_LINES,), in_bytes=False)

_NAMES: Mapping[str, PreTokenizer] = {
    "default": PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    "gpt-2 phi-2 jina-es jina-de gigachat jina-v1-en jina-v2-code jina-v2-de jina-v2-es roberta-bpe a.x-4.0 mellum "
    "modern-bert mpt olmo jais trillion granite-docling exaone4": _BY_GPT2,
    "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2": _BY_DIGITS,
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano": _BY_LLAMA3_TOKENS,
    "dbrx smaug-bpe chatglm-bpe": _BY_LLAMA3,
    "glm4 glm5": PreTokenizer((_LLAMA3,), ignore_merges=True),
    "minicpm5": PreTokenizer((THREE_DIGITS, _words(r"\p{N}+")), ignore_merges=True),
    "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 hunyuan solar-open megrez grok-2": _BY_QWEN2,
    "qwen35": PreTokenizer((_words(DIGIT, letters=r"[\p{L}\p{M}]+", marks=r"\p{M}"),)),
    "ufakzeka": PreTokenizer((_words(DIGIT, contractions=""),)),
    "laguna": PreTokenizer((_LINES, _QWEN2)),
    "gpt-4o llama4 kanana2 talkie minimax-m2": _BY_GPT4O,
    "granite-embed-multi-97m": PreTokenizer((_GPT4O,), ignore_merges=True),
    "tekken": PreTokenizer((_cased_words(DIGIT),), ignore_merges=True, adds_begin=True),
    "tiny_aya cohere2moe": PreTokenizer((_DIGITS_FROM_RIGHT, _GPT4O)),
    "youtu": PreTokenizer((_YOUTU_SCRIPTS, _cased_words(DIGIT, contractions=f"{ANY_CASE}?")), ignore_merges=True),
    "kimi-k2": PreTokenizer((_KIMI,)),
    "deepseek-llm": PreTokenizer(_DEEPSEEK_LLM),
    "deepseek-coder": PreTokenizer(_DEEPSEEK_CODER),
    "deepseek-v3 hunyuan-dense joyai-llm hy_v4": _BY_DEEPSEEK3,
    "spark2_5": PreTokenizer((THREE_DIGITS, _CJK, rf"{_SYMBOLS_APART}|[\r\n]|\s+(?!\S)|\s+", DIGIT)),
    "afmoe": PreTokenizer((_DIGITS_FROM_RIGHT, _ASIAN_SCRIPTS, _DEEPSEEK3[-1])),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]")),
    "poro-chat bloom gpt3-finnish": _BY_BLOOM,
    "viking": PreTokenizer((_BLOOM, DIGIT)),
    "superbpe": PreTokenizer((r"\p{N}+", r"(?=(\d{3})+(?!\d))")),
    "jais-2": PreTokenizer((_JAIS2,)),
    "bailingmoe bailingmoe2 llada-moe": PreTokenizer((_BAILING,)),
    "seed-coder": PreTokenizer((_SEED_CODER,)),
    "exaone-moe": PreTokenizer((_EXAONE_MOE,)),
    "chameleon": PreTokenizer(_CHAMELEON, adds_begin=True),
    "gemma4 granite-embed-multi-311m": PreTokenizer((_LINES,), in_bytes=False, adds_begin=True),
    "sarvam-moe": _BY_LINES,
}

PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {name: found for names, found in _NAMES.items() for name in names.split()}
"""Name in `tokenizer.ggml.pre` → the pre-tokenizer."""
