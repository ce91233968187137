"""
Check SentencePiece's map of characters, which the package `tokenizers` walks without looking at bounds.

The map is the size of a trie in bytes, a double array of 32-bit units (Yata, "darts-clone"), and strings that end with
a zero byte, of which the leaves of the trie have offsets.
"""

from __future__ import annotations

import numpy as np

_LABEL = 0x8000_00FF
_HAS_LEAF = 1 << 8


def check_character_map(data: bytes) -> str:
    """Why a map is damaged, or nothing: every walk from the root must stay inside, and end at strings."""
    if len(data) < 4:
        return "the map of characters has no size"
    size = int.from_bytes(data[:4], "little")
    if size % 4 or not 4 <= size <= len(data) - 4:
        return f"the trie of the map of characters takes {size} of {len(data) - 4} bytes"
    units = np.frombuffer(data, "<u4", size // 4, 4).astype(np.int64)
    strings = data[4 + size :]
    try:
        strings.decode("utf-8")
    except UnicodeDecodeError:
        return "replacements of the map of characters are not in UTF-8"
    if not strings.endswith(b"\0"):
        return "the last replacement of the map of characters does not end"
    return _walk(units, np.frombuffer(strings, np.uint8))


def _walk(units: np.ndarray, strings: np.ndarray) -> str:
    """Visit all nodes, level by level; `units` [n], `strings` [bytes]."""
    outside = "the trie of the map of characters leads outside"
    seen = np.zeros(len(units), bool)
    labels = np.arange(1, 256)
    nodes = np.array([int(_offsets(units[:1])[0])])
    while len(nodes):
        if (nodes | 255).max() >= len(units):
            return outside
        seen[nodes] = True
        children = (nodes[:, None] ^ labels).ravel()
        children = children[(units[children] & _LABEL) == np.tile(labels, len(nodes))]
        nodes = children ^ _offsets(units[children])
        leaves = nodes[(units[children] & _HAS_LEAF) != 0]
        if len(leaves) and leaves.max() >= len(units):
            return outside
        values = units[leaves] & 0x7FFF_FFFF
        if len(values) and (values.max() >= len(strings) or ((strings[values] & 0xC0) == 0x80).any()):
            return "a replacement of the map of characters begins outside"
        # A node that several lead to is walked once, so that damaged maps end as well.
        nodes = np.unique(nodes)
        if len(nodes) and nodes[-1] >= len(units):
            return outside
        nodes = nodes[~seen[nodes]]
    return ""


def _offsets(units: np.ndarray) -> np.ndarray:
    """How far from each unit its children are, to be combined by exclusive or."""
    return (units >> 10) << ((units & (1 << 9)) >> 6)
