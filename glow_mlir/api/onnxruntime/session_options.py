"""onnxruntime's `SessionOptions`, and the effect of each option here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, cast

from glow_mlir.api.onnxruntime.node_assignments import ASSIGNMENT_KEY
from glow_mlir.api.onnxruntime.ort_value import OrtValue
from glow_mlir.api.onnxruntime.refused_names import Explained
from glow_mlir.api.onnxruntime.settings import (
    Effect,
    Setting,
    Settings,
    Treatment,
    flag,
    keyed,
    member,
    number,
    path_text,
    severity,
    text,
)
from glow_mlir.api.optimized_model import ExternalForm
from glow_mlir.errors import InputError, OptionError
from glow_mlir.support.arguments import whole_number


class GraphOptimizationLevel(IntEnum):
    """How much the graph is optimized; instructions always are."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Whether operators run one after another, as they do here."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """The order of operators; here it minimizes memory."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


LAYOUT_PASSES = ("sink-transposes", "sink-reshapes", "fold-transposes-into-matmul")
"""Passes that choose tensor layouts."""

FUSION_PASSES = (
    "recognize-activations",
    "recognize-softmax",
    "recognize-normalization",
    "recognize-attention",
    "recognize-grouped-products",
    "merge-pads",
    "merge-arithmetic",
    "merge-matmuls",
    "fold-dilated-convolutions",
    "fold-into-trees",
    "fold-into-weights",
    "simplify-convolutions",
    "flatten-convolutions",
    "raise-clips",
    "raise-gathers",
    "sink-conversions",
)
"""Passes that fuse or replace operators."""

PLAIN_PASSES = (
    "canonicalize",
    "fold-constants",
    "count-trips",
    "simplify-control-flow",
    "fold-quantization",
    "gather-to-slice",
    "shrink-splats",
    "cse",
    "deduplicate",
    "remove-identity-clips",
)
"""Passes that fold constants, and remove operators without effect."""

LEFT_OUT: Mapping[GraphOptimizationLevel, tuple[str, ...]] = {
    GraphOptimizationLevel.ORT_DISABLE_ALL: (*PLAIN_PASSES, *FUSION_PASSES, *LAYOUT_PASSES),
    GraphOptimizationLevel.ORT_ENABLE_BASIC: (*FUSION_PASSES, *LAYOUT_PASSES),
    GraphOptimizationLevel.ORT_ENABLE_EXTENDED: LAYOUT_PASSES,
    GraphOptimizationLevel.ORT_ENABLE_LAYOUT: (),
    GraphOptimizationLevel.ORT_ENABLE_ALL: (),
}
"""Level → the graph passes that are left out, as with `disable`."""

EXTERNAL_NAME = "session.optimized_model_external_initializers_file_name"
EXTERNAL_BYTES = "session.optimized_model_external_initializers_min_size_in_bytes"

CONFIG_KEYS = keyed(
    ("session.load_model_format", Effect.HONOURED, "models are ONNX files, not those of ORT", ("", "ONNX")),
    ("session.save_model_format", Effect.HONOURED, "models are written as ONNX files", ("", "ONNX")),
    ("session.set_denormal_as_zero", Effect.HONOURED, "denormal numbers are computed with as they are", ("0",)),
    ("session.disable_prepacking", Effect.NONE, "constants are packed when a model is compiled", ("0",)),
    (EXTERNAL_NAME, Effect.HONOURED, "the file of large constants beside `optimized_model_filepath`", ()),
    (EXTERNAL_BYTES, Effect.HONOURED, "constants of fewer bytes stay in the model; 1024 by default", ()),
    ("session.disable_cpu_ep_fallback", Effect.NONE, "everything runs on the CPU", ()),
    ("session.disable_aot_function_inlining", Effect.NONE, "functions are inlined first", ()),
    ("session.dynamic_block_base", Effect.NONE, "operators are partitioned at compile time", ()),
    ("session.inter_op.allow_spinning", Effect.NONE, "operators run one after another", ()),
    ("session.intra_op.allow_spinning", Effect.NONE, "threads spin for 0.3 ms, then sleep", ("1",)),
    ("session.force_spinning_stop", Effect.NONE, "threads sleep within 0.3 ms behind a call", ()),
    (ASSIGNMENT_KEY, Effect.HONOURED, "whether `get_provider_graph_assignment_info` may be asked", ("0", "1")),
    ("session.strict_shape_type_inference", Effect.HONOURED, "as `strict`", ("0", "1")),
    ("session.use_device_allocator_for_initializers", Effect.NONE, "constants do not use the arena", ()),
    ("session.use_env_allocators", Effect.NONE, "a session has no allocator", ()),
    ("optimization.enable_gelu_approximation", Effect.NONE, "functions are not replaced", ("0",)),
    ("optimization.disable_specified_optimizers", Effect.REFUSED, "disable=[…] names our passes", ()),
    ("session.intra_op_thread_affinities", Effect.REFUSED, "start the process with 'taskset'", ()),
    ("session.inter_op_thread_affinities", Effect.REFUSED, "operators run one after another", ()),
)
"""The keys of `add_session_config_entry`."""

METHODS = (
    Treatment("add_free_dimension_override_by_name", Effect.HONOURED, "as `dimensions`"),
    Treatment("add_free_dimension_override_by_denotation", Effect.HONOURED, "for the dimensions that have it"),
    Treatment("add_initializer", Effect.HONOURED, "takes the place of the constant of that name"),
    Treatment("add_external_initializers", Effect.HONOURED, "take the place of constants, in files or not"),
    Treatment(
        "add_external_initializers_from_files_in_memory", Effect.HONOURED, "take the place of the files of constants"
    ),
    Treatment("add_provider", Effect.HONOURED, "as `providers`"),
    Treatment("has_providers", Effect.HONOURED, "whether `add_provider` was called"),
    Treatment("add_session_config_entry", Effect.HONOURED, "for the keys below; others give a warning"),
    Treatment("get_session_config_entry", Effect.HONOURED, "the value that was set"),
)
"""The effect of each method; those of `refused_names` are refused."""


class SessionOptions(Settings, Explained):
    """
    The options of a session, for users of onnxruntime; docs/api.md describes all of them.

    Keywords of `InferenceSession` that set the same thing must agree. An option that cannot be honoured raises
    `OptionError` when it is set.
    """

    __slots__ = ("denotations", "dimensions", "files", "initializers", "providers")

    KEYS = CONFIG_KEYS

    intra_op_num_threads = Setting(0, number, Effect.HONOURED, "as `threads`: 0 for all cores; one where it is not set")
    inter_op_num_threads = Setting(0, number, Effect.NONE, "operators run one after another, each in all threads")
    execution_mode = Setting(
        ExecutionMode.ORT_SEQUENTIAL,
        member(ExecutionMode),
        Effect.NONE,
        "operators run one after another, each in all threads: intra_op_num_threads",
        only=(ExecutionMode.ORT_SEQUENTIAL,),
    )
    execution_order = Setting(
        ExecutionOrder.DEFAULT,
        member(ExecutionOrder),
        Effect.NONE,
        "operators are ordered for little memory",
        only=(ExecutionOrder.DEFAULT, ExecutionOrder.MEMORY_EFFICIENT),
    )
    graph_optimization_level = Setting(
        GraphOptimizationLevel.ORT_ENABLE_ALL,
        member(GraphOptimizationLevel),
        Effect.HONOURED,
        "levels leave passes of the graph out, as `disable`; kernels and memory are optimized at all of them",
    )
    optimized_model_filepath = Setting(
        "",
        path_text,
        Effect.HONOURED,
        "the optimized graph, of the sizes that dimensions have, is written as an ONNX model",
    )
    enable_profiling = Setting(False, flag, Effect.HONOURED, "machine code keeps the time of each instruction")
    profile_file_prefix = Setting("onnxruntime_profile_", text, Effect.HONOURED, "the name that profiles begin with")
    log_severity_level = Setting(-1, severity, Effect.HONOURED, "which messages of the session go to stderr")
    log_verbosity_level = Setting(0, number, Effect.NONE, "messages of severity 0 have one level")
    logid = Setting("", text, Effect.HONOURED, "stands in front of the messages of the session")
    enable_mem_pattern = Setting(True, flag, Effect.NONE, "memory is planned at compile time")
    enable_cpu_mem_arena = Setting(True, flag, Effect.NONE, "the memory of a session is always planned")
    enable_mem_reuse = Setting(
        True, flag, Effect.NONE, "buffers with disjoint lifetimes always share memory", only=(True,)
    )
    use_deterministic_compute = Setting(False, flag, Effect.NONE, "the same inputs always give the same bits")
    use_per_session_threads = Setting(
        True,
        flag,
        Effect.NONE,
        "sessions share threads; off behind set_global_thread_pool_sizes, and there alone",
    )

    def __init__(self) -> None:
        super().__init__()
        self.dimensions: dict[str, int] = {}
        """Free dimension → its size."""
        self.denotations: dict[str, int] = {}
        """The denotation of a free dimension, such as `DATA_BATCH` → its size."""
        self.initializers: dict[str, OrtValue] = {}
        """Constant → its replacement."""
        self.files: dict[str, bytes] = {}
        """File of constants, by its name in the model → its content."""
        self.providers: list[tuple[str, dict[str, Any]]] = []

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Set the size of a free dimension of inputs; raises `OptionError` for values that are no size."""
        self.dimensions[_named(name)] = _size(name, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """
        Set the size of the free dimensions of inputs with a denotation; raises `OptionError` for values that are no
        size.
        """
        self.denotations[_named(denotation)] = _size(denotation, size)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replace a constant by a tensor; raises `InputError` for anything but an `OrtValue`."""
        if not isinstance(cast("object", value), OrtValue):
            hint = "OrtValue.ortvalue_from_numpy makes one of an array"
            raise InputError(f"the initializer '{name}' is a '{type(value).__name__}', not an OrtValue", hint=hint)
        self.initializers[_named(name)] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Put tensors in the place of constants; raises `InputError` for lists of different lengths."""
        for name, value in _pairs(names, values):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[Any], lengths: Sequence[int]
    ) -> None:
        """Provide the contents of files of constants, with their lengths; raises `InputError` as above."""
        for name, (buffer, length) in _pairs(names, list(_pairs(buffers, lengths))):
            try:
                self.files[_named(name)] = bytes(memoryview(buffer).cast("B")[:length])
            except TypeError as error:
                reason = f"the content of '{name}' is a '{type(buffer).__name__}', and its length {length!r}"
                raise InputError(reason, hint="contiguous bytes and their length") from error

    def add_provider(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        """Add a provider, unless the session gets others."""
        if options is not None and not isinstance(cast("object", options), Mapping):
            raise OptionError(f"options of '{name}' cannot be of the type '{type(options).__name__}'", hint="a dict")
        self.providers.append((name, dict(options or {})))

    def has_providers(self) -> bool:
        """Whether there is a provider."""
        return bool(self.providers)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set an option by key; raises `OptionError` for an unsupported one that would change results or files."""
        self.add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """The value of a key; raises `OptionError` if it is not set."""
        return self.get_entry(key)

    @property
    def external_form(self) -> ExternalForm:
        """
        The paths of the optimized model and of its large constants; raises `OptionError` for a size that is no number.
        """
        least = self.entries.get(EXTERNAL_BYTES, "1024")
        if not least.isdecimal():
            raise OptionError(f"the setting {EXTERNAL_BYTES}={least} is invalid", hint="a number of bytes")
        return ExternalForm(Path(self.optimized_model_filepath), self.entries.get(EXTERNAL_NAME, ""), int(least))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The passes that the level of optimization leaves out."""
        return LEFT_OUT[self.graph_optimization_level]


def _named(name: object) -> str:
    """A name; raises `OptionError` for other values."""
    if not isinstance(name, str):
        raise OptionError(f"a '{type(name).__name__}' is no name", hint="a text")
    return name


def _size(name: str, size: object) -> int:
    """The size of a free dimension; raises `OptionError` for other values."""
    found = whole_number(size)
    if found is None or found < 0:
        raise OptionError(f"{size!r} is not a valid size of '{name}'", hint="a whole number from 0 on")
    return found


def _pairs(names: Sequence[Any], values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each name with its value; raises `InputError` for more of one."""
    for given in (names, values):
        if isinstance(given, str) or not isinstance(cast("object", given), Sequence):
            raise InputError(f"a '{type(given).__name__}' is no list of constants", hint="one name for each")
    if len(names) != len(values):
        raise InputError(f"there are {len(names)} names for {len(values)} values", hint="one for each")
    return list(zip(names, values, strict=True))
