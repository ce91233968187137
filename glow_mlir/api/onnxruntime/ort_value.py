"""`OrtValue`: onnxruntime's tensors, in the memory of an array, or of a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, cast

import numpy as np

from glow_mlir.api.device_tensors import from_dlpack
from glow_mlir.api.onnxruntime.devices import CPU, device_of
from glow_mlir.api.onnxruntime.refused_names import Explained
from glow_mlir.errors import InputError, OutOfMemoryError
from glow_mlir.runtime.device_array import DeviceArray, Tensor, on_host
from glow_mlir.support import dlpack
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.array_addresses import address_of
from glow_mlir.support.dtypes import ONNX_NUMBERS, named_dtype, onnx_word


class OrtValue(Explained):
    """
    A tensor, in memory that it shares with an array: nothing is copied on the way in and out, but by `update_inplace`.

    `numpy.asarray`, `numpy.from_dlpack` and `torch.from_dlpack` give its memory, too. One on a device is copied to and
    from arrays; calls there, and libraries that know the device, have its memory.
    """

    _array: np.ndarray
    """The array; of a tensor on a device there is none."""
    device_array: DeviceArray | None = None
    """The tensor on a device; `None` for one in the memory of the CPU."""

    def __init__(self, array: np.ndarray) -> None:
        """The tensor in a C-contiguous array of a dtype that ONNX has; raises `InputError` for any other array."""
        _check_array(array)
        _check_element(array.dtype)
        if not (array.flags.c_contiguous and array.dtype.isnative):
            wrong = "of another order of bytes" if array.flags.c_contiguous else "not C-contiguous"
            raise InputError(f"an array is {wrong}", hint="OrtValue.ortvalue_from_numpy makes a copy that is")
        self._array = array

    # ---- constructors ----

    @classmethod
    def of_tensor(cls, tensor: Tensor) -> OrtValue:
        """A tensor of the host, in a copy where it is not C-contiguous, or of a device."""
        if isinstance(tensor, np.ndarray):
            return cls.ortvalue_from_numpy(tensor)
        _check_element(tensor.dtype)
        made = cls.__new__(cls)
        made.device_array = tensor
        return made

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, /, device_type: str = CPU, device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """
        The tensor in an array; in a copy where that is not C-contiguous, or of another order of bytes, or on a device.
        """
        device = device_of(device_type, device_id)
        _check_array(numpy_obj)
        # Not `ascontiguousarray`, which makes an axis of none.
        found = cls(np.asarray(numpy_obj, numpy_obj.dtype.newbyteorder("="), order="C"))
        return found if device is None else cls.of_tensor(DeviceArray.of(device, found.numpy()))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """
        The tensor whose elements have the bits of an array's, and the type of that number in ONNX.

        Raises `InputError` for types of other widths.
        """
        dtype = element_dtype(onnx_element_type)
        _check_array(data)
        if dtype.itemsize != data.dtype.itemsize:
            reason = f"elements of {data.dtype.name} and {dtype.name} differ in size"
            raise InputError(reason, hint=f"{dtype.itemsize} bytes each")
        return cls(np.asarray(data, order="C").view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any = np.float32,
        device_type: str = CPU,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """A new tensor, uninitialised; its type is a dtype, or the number of one in ONNX."""
        device, dtype, sizes = device_of(device_type, device_id), element_dtype(element_type), sizes_of(shape)
        try:
            if device is not None:
                return cls.of_tensor(DeviceArray.empty(device, sizes, dtype))
            return cls(np.empty(sizes, dtype))
        except (MemoryError, ValueError) as error:  # Of more bytes than there are, and than can be counted.
            raise OutOfMemoryError(f"there is too little memory for {dtype.name}{sizes}") from error

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False, /) -> OrtValue:
        """
        The tensor of what has `__dlpack__`, or of a capsule, which may hold truth values as bytes, as old ones do.

        Raises `InputError` where it is not C-contiguous, or truth values are not bytes.
        """
        found = from_dlpack(data)
        if is_bool_tensor and found.dtype.name not in ("bool", "uint8"):
            raise InputError(f"there are no truth values in elements of {found.dtype.name}", hint="uint8, or bool")
        if is_bool_tensor:
            found = found.view(np.dtype(np.bool_))
        return cls.of_tensor(found) if isinstance(found, DeviceArray) else cls(found)

    # ---- its memory ----

    def numpy(self) -> np.ndarray:
        """Its array, in its own memory; of a tensor on a device, a copy."""
        return on_host(self.tensor)

    @property
    def tensor(self) -> Tensor:
        """The memory of the tensor: an array, or a tensor on a device."""
        return self._array if self.device_array is None else self.device_array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=cast("Any", copy))

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if (found := self.device_array) is not None:
            return found.__dlpack__(stream=stream, **options)
        return dlpack.to_capsule(self._array, **options)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if (found := self.device_array) is None:
            raise AttributeError("a tensor in CPU memory has no CUDA pointer")
        return found.__cuda_array_interface__

    def to_dlpack(self) -> Any:
        """A capsule with its memory, as onnxruntime's native form gives it."""
        return self.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU if self.device_array is None else self.device_array.__dlpack_device__()

    def data_ptr(self) -> int:
        """The address of the first element; raises `OptionError` for a device that has no addresses."""
        return address_of(self._array) if self.device_array is None else self.device_array.address

    def update_inplace(self, data: np.ndarray | OrtValue) -> None:
        """Overwrite the elements; raises `InputError` for an array of another type or shape, or a read-only tensor."""
        given = data.numpy() if isinstance(data, OrtValue) else data
        _check_array(given)
        if self.device_array is not None:
            self.device_array.assign(given)
            return
        array = self._array
        if given.dtype != array.dtype or given.shape != array.shape:
            wanted, found = (f"{item.dtype.name}{list(item.shape)}" for item in (array, given))
            raise InputError(f"the value is {wanted}, and cannot be updated with {found}")
        if not array.flags.writeable:
            raise InputError("the memory of the value may only be read", hint="create it from a copy")
        array[...] = given

    @property
    def _ortvalue(self) -> Self:
        """The tensor itself, for programs that bypass onnxruntime's Python class."""
        return self

    def _get_c_value(self) -> Self:
        """As `_ortvalue`."""
        return self

    # ---- what it is ----

    def shape(self) -> list[int]:
        """The sizes of its axes."""
        return list(self.tensor.shape)

    def data_type(self) -> str:
        """Its type in ONNX's words, as `tensor(float)`."""
        return f"tensor({onnx_word(self.tensor.dtype.name)})"

    def element_type(self) -> int:
        """The number of its element type among ONNX's data types."""
        return ONNX_NUMBERS[self.tensor.dtype.name]

    def tensor_size_in_bytes(self) -> int:
        """How much memory its elements take."""
        return self.tensor.nbytes

    def device_name(self) -> str:
        """The kind of the device that has its memory, as `cpu` or `cuda`."""
        return CPU if self.device_array is None else self.device_array.device.name.partition(":")[0]

    def has_value(self) -> bool:
        """Whether it holds anything, as it always does."""
        return True

    def is_tensor(self) -> bool:
        """Whether it is a tensor, as all are."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Whether it is sparse, as none is."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence, as none is."""
        return False

    def __repr__(self) -> str:
        return f"<OrtValue {self.data_type()}{self.shape()}>"


