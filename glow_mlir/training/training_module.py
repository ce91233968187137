"""From a model for inference to a module with functions that predict, evaluate and train on shared state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import ModuleOp, StringAttr

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.storage import FuncOp, PlaceholderOp
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.errors import OptionError
from glow_mlir.frontends.onnx.importer import Model, ModelSource, import_model, open_model
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.frontends.onnx.signature import signature_of
from glow_mlir.frontends.onnx.training_form import parameters_of, separated, statistics_of, training_form
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.support.activity import telling_once, warn
from glow_mlir.support.symbols import GivenDimension
from glow_mlir.training.losses import BinaryCrossEntropyWithLogits, CrossEntropy, Loss, OutputLoss
from glow_mlir.training.optimizers import Optimizer
from glow_mlir.training.rounding import Rounding
from glow_mlir.training.step import LOSS, StepBuilder, taken

SCORES: dict[type[Loss], str] = {CrossEntropy: "Softmax", BinaryCrossEntropyWithLogits: "Sigmoid"}
"""Loss that takes scores → the operator that turns scores into probabilities."""

PREDICT, EVALUATE, TRAIN = "predict", "evaluate", "train"
"""The functions of a training module: inference, inference with the loss, and a step."""

GRADIENTS, UPDATE = "gradients", "update"
"""The functions that replace a step: accumulate the gradients of some samples, and update parameters."""


def trainable_model(source: ModelSource) -> Model:
    """A model whose initializers are kept separate; raises `ModelError` for anything but an ONNX model."""
    opened = open_model(source)
    return replace(opened, proto=separated(opened.proto))


def batch_dimensions(source: ModelSource, dimensions: Mapping[str, GivenDimension]) -> tuple[list[str], int | None]:
    """The free dimensions that are first axes of inputs, and the size of the first axis if it is not free."""
    inputs = signature_of(open_model(source), dimensions).inputs
    sizes = [argument.shape[0] for argument in inputs if argument.shape]
    free = [size for size in sizes if isinstance(size, str)]
    return list(dict.fromkeys(free)), next((size for size in sizes if isinstance(size, int)), None)


def training_module(
    model: Model,
    losses: Mapping[str, Loss],
    optimizer: Optimizer,
    trainable: Collection[str] | None = None,
    dimensions: Mapping[str, GivenDimension] | None = None,
    seed: int = 0,
    rounding: Rounding | None = None,
    is_split: bool = False,
    strict: bool = False,
) -> ModuleOp:
    """
    The functions `predict`, `evaluate` and `train` of an ONNX model for inference, as returned by `trainable_model`.

    `losses` has the loss of each output with one, by default of the first output. `trainable` names the initializers
    that are parameters, also by patterns such as `layer4.*`; by default they are all floats except scalars and running
    statistics. `train` returns only the loss, `evaluate` also the outputs. Random numbers, for example of Dropout,
    follow from `seed`. All three functions apply `rounding`. If the module `is_split`, `train` is replaced by
    `gradients` and `update`: the gradients of the loss times its share (an input) accumulate in states of the
    parameters, until an update consumes them. The loss of `evaluate` has a share as well. Recoverable faults of the
    model cause warnings, or a `ModelError` with `strict`. Raises `OptionError` for an unknown name or a seed of more
    than 64 bits, and the errors of `import_model`.
    """
    if not -1 << 63 <= seed < 1 << 63:
        raise OptionError(f"seed {seed} has more than 64 bits", hint="give one from -2**63 to 2**63 - 1")
    _check_names(model, step := GRADIENTS if is_split else TRAIN)
    _warn_of_probabilities(model, losses)
    state = dict.fromkeys(statistics_of(model.proto.graph), False)
    state |= dict.fromkeys(_parameters(model, trainable), True)
    form = training_form(model.proto)
    trained = replace(model, proto=form.model, doubts=(), customs=())
    with telling_once(set()):
        module = import_model(model, dimensions, PREDICT, strict=strict, state=state, seed=seed)
        import_model(trained, dimensions, step, state=state, module=module, seed=seed)
    functions = {function.sym_name.data: function for function in high_functions(module)}
    if rounding is not None:
        for function in functions.values():
            rounding.round(function, Storage(module))
    _add_evaluation(module, functions[PREDICT], losses, is_split)
    names = _make_step(module, functions[step], losses, None if is_split else optimizer, form.kept)
    if is_split:
        _add_update(module, functions[step], names, optimizer)
    return module


def _check_names(model: Model, step: str) -> None:
    """
    Raise `OptionError` if the model uses the names of the functions, or an input or initializer has the loss's name.
    """
    graph = model.proto.graph
    read = {*initializers_of(graph), *(value.name for value in graph.input)}
    needed = {PREDICT, EVALUATE, step, *((UPDATE,) if step == GRADIENTS else ())}
    if found := sorted(needed & (read | {value.name for value in graph.output}) | {LOSS} & read):
        raise taken(found[0])


def _warn_of_probabilities(model: Model, losses: Mapping[str, Loss]) -> None:
    """Warn about an output that is already probabilities, when its loss would convert it to probabilities again."""
    graph = model.proto.graph
    makers = {output: node.op_type for node in graph.node for output in node.output}
    for name, loss in losses.items():
        output = name or graph.output[0].name
        if (maker := makers.get(output)) is not None and maker == SCORES.get(type(loss)):
            reason = f"output '{output}' is the result of a {maker}, but its loss expects what comes before it"
            warn(OptionError(reason, file=str(model.path or ""), hint=f"train the model without the {maker}"))


def _parameters(model: Model, trainable: Collection[str] | None) -> list[str]:
    """The initializers that are parameters; raises `OptionError` for a pattern that matches none."""
    graph = model.proto.graph
    if trainable is None:
        return list(parameters_of(graph))
    names = list(initializers_of(graph))
    found: dict[str, None] = {}
    for pattern in trainable:
        matching = [name for name in names if fnmatchcase(name, pattern)]
        if not matching:
            listed = ", ".join(names[:10]) or "none"
            raise OptionError(f"the model has no initializer '{pattern}'", hint=f"it has {listed}")
        found.update(dict.fromkeys(matching))
    return list(found)


def _add_evaluation(module: ModuleOp, predict: FuncOp, losses: Mapping[str, Loss], is_shared: bool) -> None:
    """Add a function that returns the outputs of the model and their loss, and changes nothing."""
    evaluate = predict.clone()
    evaluate.sym_name = StringAttr(EVALUATE)
    module.body.block.insert_op_after(evaluate, predict)
    builder = StepBuilder(module, evaluate)
    chosen, outputs = _chosen(losses, builder), builder.outputs()
    loss = builder.loss(chosen, is_shared)
    if LOSS not in outputs:
        builder.output(LOSS, loss)
    elif rank_of(outputs[LOSS].input) or not (len(chosen) == 1 and isinstance(chosen.get(LOSS), OutputLoss)):
        raise OptionError(f"the model has an output '{LOSS}', which is not the loss", hint="rename it")
    else:
        builder.save(loss, outputs[LOSS].storage_name)
        outputs[LOSS].detach()
        outputs[LOSS].erase()
    builder.finish()


def _make_step(
    module: ModuleOp, train: FuncOp, losses: Mapping[str, Loss], optimizer: Optimizer | None, kept: Mapping[str, str]
) -> Collection[str]:
    """
    Turn the function of the model in training mode into a step, or into a function of gradients if there is no
    optimizer.

    `kept` are outputs that are state. Returns the names of parameters with a gradient.
    """
    builder = StepBuilder(module, train)
    outputs = builder.outputs()
    loss = builder.loss(_chosen(losses, builder, kept), is_shared=optimizer is None)
    gradients = builder.gradients(loss)
    if optimizer is None:
        builder.accumulate(gradients)
    else:
        parameters = builder.parameters()
        builder.optimize({name: parameters[name] for name in gradients}, gradients, optimizer)
    for name, save in outputs.items():
        value = save.input
        builder.forget_output(save)
        if name in kept:
            builder.save(value, _state_name(builder, kept[name]))
    builder.output(LOSS, loss)
    builder.finish()
    return gradients


def _add_update(module: ModuleOp, gradients: FuncOp, names: Collection[str], optimizer: Optimizer) -> None:
    """Add a function that updates the parameters by the accumulated gradients."""
    update = FuncOp.named(UPDATE, (), gradients.location)
    module.body.block.insert_op_after(update, gradients)
    builder = StepBuilder(module, update)
    parameters = builder.read(names)
    builder.optimize(parameters, builder.accumulated(parameters), optimizer)
    builder.finish()


def _state_name(builder: StepBuilder, name: str) -> str:
    """The symbol of a state, from its public name."""
    for symbol, op in builder.storage.by_name.items():
        if isinstance(op, PlaceholderOp) and op.role == "state" and op.public_name == name:
            return symbol
    raise OptionError(f"the running statistic '{name}' is no initializer", hint="export the model with its weights")


def _chosen(losses: Mapping[str, Loss], builder: StepBuilder, kept: Collection[str] = ()) -> dict[str, Loss]:
    """The losses by output name; the name "" stands for the first output."""
    first = next(name for name in builder.outputs() if name not in kept)
    return {name or first: loss for name, loss in losses.items()}
