"""Passes and kernels hold no number that was measured of a machine: it belongs to its description."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import glow_mlir

ROOMS = ("analysis", "conversion", "driver", "ir", "rewriting", "transforms")

EFFORT = {
    "ATTEMPTS",
    "EXACT_WORK",
    "FAR",
    "FEW",
    "LARGEST_BOUNDED",
    "LARGEST_RETURNED",
    "LARGEST_SPLATS",
    "LOOK_AHEAD",
    "MAX_BUFFERS",
    "MAX_COMPARED",
    "MAX_DISTANCES",
    "MAX_ELEMENTS",
    "MAX_TAPS",
    "MAX_GROWTH",
    "MAX_LEAVES",
    "MAX_LEVELS",
    "MAX_MEMBERS",
    "MAX_NODES",
    "MAX_OPERATORS",
    "MAX_PARTS",
    "MAX_PERIODS",
    "MAX_REPRODUCERS",
    "MAX_SWEEPS",
    "MAX_TERMS",
    "STAGES",
    "UNCOUNTED",
    "UNITS",
    "WIDTHS",
    "WINDOW",
    "WORK",
}
"""Bounds of how long a compilation takes, and how large it gets."""

FORM = {
    "_LONG",
    "_MAX_LISTED",
    "FIRST",
    "FORMAT",
    "HIDDEN",
    "IMAGE_AXES",
    "MIN_IMAGE_RANK",
    "MIN_WINDOW",
    "LONGEST_PRIME",
    "LONGEST_PRODUCT",
    "LONGEST_STRIDE",
    "LONGEST_SUM",
    "MAX_CANCELLED",
    "MAX_GATHERS",
    "MAX_READ",
    "MAX_SHIFT",
    "MAX_STEPS",
    "MAX_TESTS",
    "ROUNDINGS",
    "SIXTH",
    "SUM_BITS",
    "WIDEST",
    "WORTH_RAISING",
}
"""Limits of forms, formats and mathematics: the same on every machine."""


KERNELS = {
    "build": {"PROGRESS_BYTES"},
    "builder/amx": {"MAX_ROWS", "ROW_BYTES", "_BYTES_FROM", "_PALETTE", "_ROWS_FROM"},
    "builder/arm": {"WORD_BYTES"},
    "builder/atomics": {"PAUSES"},
    "builder/float_control": {"FPCR", "MXCSR"},
    "builder/lanes": {"_MANTISSAS", "_NARROW"},
    "builder/memory": {"STACK_SPACES", "_HALF", "_PREFETCH_LEVELS"},
    "builder/modules": {"_RISCV_UNIT", "_SVE_UNIT"},
    "builder/x86": {"MAX_PACKED", "_CURRENT_ROUNDING", "_LANE_WORDS", "_WIDEST", "_WORD"},
    "kernels/attention/paged_attention": {"UNROLLED"},
    "kernels/products/blockwise_matmul_integer": {"MAX_ACCUMULATOR"},
    "kernels/products/blockwise_strip": {"_LEFT", "_LEFT_REST", "_RIGHT", "_RIGHT_REST", "_SUMS"},
    "kernels/products/clipped_store": {"_LARGEST"},
    "kernels/images/roi_align": {"FEW_SAMPLES", "_ROUNDING"},
    "kernels/trees/binned_trees": {"SHORT", "_PADDING"},
    "kernels/products/conv": {"MAX_SLICES"},
    "kernels/products/depthwise_dot_groups": {"SIGN"},
    "kernels/products/dot_products": {"_SIGN_BITS"},
    "kernels/expressions/generic_program": {"MAX_FORMS"},
    "kernels/elements/indexing": {"MIN_MOVED"},
    "kernels/elements/short_lines": {"MAX_SHORT", "MIN_LINES"},
    "kernels/elements/sort_keys": {"MAX_POSITIONS", "_DIGITS", "_MAX_RANKED", "_POSITION_BITS", "_RANKED_VECTORS"},
    "kernels/elements/top_k": {"_COLLECTED", "_VECTORS"},
    "kernels/tiled": {"MIN_BYTES", "MIN_CUT", "MIN_TILES"},
    "kernels/elements/elementwise": {"MAX_ACCEPTED", "REGISTERS_A_VECTOR", "REGISTERS_AN_ANGLE"},
    "kernels/elements/embedding": {"_PART_BYTES"},
    "kernels/expressions/lookup": {"AT_ONCE", "LANES"},
    "kernels/products/matmul": {"MAX_AXES"},
    "kernels/products/micro_gemm": {"MAX_TERMS", "MIN_LANES", "MIN_TERMS"},
    "kernels/products/micro_tiles": {"TOGETHER", "_LEFT", "_RIGHT"},
    "kernels/products/pack_dot_groups": {"_ONES"},
    "kernels/products/packed_values": {"_ONES", "_TABLE_BYTES"},
    "kernels/products/streamed_sums": {"STREAMED_ROWS", "STREAMS"},
    "kernels/images/resize": {"FEW", "MAX_TABLE", "MAX_UNROLLED"},
    "kernels/trees/sliced_trees": {"_BYTE", "_WORD"},
    "kernels/expressions/sums_of_integers": {"MAX_SUMMANDS"},
    "llvm/coff": {"_EXTERNAL", "_STATIC"},
    "llvm/elf": {"_FLAGS", "_IN_MEMORY", "_LOCAL", "_SYMBOL_TABLE", "_UNDEFINED"},
    "llvm/emit": {"VISIBILITIES"},
    "llvm/instructions": {"INTEL"},
    "llvm/mach_o": {"_DEBUG", "_EXTERNAL", "_HEADER_BYTES", "_KIND", "_SYMBOL_TABLE"},
    "llvm/machines": {"CODEGEN_LEVEL"},
    "llvm/processor": {"_DEFAULT_POINTER"},
    "llvm/wasm": {
        *("_CUSTOM", "_DATA", "_EXPLICIT_NAME", "_IMPORTS", "_IMPORT_KINDS", "_LOCAL", "_SECTION", "_SYMBOLS"),
        "_UNDEFINED",
    },
    "selection/kernel": {"UNBOUNDED"},
    "raise_alignments": {"MAX_ALIGNMENT"},
    "block_kernels/product": {"COPIES", "MIN_STAGES", "MAX_SPLITS", "WANTED_BLOCKS"},
    "block_kernels/product_tile": {
        *("BLOCK_ROWS", "COLUMNS_A_THREAD", "DEPTH_BYTES", "ROWS_A_THREAD", "THREADS", "UNROLLED", "WARP_ROWS", "WORD"),
    },
    "block_kernels/rows": {"MIN_ELEMENTS", "MAX_THREADS", "WORD_BITS"},
    "block_kernels/product_view": {"ACCESS", "MAX_BYTES"},
    "blocks": {"ALIGNED", "GLOBAL", "SHARED"},
    "check_races": {"RACE_WORDS", "THREAD_BITS"},
    "device_functions": {"ALIGNED"},
    "instrumentation": {"_CYCLE_REGISTER"},
    "interpolation": {"MAX_UNROLLED", "_BEYOND"},
    "lines": {"BLOCK", "MIN_BLOCK"},
    "matrix_instructions": {"COLUMNS", "TF32_BITS", "WARP", "WORD_BITS"},
    "nvptx": {"BLOCK", "RESIDENT"},
    "opencl_c/function": {"MASK_BITS"},
    "opencl_c/literals": {"_SUFFIXES"},
    "opencl_c/memory_rules": {"POINTER_BYTES"},
    "opencl_c/rules": {"_NARROW", "_PART_BITS"},
    "opencl_c/spaces": {"_THROUGH"},
    "opencl_c/types": {"_SIGNED", "_SIZES", "_UNSIGNED"},
    "parallel_pool": {"_FUTEX_WAIT", "_FUTEX_WAKE", "_JOB_BITS", "_PART_BITS"},
    "quantized_rounding": {"_BYTE", "_FAR", "_MAX_BITS"},
    "xla_handler": {
        *("_API", "_API_MINOR", "_ARGUMENTS", "_ATTRIBUTES", "_CREATE_ERROR", "_DATA", "_ERROR_BYTES", "_ERROR_CODE"),
        *("_ERROR_MESSAGE", "_ERROR_WORDS", "_EXTENSION", "_INTERNAL", "_MAJOR", "_METADATA", "_MINOR", "_RESULTS"),
        "_SCALAR",
    },
}
"""
Module of `codegen` → its numbers: of formats and interfaces, how much code is unrolled, what generated code takes, how
much is kept of what was found out, how exact long sums are, and how processes wait for each other.