def element_dtype(element_type: Any) -> np.dtype[Any]:
    """The dtype that a type of numpy is, or a number among ONNX's data types; raises `InputError` for no such."""
    if isinstance(element_type, int) and not isinstance(element_type, bool):
        names = {number: name for name, number in ONNX_NUMBERS.items()}
        if element_type not in names:
            raise InputError(f"there are no arrays of the data type {element_type} of ONNX")
        return named_dtype(names[element_type])
    try:
        found = np.dtype(cast("Any", element_type))
    except TypeError as error:
        raise InputError(f"{element_type!r} is no element type", hint="give numpy.float32, for example") from error
    _check_element(found)
    return found


def sizes_of(shape: object) -> list[int]:
    """The sizes of the axes of a tensor; raises `InputError` for others."""
    found = [whole_number(size) for size in cast("Sequence[object]", shape)] if isinstance(shape, Iterable) else [None]
    sizes = [size for size in found if size is not None and size >= 0]
    if len(sizes) < len(found):
        raise InputError(f"{shape!r} is no shape", hint="a list of whole numbers from 0 on")
    return sizes


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue]) -> None:
    """Overwrite some tensors with others; raises `InputError` as `update_inplace`, and for lists of other lengths."""
    for given in (src, dst):
        is_list = isinstance(cast("object", given), Sequence)
        if not is_list or not all(isinstance(cast("object", value), OrtValue) for value in given):
            raise InputError(f"a '{type(given).__name__}' is no list of tensors", hint="a list of OrtValue")
    if len(src) != len(dst):
        raise InputError(f"{len(src)} tensors cannot be copied to {len(dst)}", hint="one for each")
    for source, target in zip(src, dst, strict=True):
        target.update_inplace(source)


def _check_element(dtype: np.dtype[Any]) -> None:
    """Raise `InputError` for an element type that ONNX does not have."""
    if dtype.name not in ONNX_NUMBERS:
        raise InputError(f"ONNX has no tensors of {dtype.name}", hint="convert the array")


def _check_array(value: object) -> None:
    """Raise `InputError` for anything but an array."""
    if not isinstance(value, np.ndarray):
        raise InputError(f"a '{type(value).__name__}' is no array", hint="convert it with numpy.asarray")
