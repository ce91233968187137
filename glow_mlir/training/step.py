"""Training steps as functions of a module: forward, loss, gradients, optimizer, and the state between steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.constants.storage import Storage, content_of
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.expressions import Tensor, converted, maximum, minimum, sqrt
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumSquareOp
from glow_mlir.dialects.glow_high.returns import ReturnOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import element_of, shape_of, sizes_of, tensor
from glow_mlir.errors import OptionError
from glow_mlir.frontends.builder.emission import over_all
from glow_mlir.frontends.builder.formulas import WIDE, Formulas, like
from glow_mlir.frontends.builder.module_builder import named_location
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.traversal import subtree
from glow_mlir.support.dataclass import dataclass
from glow_mlir.training.batches import targets_name
from glow_mlir.training.losses import Loss, OutputLoss, wide_element
from glow_mlir.training.optimizers import Optimizer, Step

LOSS = "loss"
"""The output that is the loss."""
RATE = "learning_rate"
"""The state that is the base learning rate, an f64."""
NUMBER = "step"
"""The state that counts steps, an i64."""
SHARE = "loss.share"
"""The input for the share of some samples' loss in that of a batch."""
GRADIENT = "gradient"
"""The state in which the gradients of a parameter accumulate."""

_LOCATION = named_location("training")


