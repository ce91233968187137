"""`OrtValue`: onnxruntime's tensors, in the memory of an array or a device."""

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
    A tensor that shares the memory of an array; only `update_inplace` copies.

    `numpy.asarray`, `numpy.from_dlpack` and `torch.from_dlpack` also share its memory. A tensor on a device is copied
    to and from arrays; calls on the device, and libraries that support it, use its memory.
    """

    _array: np.ndarray
    """The array; undefined for a tensor on a device."""
    device_array: DeviceArray | None = None
    """The tensor on a device; `None` for one in CPU memory."""

    def __init__(self, array: np.ndarray) -> None:
        """The tensor in a C-contiguous array of a dtype that ONNX has; raises `InputError` for other arrays."""
        _check_array(array)
        _check_element(array.dtype)
        if not (array.flags.c_contiguous and array.dtype.isnative):
            wrong = "of another order of bytes" if array.flags.c_contiguous else "not C-contiguous"
            raise InputError(f"an array is {wrong}", hint="OrtValue.ortvalue_from_numpy makes a copy that is")
        self._array = array

    # ---- constructors ----

    @classmethod
    def of_tensor(cls, tensor: Tensor) -> OrtValue:
        """A host tensor, copied if it is not C-contiguous, or a device tensor."""
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
        The tensor in an array; a copy if the array is not C-contiguous or has another byte order, or if the tensor goes
        to a device.
        """
        device = device_of(device_type, device_id)
        _check_array(numpy_obj)
        # Not `ascontiguousarray`, which turns a scalar into a vector.
        found = cls(np.asarray(numpy_obj, numpy_obj.dtype.newbyteorder("="), order="C"))
        return found if device is None else cls.of_tensor(DeviceArray.of(device, found.numpy()))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """
        Reinterpret the bits of an array's elements as an ONNX element type, given by number.

        Raises `InputError` for types of another width.
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
        """A new uninitialised tensor; its type is a dtype, or the number of an ONNX type."""
        device, dtype, sizes = device_of(device_type, device_id), element_dtype(element_type), sizes_of(shape)
        try:
            if device is not None:
                return cls.of_tensor(DeviceArray.empty(device, sizes, dtype))
            return cls(np.empty(sizes, dtype))
        except (MemoryError, ValueError) as error:  # Too large for memory, or for numpy.
            raise OutOfMemoryError(f"there is too little memory for {dtype.name}{sizes}") from error

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False, /) -> OrtValue:
        """
        The tensor of an object with `__dlpack__`, or of a capsule; with `is_bool_tensor`, bytes are booleans, as in old
        capsules.

        Raises `InputError` unless it is C-contiguous, and booleans are bytes.
        """
        found = from_dlpack(data)
        if is_bool_tensor and found.dtype.name not in ("bool", "uint8"):
            raise InputError(f"there are no truth values in elements of {found.dtype.name}", hint="uint8, or bool")
        if is_bool_tensor:
            found = found.view(np.dtype(np.bool_))
        return cls.of_tensor(found) if isinstance(found, DeviceArray) else cls(found)

    # ---- its memory ----

    def numpy(self) -> np.ndarray:
        """The array, sharing its memory; for a tensor on a device, a copy."""
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
        """A DLPack capsule of its memory, as in onnxruntime's native module."""
        return self.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU if self.device_array is None else self.device_array.__dlpack_device__()

    def data_ptr(self) -> int:
        """The address of the first element; raises `OptionError` for a device without addresses."""
        return address_of(self._array) if self.device_array is None else self.device_array.address

    def update_inplace(self, data: np.ndarray | OrtValue) -> None:
        """Overwrite the elements; raises `InputError` for another type or shape, or a read-only tensor."""
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
        """The type in ONNX's terms, such as `tensor(float)`."""
        return f"tensor({onnx_word(self.tensor.dtype.name)})"

    def element_type(self) -> int:
        """The number of the element type among ONNX's data types."""
        return ONNX_NUMBERS[self.tensor.dtype.name]

    def tensor_size_in_bytes(self) -> int:
        """The bytes of its elements."""
        return self.tensor.nbytes

    def device_name(self) -> str:
        """The kind of the device that holds it, such as `cpu` or `cuda`."""
        return CPU if self.device_array is None else self.device_array.device.name.partition(":")[0]

    def has_value(self) -> bool:
        """Whether it holds a value: always true."""
        return True

    def is_tensor(self) -> bool:
        """Whether it is a tensor: always true."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Whether it is sparse: always false."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence: always false."""
        return False

    def __repr__(self) -> str:
        return f"<OrtValue {self.data_type()}{self.shape()}>"


def element_dtype(element_type: Any) -> np.dtype[Any]:
    """The dtype for a numpy type, or for the number of an ONNX data type; raises `InputError` for anything else."""
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
    """The sizes of a tensor's axes; raises `InputError` for an invalid shape."""
    found = [whole_number(size) for size in cast("Sequence[object]", shape)] if isinstance(shape, Iterable) else [None]
    sizes = [size for size in found if size is not None and size >= 0]
    if len(sizes) < len(found):
        raise InputError(f"{shape!r} is no shape", hint="a list of whole numbers from 0 on")
    return sizes


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue]) -> None:
    """Overwrite tensors with others; raises `InputError` as `update_inplace`, and for lists of different lengths."""
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
