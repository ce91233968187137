"""Valid C names from any text, distinct from reserved names and from each other."""

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
    void volatile while xor xor_eq
    """.split()
)
"""The keywords of C and C++, which cannot be names."""

_MACROS = re.compile(
    r"NULL|NAN|I|BUFSIZ|TRUE|FALSE|stdin|stdout|stderr|errno|assert|offsetof|linux|unix"
    r"|complex|imaginary|noreturn|math_errhandling"
    r"|E[A-Z0-9]+|(M_|SIG|LC_|SEEK_|CLOCKS_|EXIT_|FE_|FLT_|DBL_|LDBL_|PRI|SCN|FP_|ATOMIC_|HUGE_VAL|INFINIT)\w*"
    r"|[A-Z0-9_]+_(MAX|MIN|C|BIT|WIDTH)"
)
"""Macros of C and system headers, and reserved names (C11, 7.31)."""

_TYPES = re.compile(r"\w+_t")
"""Type names of C and of POSIX."""

_HEADERS = frozenset(
    """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar unistd wchar wctype
    dirent dlfcn fcntl malloc memory poll pthread sched semaphore spawn termios
    """.split()
)
"""C and POSIX headers, which a header of the same name in a bundle's folder would hide."""

OURS = "glow"
"""The prefix of names shared by all bundles."""


def identifier(text: str, otherwise: str = "unnamed") -> str:
    """The text as a C name: ASCII letters, digits and underscores; `otherwise` if nothing is left."""
    found = _word(text, otherwise)
    return f"{found}_" if _is_taken(found) else found


def bundle_identifier(text: str) -> str:
    """The text as the prefix of a bundle's names, and the name of its header."""
    found = _word(text, "bundle")
    return f"{found}_model" if _is_taken(found) or found.lower() in _HEADERS | {OURS} else found


def _word(text: str, otherwise: str) -> str:
    found = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or otherwise
    return f"x{found}" if found[0].isdigit() else found


def _is_taken(name: str) -> bool:
    """Whether a name has a meaning in C, or in one of its headers."""
    return name in _KEYWORDS or any(pattern.fullmatch(name) for pattern in (_MACROS, _TYPES))


def distinct(wanted: str, is_taken: Callable[[str], bool]) -> str:
    """An unused name: the wanted one, or that with a number appended."""
    found, number = wanted, 1
    while is_taken(found):
        number += 1
        found = f"{wanted}_{number}"
    return found


def identifiers(texts: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """A C name for each text; none is reserved, and all are distinct even in upper case."""
    taken = {name.upper() for name in reserved}
    found: list[str] = []
    for text in texts:
        found.append(distinct(identifier(text), lambda name: name.upper() in taken))
        taken.add(found[-1].upper())
    return found


def comment(text: str) -> str:
    """The text for a C comment: one line of ASCII, without end of comment or trigraphs."""
    plain = "".join(letter if " " <= letter <= "~" and letter != "\\" else _escaped(letter) for letter in text)
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", plain)


def _escaped(letter: str) -> str:
    return f"<U+{ord(letter):04X}>"