Those of `codegen/math` are mathematics.
"""


def numbers(path: Path) -> Iterator[str]:
    """The names of the constants of a module, those of its classes included, that are numbers or tables of numbers."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    classes = (node for node in ast.walk(module) if isinstance(node, ast.ClassDef))
    for node in (*module.body, *(inner for found in classes for inner in found.body)):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)] if target else []
        if isinstance(value, ast.expr) and is_number(value):
            yield from (name for name in names if name.isupper())


def is_number(value: ast.expr) -> bool:
    """Whether an expression has numbers, and nothing else but operators and displays, texts as keys included."""
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Dict, ast.operator, ast.unaryop, ast.Load)
    parts = list(ast.walk(value))
    found = [part.value for part in parts if isinstance(part, ast.Constant)]
    return all(isinstance(part, kinds) for part in parts) and any(type(item) in (int, float) for item in found)


def test_shared_rooms_hold_no_measured_number() -> None:
    root = Path(glow_mlir.__file__).parent
    found = {name for room in ROOMS for path in (root / room).rglob("*.py") for name in numbers(path)}
    assert not found - EFFORT - FORM, "say it in dialects/costs.py, with its value in the folder of the backend"
    assert not (EFFORT | FORM) - found, "the lists have names that are gone"


def test_kernels_hold_no_measured_number() -> None:
    room = Path(glow_mlir.__file__).parent / "codegen"
    found = {path.relative_to(room).with_suffix("").as_posix(): set(numbers(path)) for path in room.rglob("*.py")}
    found = {module: names for module, names in found.items() if names and not module.startswith("math/")}
    assert found == KERNELS, "what is measured is in codegen/costs.py, with its value in the folder of the backend"


def test_numbers_are_found_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "NEAR, FAR = 1, 2\nTABLE = {'a': (3, 4)}\nclass A:\n    MOST: int = -5\n    size: int = 6\nTEXT = 'x'\n",
        "utf-8",
    )
    assert sorted(numbers(path)) == ["FAR", "MOST", "NEAR", "TABLE"]
