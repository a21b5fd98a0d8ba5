#include "arrays.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <string_view>

#include "bindings.h"
#include "errors.h"

namespace nb = nanobind;

namespace leeway::python {
namespace {

using Code = nb::dlpack::dtype_code;

std::optional<DataType> dtype_of(nb::dlpack::dtype type) {
  if (type.lanes != 1) return std::nullopt;
  const auto is = [&](Code code, int bits) {
    return type.code == static_cast<std::uint8_t>(code) && type.bits == bits;
  };
  if (is(Code::Float, 32)) return DataType::f32;
  if (is(Code::Float, 64)) return DataType::f64;
  if (is(Code::Float, 16)) return DataType::f16;
  if (is(Code::Bfloat, 16)) return DataType::bf16;
  if (is(Code::Int, 8)) return DataType::i8;
  if (is(Code::Int, 32)) return DataType::i32;
  if (is(Code::Int, 64)) return DataType::i64;
  if (is(Code::UInt, 8)) return DataType::u8;
  if (is(Code::UInt, 32)) return DataType::u32;
  if (is(Code::UInt, 64)) return DataType::u64;
  if (is(Code::Bool, 8)) return DataType::boolean;
  return std::nullopt;
}

template <typename Any>
bool is_contiguous(const Any& array) {
  std::int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride && array.size() != 0) return false;
    stride *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

nb::object hold_of(nb::handle value) {
  if (PyObject_CheckBuffer(value.ptr()) == 0) return nb::borrow(value);
  nb::object view = nb::steal(PyMemoryView_FromObject(value.ptr()));
  if (view) return view;
  PyErr_Clear();  // element types that the buffer protocol lacks, as of ml_dtypes
  return nb::borrow(value);
}

[[noreturn]] void refuse_strides(const char* what) {
  refuse(
      "%s: the array is not contiguous; pass a contiguous one (numpy.ascontiguousarray(x), "
      "tensor.contiguous())",
      what);
}

// Returns whether a buffer has dimensions but names no strides, as those of ctypes: then it is
// contiguous.
bool lacks_strides(nb::handle value) {
  Py_buffer buffer;
  if (PyObject_CheckBuffer(value.ptr()) == 0) return false;
  if (PyObject_GetBuffer(value.ptr(), &buffer, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool lacks = buffer.ndim > 0 && (buffer.strides == nullptr || buffer.shape == nullptr);
  PyBuffer_Release(&buffer);
  return lacks;
}

// The buffer of a memoryview; none of other objects.
class ViewBuffer {
 public:
  explicit ViewBuffer(nb::handle hold)
      : filled_(PyMemoryView_Check(hold.ptr()) &&
                PyObject_GetBuffer(hold.ptr(), &buffer_, PyBUF_FULL_RO) == 0) {
    if (!filled_) PyErr_Clear();
  }
  ~ViewBuffer() {
    if (filled_) PyBuffer_Release(&buffer_);
  }
  ViewBuffer(const ViewBuffer&) = delete;
  ViewBuffer& operator=(const ViewBuffer&) = delete;

  explicit operator bool() const { return filled_; }
  const Py_buffer* operator->() const { return &buffer_; }
  bool is_contiguous() const { return PyBuffer_IsContiguous(&buffer_, 'C') != 0; }

 private:
  Py_buffer buffer_{};
  bool filled_;
};

// `as`, if given, is the type as which elements are read, whatever type the array names.
template <typename Any>
Array accept(const Any& array, nb::handle value, nb::object hold, const char* what,
             std::optional<DataType> as) {
  if (array.device_type() != nb::device::cpu::value) {
    refuse(
        "%s: the tensor lies on a device; copy it to the CPU (tensor.cpu()), or use leeway.torch",
        what);
  }
  if (!is_contiguous(array)) refuse_strides(what);
  const auto dtype = as ? as : dtype_of(array.dtype());
  if (as && array.itemsize() != size_of(*as)) {
    refuse("%s: an array of %zu-byte elements cannot be read as %s", what,
           static_cast<std::size_t>(array.itemsize()), to_string(*as).data());
  }
  if (!dtype) {
    const nb::object named = nb::getattr(value, "dtype", nb::getattr(hold, "format", nb::none()));
    refuse(
        "%s: elements of %s cannot travel; Leeway has float16/32/64, bfloat16, int8/32/64, "
        "uint8/32/64, bool, and FP8 through leeway.typed()",
        what, nb::repr(named).c_str());
  }
  return {nb::borrow(value), std::move(hold),
          const_cast<void*>(static_cast<const void*>(array.data())), array.size(), *dtype};
}

Array import(nb::handle value, bool writable, const char* what, std::optional<DataType> as) {
  nb::object hold = hold_of(value);
  const ViewBuffer buffer(hold);
  // nanobind reads strides even where there are none. A memoryview always has them, but there is
  // none of more than 64 dimensions.
  const bool strideless = lacks_strides(value);
  const nb::handle from = strideless ? nb::handle(hold) : value;
  // ctypes names no format of unions and packed structures: they look like bytes, but longer.
  const bool numbers =
      buffer ? buffer->itemsize == 1 || std::string_view(buffer->format) != "B" : !strideless;
  nb::ndarray<> read_write;
  if (numbers && nb::try_cast(from, read_write, false))
    return accept(read_write, value, std::move(hold), what, as);
  PyErr_Clear();
  nb::ndarray<nb::ro> read_only;
  if (numbers && nb::try_cast(from, read_only, false)) {
    if (!writable) return accept(read_only, value, std::move(hold), what, as);
    refuse("%s: the array is read-only, and the result is written to it; pass a copy", what);
  }
  PyErr_Clear();
  if (buffer && !buffer.is_contiguous()) refuse_strides(what);
  if (buffer) {
    refuse(
        "%s: %s is no array of numbers; its elements have %zd bytes and the buffer format \"%s\"",
        what, nb::type_name(value.type()).c_str(), buffer->itemsize, buffer->format);
  }
  refuse(
      "%s: %s is no array of numbers; pass one that has DLPack or the buffer protocol (NumPy, "
      "torch, JAX)",
      what, nb::type_name(value.type()).c_str());
}

}  // namespace

Array to_array(nb::handle value, bool writable, const char* what) {
  if (!nb::isinstance<Typed>(value)) return import(value, writable, what, std::nullopt);
  const auto& typed = nb::cast<const Typed&>(value);
  return import(typed.array, writable, what, typed.dtype);
}

std::span<float> to_floats(const Array& array, const char* what) {
  if (array.dtype != DataType::f32) {
    refuse("%s: elements must be float32, not %s", what, to_string(array.dtype).data());
  }
  return {static_cast<float*>(array.data), array.count};
}

DataType to_dtype(nb::handle name) {
  const std::string text = nb::cast<std::string>(nb::str(name));
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (to_string(type) == text) return type;
  }
  if (text == "bf16") return DataType::bf16;
  refuse("dtype: %s is none of bfloat16, f8e4m3, f8e5m2, float, double, half, int8, ...",
         text.c_str());
}

void bind_arrays(nb::module_& module) {
  nb::class_<Typed>(module, "Typed",
                    "An array whose elements are read as another type; see typed().")
      .def_ro("array", &Typed::array)
      .def_prop_ro("dtype", [](const Typed& self) { return std::string(to_string(self.dtype)); });
  module.def(
      "typed",
      [](nb::object array, nb::handle dtype) {
        Typed typed{std::move(array), to_dtype(dtype)};
        return typed;
      },
      nb::arg("array"), nb::arg("dtype"),
      "The same memory with elements of another type of equal size, for types that NumPy does not\n"
      "have: typed(x.view(numpy.uint16), \"bfloat16\"), typed(bytes_array, \"f8e4m3\").");
}

}  // namespace leeway::python
