// Arrays of Python (NumPy, torch, JAX, or anything with DLPack or the buffer protocol) as tensors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>

#include "leeway/types.h"

namespace leeway::python {

// Memory of a Python object, which `owner` keeps alive.
struct Array {
  nanobind::object owner;
  void* data = nullptr;
  std::size_t count = 0;
  DataType dtype = DataType::f32;

  // Only of one that was asked for with `writable`.
  TensorView view() const { return {data, count, dtype}; }
  ConstTensorView const_view() const { return {data, count, dtype}; }
};

// Throws an exception that says what is wrong with it and what to do: no array, not on the CPU, not
// contiguous, a type that Leeway does not have, or read-only where it is written. `what`: the
// argument's name.
Array to_array(nanobind::handle value, bool writable, const char* what);
// The same for one of float32.
std::span<float> to_floats(const Array& array, const char* what);

// Elements of another type than the array says: for types that NumPy does not have.
struct Typed {
  nanobind::object array;
  DataType dtype;
};

DataType to_dtype(nanobind::handle name);

void bind_arrays(nanobind::module_& module);

}  // namespace leeway::python
