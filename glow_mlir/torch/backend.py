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
from torch._dynamo.exc import TorchDynamoException
from torch._guards import TracingContext

from glow_mlir.torch.compiled_graph import CompiledGraph
from glow_mlir.torch.decompositions import decompositions, whole_resamplings
from glow_mlir.torch.graph_options import GraphOptions, graph_options
from glow_mlir.torch.graph_reports import new_graph
from glow_mlir.torch.partition import partition
from glow_mlir.torch.recurrent_layers import put_recurrences
from glow_mlir.torch.safety_net import RAISED, SafetyNet

# Otherwise Dynamo leaves recurrent layers to PyTorch.
torch._dynamo.config.allow_rnn = True


def compile_graph(
    module: fx.GraphModule, inputs: Sequence[Any], *, phase: str, options: GraphOptions
) -> Callable[[list[Any]], list[Any]]:
    """Compile a functional graph of `aten` for one phase: `inference`, `forward` or `backward`."""
    static: Sequence[int] = ()
    context = TracingContext.try_get()
    if options.constants and phase == "inference" and context is not None and context.fw_metadata is not None:
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

    `options` are keywords of `InferenceSession`, and `fallback`: `"pytorch"`, the default, lets PyTorch compute what
    cannot be compiled, after a warning; `"error"` raises the error. With `constants=False`, weights are not constants
    in inference: calls see any write to them. Raises `OptionError` for unknown options.
    """
    chosen = graph_options(options, mode)
    try:
        return _traced(module, inputs, chosen)
    except (TorchDynamoException, *RAISED):  # The first is a message to Dynamo, which traces anew or breaks the graph.
        raise
    except Exception as error:
        report = new_graph("trace", len(module.graph.nodes), "")
        SafetyNet(report, chosen.raises).catch("a graph that could not be traced", error)
        return module.forward


def _traced(module: fx.GraphModule, inputs: Sequence[Any], options: GraphOptions) -> Callable[..., Any]:
    """Trace forward and backward of a graph, which are compiled when they are called."""
    put_recurrences(module)
    compiler = aot_autograd(
        fw_compiler=partial(compile_graph, phase="forward", options=options),
        bw_compiler=partial(compile_graph, phase="backward", options=options),
        inference_compiler=partial(compile_graph, phase="inference", options=options),
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
