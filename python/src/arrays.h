// Converts Python arrays (NumPy, torch, JAX, or anything with DLPack or the buffer protocol) to
// tensors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>

#include "leeway/types.h"

namespace leeway::python {

// Memory of a Python object.
struct Array {
  nanobind::object owner;  // as the caller gave it
  // Object that keeps the memory where it is. If the owner has the buffer protocol, it is a
  // memoryview, so that a bytearray cannot move the memory nor a mmap unmap it. Otherwise it is the
  // owner.
  nanobind::object hold;
  void* data = nullptr;
  std::size_t count = 0;
  DataType dtype = DataType::f32;

  // Only for an array that was requested with `writable`.
  TensorView view() const { return {data, count, dtype}; }
  ConstTensorView const_view() const { return {data, count, dtype}; }
};

// Converts a Python object. Throws an exception that says what is wrong with it and what to do: it
// is no array, not on the CPU, not contiguous, of a type that Leeway does not have, or read-only
// although it is to be written. `what` is the argument's name.
Array to_array(nanobind::handle value, bool writable, const char* what);
// Returns the elements of an array. Throws if they are not float32.
std::span<float> to_floats(const Array& array, const char* what);

// Reads elements as another type than the array's, for types that NumPy does not have.
struct Typed {
  nanobind::object array;
  DataType dtype;
};

DataType to_dtype(nanobind::handle name);

}  // namespace leeway::python
