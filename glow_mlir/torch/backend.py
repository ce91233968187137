"""The backend of `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, cast

import torch
import torch._dynamo.config
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext

from glow_mlir.api.session_keywords import check_keywords
from glow_mlir.errors import OptionError
from glow_mlir.torch.compiled_graph import CompiledGraph
from glow_mlir.torch.decompositions import decompositions, whole_resamplings
from glow_mlir.torch.partition import partition
from glow_mlir.torch.recurrent_layers import put_recurrences

# Otherwise Dynamo leaves recurrent layers to PyTorch.
torch._dynamo.config.allow_rnn = True


def compile_graph(
    module: fx.GraphModule, inputs: Sequence[Any], *, phase: str, options: Mapping[str, Any]
) -> Callable[[list[Any]], list[Any]]:
    """Compile a functional graph of `aten` for one phase: `inference`, `forward` or `backward`."""
    static: Sequence[int] = ()
    context = TracingContext.try_get()
    if phase == "inference" and context is not None and context.fw_metadata is not None:
        static = context.fw_metadata.static_input_indices
    return CompiledGraph(module, phase, options, static).boxed()


def glow(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """
    Compile a graph that Dynamo traced: `torch.compile(model, backend="glow", options={"precision": "bf16"})`.

    `options` are keywords of `InferenceSession`. Raises `OptionError` for unknown options.
    """
    if mode is not None:
        raise OptionError(f"mode='{mode}' is not supported by this backend", hint="options={'precision': …}")
    chosen = checked_options(options)
    put_recurrences(module)
    compiler = aot_autograd(
        fw_compiler=partial(compile_graph, phase="forward", options=chosen),
        bw_compiler=partial(compile_graph, phase="backward", options=chosen),
        inference_compiler=partial(compile_graph, phase="inference", options=chosen),
        decompositions=cast("Any", decompositions()),
        partition_fn=partition,
        keep_inference_input_mutations=True,
    )
    with whole_resamplings() if has_fixed_sizes(module) else nullcontext():
        return compiler(module, inputs)


def has_fixed_sizes(module: fx.GraphModule) -> bool:
    """Whether all inputs of a traced graph are tensors of fixed sizes."""
    values = [node.meta.get("example_value") for node in module.graph.find_nodes(op="placeholder")]
    sizes = [size for value in values for size in getattr(value, "shape", (value,))]
    return not any(isinstance(size, torch.SymInt) for size in sizes)


def checked_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of a compilation as keywords of a session; raises `OptionError`."""
    given = {"threads": torch.get_num_threads(), **(options or {})}
    check_keywords(given)
    return given