@dataclass
class StepBuilder:
    """Append the operators of training (loss, gradients, optimizer) to a function."""

    module: ModuleOp
    function: FuncOp
    storage: Storage = field(init=False)
    _end: ReturnOp = field(init=False)
    """The insertion point of operators."""
    _bindings: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.storage = Storage(self.module)
        self._bindings = list(self.function.binding_names)
        self._end = ReturnOp.create(location=_LOCATION)
        self.function.block.add_op(self._end)

    @property
    def emit(self) -> Emitter:
        """An emitter of operators at the end of the function."""
        return Emitter(self._end, self.storage)

    def finish(self) -> None:
        """Update the bindings of the function to the storage it uses."""
        self._end.detach()
        self._end.erase()
        bound = FuncOp.named(self.function.sym_name.data, self._bindings)
        self.function.properties["bindings"] = bound.bindings

    # Placeholders

    def input(self, name: str, type_: TensorType[Attribute]) -> SSAValue:
        """An input of the function, which other functions of the module may share."""
        known = self._known(name, type_, "input")
        return self._read(name, known or self.storage.add(PlaceholderOp.bound(name, type_, "input", _LOCATION)))

    def state(self, name: str, initial: np.ndarray, type_: TensorType[Attribute]) -> SSAValue:
        """A state with an initial value, which functions of the module share."""
        placeholder = self._known(name, type_, "state")
        if placeholder is None:
            placeholder = PlaceholderOp.bound(name, type_, "state", _LOCATION)
            if initial.any():
                placeholder.give_content(content_of(initial, type_))
            self.storage.add(placeholder)
        return self._read(name, placeholder)

    def _known(self, name: str, type_: TensorType[Attribute], role: str) -> PlaceholderOp | None:
        """
        The storage of that name, type and role in another function of the module.

        Raises `OptionError` if the model uses the name for something else.
        """
        known = self.storage.by_name.get(name)
        if known is None:
            return None
        if isinstance(known, PlaceholderOp) and known.role == role and known.type == type_:
            if name not in self._bindings:
                return known
        raise taken(name)

    def _read(self, name: str, placeholder: object) -> SSAValue:
        assert isinstance(placeholder, PlaceholderOp)
        self._bindings.append(name)
        return self.emit.insert(GetOp.of(placeholder, _LOCATION)).results[0]

    def save(self, value: SSAValue, name: str) -> None:
        """Overwrite a state, or an existing output."""
        self.emit.insert(SaveOp.to(value, name, _LOCATION))

    def output(self, name: str, value: SSAValue) -> None:
        """Add an output to the function."""
        symbol = self.storage.unique_name(name)
        placeholder = PlaceholderOp.bound(symbol, tensor(shape_of(value), element_of(value)), "output", _LOCATION)
        if symbol != name:
            placeholder.label = StringAttr(name)
        self.storage.add(placeholder)
        self._bindings.append(symbol)
        self.save(value, symbol)

    # What a function has

    def outputs(self) -> dict[str, SaveOp]:
        """The outputs of the function by public name, with the operations that save them."""
        found: dict[str, SaveOp] = {}
        for op in self.function.block.ops:
            placeholder = self.storage.by_name[op.storage_name] if isinstance(op, SaveOp) else None
            if isinstance(op, SaveOp) and isinstance(placeholder, PlaceholderOp) and placeholder.role == "output":
                found[placeholder.public_name] = op
        return found

    def forget_output(self, save: SaveOp) -> None:
        """Remove an output from the function; its value stays."""
        self._bindings.remove(save.storage_name)
        self.storage.by_name.pop(save.storage_name).detach()
        save.detach()
        save.erase()

    def parameters(self) -> dict[str, SSAValue]:
        """The trainable states that the function reads, by name."""
        found: dict[str, SSAValue] = {}
        for op in self.function.block.ops:
            placeholder = self.storage.by_name[op.storage_name] if isinstance(op, GetOp) else None
            if isinstance(placeholder, PlaceholderOp) and placeholder.trainable is not None:
                found[placeholder.sym_name.data] = op.results[0]
        return found

    # Loss and optimizer

    def loss(self, losses: Mapping[str, Loss], is_shared: bool = False) -> SSAValue:
        """
        The sum of the losses of outputs, each with an input for its targets; raises `OptionError` for an unknown
        output.

        The input is `targets`, or `OUTPUT.targets` if several outputs have losses. If the loss `is_shared`, each is
        multiplied by an input of its type, named by `share_name`.
        """
        outputs, total = self.outputs(), None
        for name, loss in losses.items():
            if name not in outputs:
                raise OptionError(f"the model has no output '{name}'", hint=f"it has {', '.join(outputs)}")
            found = self._loss(outputs[name].input, loss, targets_name(name, losses))
            formulas = Formulas(self.emit)
            if is_shared:
                share = self.input(share_name(name, losses), tensor((), element_of(found)))
                found = formulas.value(formulas.of(found) * formulas.of(share))
            total = found if total is None else formulas.value(formulas.of(total) + formulas.of(found))
        if total is None:
            raise OptionError("there is no loss", hint="name one for an output")
        return total

    def _loss(self, output: SSAValue, loss: Loss, targets: str) -> SSAValue:
        """The loss of an output, with an input of that name for targets."""
        if isinstance(loss, OutputLoss):
            return loss.reduced(output, self.emit)
        type_ = loss.targets(tensor(shape_of(output), element_of(output)))
        return loss.emitted(output, self.input(targets, type_), self.emit)

    def gradients(self, loss: SSAValue) -> dict[str, SSAValue]:
        """
        The gradient of a loss with respect to each parameter that it depends on, by name; other parameters do not
        change.

        Raises `OptionError` if there is no such parameter.
        """
        reached = _reached(loss)
        parameters = {name: value for name, value in self.parameters().items() if value in reached}
        if not parameters:
            raise OptionError("the loss depends on no trainable parameter", hint="name initializers to train")
        return dict(zip(parameters, self.emit.all(GradientOp, loss, None, list(parameters.values())), strict=True))

    def accumulate(self, gradients: Mapping[str, SSAValue]) -> None:
        """Add gradients to their accumulators, in f32 for half floats."""
        for name, gradient in gradients.items():
            total, formulas = self._total(name, gradient), Formulas(self.emit)
            known = formulas.of(total)
            self.save(
                formulas.value(known + converted(formulas.of(gradient), known.element)), slot_name(name, GRADIENT)
            )

    def accumulated(self, parameters: Mapping[str, SSAValue]) -> dict[str, SSAValue]:
        """The accumulated gradients of parameters; the accumulators are reset."""
        found: dict[str, SSAValue] = {}
        for name, value in parameters.items():
            found[name] = self._total(name, value)
            zeros = self.emit.splat(0, found[name], sizes_of(value))
            self.save(zeros, slot_name(name, GRADIENT))
        return found

    def _total(self, name: str, like: SSAValue) -> SSAValue:
        """The accumulator of a parameter's gradient."""
        shape, element = shape_of(like), wide_element(element_of(like))
        return self.state(slot_name(name, GRADIENT), np.zeros(shape, numpy_dtype(element)), tensor(shape, element))

    def read(self, names: Iterable[str]) -> dict[str, SSAValue]:
        """States of the module, which the function reads from now on."""
        known = self.storage.by_name
        return {name: self._read(name, known[name]) for name in names}

    def optimize(
        self, parameters: Mapping[str, SSAValue], gradients: Mapping[str, SSAValue], optimizer: Optimizer
    ) -> None:
        """Update parameters by a step of an optimizer along their gradients."""
        formulas = Formulas(self.emit)
        clipped = _clipped([formulas.of(gradients[name]) for name in parameters], optimizer, formulas)
        step = self._step(optimizer, formulas)
        for (name, value), gradient in zip(parameters.items(), clipped, strict=True):
            self._update(name, value, gradient, optimizer, step)

    def _step(self, optimizer: Optimizer, formulas: Formulas) -> Step:
        """Count the step, and compute its learning rate."""
        number = self.state(NUMBER, np.zeros((), np.int64), tensor((), i64))
        base = self.state(RATE, np.array(optimizer.learning_rate), tensor((), WIDE))
        counted = formulas.of(number) + 1
        self.save(formulas.value(counted), NUMBER)
        wide = formulas.of(self.emit(CastOp, formulas.value(counted), to=WIDE))
        rate = formulas.kept(formulas.of(base) * optimizer.schedule.factor(wide - 1.0))
        return Step(wide, rate, formulas)

    def _update(self, name: str, value: SSAValue, gradient: Tensor, optimizer: Optimizer, step: Step) -> None:
        """Update a parameter and its optimizer state; in f32 for half floats."""
        formulas, shape, element = step.formulas, shape_of(value), wide_element(element_of(value))
        kept: dict[str, Tensor] = {}
        for slot, initial in optimizer.kept().items():
            begin = np.full(shape, initial, numpy_dtype(element))
            kept[slot] = formulas.of(self.state(slot_name(name, slot), begin, tensor(shape, element)))
        known, given = converted(formulas.of(value), element), converted(gradient, element)
        parameter, slots = optimizer.updated(known, given, kept, step)
        for slot, formula in slots.items():
            self.save(formulas.value(formula), slot_name(name, slot))
        self.save(formulas.value(converted(parameter, element_of(value))), name)


