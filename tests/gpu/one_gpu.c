// Preload this library into programs of the CUDA runtime: it shows one device as eight, so that a
// program that wants a device for each rank runs all its ranks on one.
#define _GNU_SOURCE
#include <dlfcn.h>

enum { DEVICES = 8 };

#define REAL(name, ...) ((int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

int cudaGetDeviceCount(int* count) {
  *count = DEVICES;
  return 0;
}

int cudaSetDevice(int device) {
  (void)device;
  return REAL(cudaSetDevice, int)(0);
}

int cudaGetDeviceProperties(void* properties, int device) {
  (void)device;
  return REAL(cudaGetDeviceProperties, void*, int)(properties, 0);
}

int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  return REAL(cudaDeviceGetAttribute, int*, int, int)(value, attribute, 0);
}

int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  (void)device;
  return REAL(cudaDeviceGetPCIBusId, char*, int, int)(text, length, 0);
}
