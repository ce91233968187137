"""Modules that train: from a model that infers to functions that predict, evaluate and train, on the same state."""

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
from glow_mlir.frontends.onnx.signature import signature_of
from glow_mlir.frontends.onnx.sparse import initializers_of
from glow_mlir.frontends.onnx.training_form import parameters_of, separated, statistics_of, training_form
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.support.activity import telling_once, warn
from glow_mlir.support.symbols import Dimension
from glow_mlir.training.losses import BinaryCrossEntropyWithLogits, CrossEntropy, Loss, OutputLoss
from glow_mlir.training.optimizers import Optimizer
from glow_mlir.training.rounding import Rounding
from glow_mlir.training.step import LOSS, StepBuilder, taken

SCORES: dict[type[Loss], str] = {CrossEntropy: "Softmax", BinaryCrossEntropyWithLogits: "Sigmoid"}
"""Losses that take scores → what makes probabilities of these."""

PREDICT, EVALUATE, TRAIN = "predict", "evaluate", "train"
"""The functions of a module that trains: the model as it is, its loss besides, and a step."""

GRADIENTS, UPDATE = "gradients", "update"
"""The functions that a step is cut into: gradients of some samples, added to those before, and what they change."""


def trainable_model(source: ModelSource) -> Model:
    """A model whose initializers are told apart; raises `ModelError` for what is no ONNX model."""
    opened = open_model(source)
    return replace(opened, proto=separated(opened.proto))


def batch_dimensions(source: ModelSource, dimensions: Mapping[str, Dimension]) -> tuple[list[str], int | None]:
    """The free dimensions that are the first axis of an input, and its size where it is not free."""
    inputs = signature_of(open_model(source), dimensions).inputs
    sizes = [argument.shape[0] for argument in inputs if argument.shape]
    free = [size for size in sizes if isinstance(size, str)]
    return list(dict.fromkeys(free)), next((size for size in sizes if isinstance(size, int)), None)


def training_module(
    model: Model,
    losses: Mapping[str, Loss],
    optimizer: Optimizer,
    trainable: Collection[str] | None = None,
    dimensions: Mapping[str, Dimension] | None = None,
    seed: int = 0,
    rounding: Rounding | None = None,
    is_split: bool = False,
    strict: bool = False,
) -> ModuleOp:
    """
    The functions `predict`, `evaluate` and `train` of an ONNX model that infers, as `trainable_model` gives it.

    `losses` has the loss of each output that has one, by default the first. `trainable` names the initializers that are
    parameters, also by patterns such as `layer4.*`; by default they are all floats but scalars and running statistics.
    `train` gives the loss alone, `evaluate` the outputs besides.
    Random numbers, as those by which Dropout drops elements, follow from `seed`. All three round what `rounding` says.
    In the place of `train`, a module that `is_split` has `gradients` and `update`: the gradients of the loss times its
    share, an input, add up in state of the parameters, until an update takes them. The loss of `evaluate` has its share
    as well.
    Of what the model says wrongly a warning tells, or a `ModelError` where the import is `strict`.
    Raises `OptionError` for an unknown name or a seed of more than 64 bits, and what `import_model` raises.
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
    """Raise `OptionError` where the model has names of functions, or an input or initializer that of the loss."""
    graph = model.proto.graph
    read = {*initializers_of(graph), *(value.name for value in graph.input)}
    needed = {PREDICT, EVALUATE, step, *((UPDATE,) if step == GRADIENTS else ())}
    if found := sorted(needed & (read | {value.name for value in graph.output}) | {LOSS} & read):
        raise taken(found[0])


def _warn_of_probabilities(model: Model, losses: Mapping[str, Loss]) -> None:
    """Tell of an output that is probabilities already, of which its loss would make probabilities once more."""
    graph = model.proto.graph
    makers = {output: node.op_type for node in graph.node for output in node.output}
    for name, loss in losses.items():
        output = name or graph.output[0].name
        if (maker := makers.get(output)) is not None and maker == SCORES.get(type(loss)):
            reason = f"output '{output}' is that of a {maker}, and its loss takes what stands in front of it"
            warn(OptionError(reason, file=str(model.path or ""), hint=f"train the model without the {maker}"))


def _parameters(model: Model, trainable: Collection[str] | None) -> list[str]:
    """The initializers that are parameters; raises `OptionError` for a pattern that none has."""
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
    """Add a function that gives the outputs of the model and their loss, and changes nothing."""
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
    Make a step of the function that computes the model as it is in training, or gradients where there is no optimizer.

    `kept` are outputs that are state. Gives the names of what has a gradient.
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
    """Add a function that changes the parameters along the gradients that have added up."""
    update = FuncOp.named(UPDATE, (), gradients.location)
    module.body.block.insert_op_after(update, gradients)
    builder = StepBuilder(module, update)
    parameters = builder.read(names)
    builder.optimize(parameters, builder.accumulated(parameters), optimizer)
    builder.finish()


def _state_name(builder: StepBuilder, name: str) -> str:
    """The symbol of the state that callers know by a name."""
    for symbol, op in builder.storage.by_name.items():
        if isinstance(op, PlaceholderOp) and op.role == "state" and op.public_name == name:
            return symbol
    raise OptionError(f"the running statistic '{name}' is no initializer", hint="export the model with its weights")


def _chosen(losses: Mapping[str, Loss], builder: StepBuilder, kept: Collection[str] = ()) -> dict[str, Loss]:
    """The losses by output; that of the name "" is of the first output."""
    first = next(name for name in builder.outputs() if name not in kept)
    return {name or first: loss for name, loss in losses.items()}