def taken(name: str) -> OptionError:
    """The error for a model that uses a name needed by training."""
    return OptionError(f"the model has something of the name '{name}', which training needs", hint="rename it")


def share_name(output: str, losses: Mapping[str, Loss]) -> str:
    """The input for the share of an output's loss; `loss.share` for a single loss."""
    return SHARE if len(losses) == 1 else f"{output}.{SHARE}"


def slot_name(parameter: str, slot: str) -> str:
    """The name of a state that an optimizer keeps for a parameter."""
    return f"{parameter}.{slot}"


def gradient_states(names: Collection[str]) -> list[str]:
    """The names of states that are gradient accumulators."""
    return [name for name in names if name.endswith(f".{GRADIENT}") and name.removesuffix(f".{GRADIENT}") in names]


def _reached(value: SSAValue) -> set[SSAValue]:
    """A value, and all values it is computed from."""
    found, waiting = {value}, [value]
    while waiting:
        if isinstance(owner := waiting.pop().owner, Operation):
            read = {operand for inner in subtree(owner) for operand in inner.operands} - found
            found |= read
            waiting += read
    return found


def _clipped(gradients: Sequence[Tensor], optimizer: Optimizer, formulas: Formulas) -> list[Tensor]:
    """Gradients with limited elements and joint norm (as `torch.nn.utils.clip_grad_…`)."""
    found = list(gradients)
    if (limit := optimizer.clip_value) is not None:
        found = [formulas.kept(minimum(maximum(gradient, -limit), limit)) for gradient in found]
    if (most := optimizer.clip_norm) is None:
        return found
    total: Tensor | None = None
    for gradient in found:
        sum_of_squares = over_all(ReduceSumSquareOp, formulas.value(gradient), formulas.emit)
        squares = converted(formulas.of(sum_of_squares), WIDE)
        total = squares if total is None else total + squares
    assert total is not None
    scale = formulas.kept(minimum(most / (sqrt(total) + 1e-6), 1.0))
    return [gradient * like(scale, gradient) for gradient in found]
