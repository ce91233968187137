"""
The function by which XLA calls an entry, as a custom call of its foreign function interface (`xla/ffi/api/c_api.h`).

    handler(XLA_FFI_CallFrame* frame) -> XLA_FFI_Error*

The one attribute of the call is the address of the record of an entry (`runtime.xla_call_layout`). A call takes a free
slot of the record, or waits for one. Arguments and results of the call are the inputs and outputs of the entry, in
order. Threads of XLA take denormal numbers for zero; the entry computes with them. Offsets are those of version 0 of
the interface, in which structures grow only at their end.
"""

from __future__ import annotations

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.float_control import with_denormals
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i8, i32, i64, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.scf_to_llvm import ScfToLlvmPass
from glow_mlir.dialects.target import Target
from glow_mlir.ir.context import new_context
from glow_mlir.runtime import xla_call_layout as layout
from glow_mlir.support.dataclass import dataclass

_EXTENSION, _API, _ARGUMENTS, _RESULTS, _ATTRIBUTES = 8, 16, 72, 112, 160
"""In a frame, in bytes: its extension, the functions of XLA, and the arrays of arguments, results and attributes."""
_DATA = 24
"""In a buffer: the address of its elements."""
_SCALAR = 8
"""In an attribute: the address of its value."""
_METADATA, _MAJOR, _MINOR = 24, 24, 28
"""In the extension that asks for the version of the handler: the answer; in this, the numbers of the version."""
_API_MINOR, _CREATE_ERROR = 36, 48
"""In the functions of XLA: the second number of the version, and the function that makes an error."""
_ERROR_WORDS, _ERROR_MESSAGE, _ERROR_CODE = 4, 2, 3
"""The arguments of that function, in words: their number, and those that hold the message and the code."""
_ERROR_BYTES, _INTERNAL = 28, 13
"""The size of the arguments in bytes, and the code of an internal error."""

MESSAGE = b"the compiled function has failed"
"""What the error of a failed call says."""


def xla_handler(target: Target) -> bytes:
    """The object file with the handler for a machine."""
    module = ModuleBuilder(target)
    with define_function(module, layout.HANDLER, [ptr], result=ptr) as (b, (frame,)):
        b.give_back(_Handler(b, frame).answer())
    ScfToLlvmPass().apply(new_context(), module.module)
    return compile_text(emit_module(module.module), target)


@dataclass(frozen=True)
class _Handler:
    """Code that answers one call."""

    b: Builder
    frame: Value

    def answer(self) -> Value:
        """Answer the question for a version, or call the entry; return the error, or null."""
        b = self.b
        extension = self._at(self.frame, _EXTENSION).load(ptr)
        return b.either(b.address(extension).ne(0), lambda: [self._version(extension)], lambda: [self._called()])[0]

    def _version(self, extension: Value) -> Value:
        """Say that the handler is for version 0, and any addition to it."""
        metadata = self._at(extension, _METADATA).load(ptr)
        minor = self._at(self._at(self.frame, _API).load(ptr), _API_MINOR).load(i32)
        self._at(metadata, _MAJOR).store(self.b.constant(0, i32))
        self._at(metadata, _MINOR).store(minor)
        return self.b.null()

    def _called(self) -> Value:
        """Call the entry in a slot of its own; return the error, or null."""
        b = self.b
        attribute = self._at(self.frame, _ATTRIBUTES).load(ptr).load(ptr)
        record = self._at(attribute, _SCALAR).load(ptr).load(ptr)
        slot = self._free_slot(record)
        pointers = self._field(slot, layout.POINTERS).load(ptr)
        inputs, outputs = (self._field(record, field).load(i64) for field in (layout.INPUTS, layout.OUTPUTS))
        self._bind(_ARGUMENTS, inputs, pointers)
        self._bind(_RESULTS, outputs, pointers.at(inputs, ptr))
        constants = self._field(record, layout.CONSTANTS).load(ptr)
        activations = self._field(slot, layout.ACTIVATIONS).load(ptr)
        function = self._field(record, layout.FUNCTION).load(ptr)

        def called() -> Value:
            status = b.call_pointer(function, [constants, pointers, activations, b.null()], i32)
            assert status is not None
            return status

        status = with_denormals(b, called)
        b.atomic_store(0, self._field(slot, layout.BUSY), i64)
        b.atomic("add", self._field(record, layout.ENDED), 1, i64, "release")
        return b.either(status.eq(0), lambda: [self.b.null()], lambda: [self._error()])[0]

    def _free_slot(self, record: Value) -> Value:
        """The address of a slot that was free, and is not any more."""
        b = self.b
        slots = self._field(record, layout.SLOTS).load(i64)

        def slot(number: Value) -> Value:
            return record.at(number * layout.LINE + layout.FIRST_SLOT, i64)

        def is_taken(number: Value) -> Value:
            word = self._field(slot(number), layout.BUSY)
            return ~b.exchange_if(word, b.constant(0, i64), b.constant(1, i64))

        def following(number: Value) -> list[Value]:
            b.pause()
            return [(number + 1) % slots]

        return slot(b.repeat([b.constant(0, i64)], following, is_taken)[0])

    def _bind(self, field: int, count: Value, pointers: Value) -> None:
        """Write the addresses of the elements of some buffers to `pointers`."""
        buffers = self._at(self.frame, field).load(ptr)
        with self.b.loop(0, count) as number:
            buffer = buffers.at(number, ptr).load(ptr)
            pointers.at(number, ptr).store(self._at(buffer, _DATA).load(ptr))

    def _error(self) -> Value:
        """The error of a failed call."""
        b = self.b
        message = b.stack(i8, len(MESSAGE) + 1)
        for position, byte in enumerate((*MESSAGE, 0)):
            message.at(position, i8).store(b.constant(byte, i8))
        arguments = b.stack(i64, _ERROR_WORDS)
        arguments.store(b.constant(_ERROR_BYTES, i64))
        arguments.at(1, i64).store(b.constant(0, i64))
        arguments.at(_ERROR_MESSAGE, i64).store(message)
        arguments.at(_ERROR_CODE, i64).store(b.constant(_INTERNAL, i64))
        create = self._at(self._at(self.frame, _API).load(ptr), _CREATE_ERROR).load(ptr)
        error = b.call_pointer(create, [arguments], ptr)
        assert error is not None
        return error

    def _field(self, words: Value, number: int) -> Value:
        """The address of a word."""
        return words.at(number, i64)

    def _at(self, structure: Value, offset: int) -> Value:
        """The address of a field of a structure, by its offset in bytes."""
        return structure.at(offset, i8)
