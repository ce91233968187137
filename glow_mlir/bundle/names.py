"""Names that C takes: what is left of any text, apart from C's own words and from each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch
    char char8_t char16_t char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export extern false float for
    friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
    public register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual
    void volatile wchar_t while xor xor_eq errno assert offsetof NULL linux unix
    """.split()
)
"""The words of C and C++ that are no names, and macros of the systems."""


def identifier(text: str, otherwise: str = "unnamed") -> str:
    """The text as a name of C: letters, digits and underscores of ASCII; `otherwise` where nothing is left of it."""
    found = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or otherwise
    if found[0].isdigit():
        found = f"x{found}"
    return f"{found}_" if found in _KEYWORDS else found


def distinct(wanted: str, is_taken: Callable[[str], bool]) -> str:
    """A name that is not taken: the one wanted, or with the first number behind it."""
    found, number = wanted, 1
    while is_taken(found):
        number += 1
        found = f"{wanted}_{number}"
    return found


def identifiers(texts: Iterable[str]) -> list[str]:
    """A name of C for each text; no two are equal, in capitals either."""
    taken: set[str] = set()
    found: list[str] = []
    for text in texts:
        found.append(distinct(identifier(text), lambda name: name.upper() in taken))
        taken.add(found[-1].upper())
    return found


def comment(text: str) -> str:
    """The text as a comment of C may have it: in one line of ASCII, and no end of a comment in it."""
    plain = "".join(letter if " " <= letter <= "~" and letter != "\\" else _escaped(letter) for letter in text)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def _escaped(letter: str) -> str:
    return f"<U+{ord(letter):04X}>"
