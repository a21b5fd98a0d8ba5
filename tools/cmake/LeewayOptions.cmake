# Options a person may set, and the settings every target of this project shares (as an INTERFACE target, never as
# global flags, so that a parent project is left alone).

option(LEEWAY_BUILD_TESTS "Build unit, integration and installation tests" ON)
option(LEEWAY_BUILD_TOOLS "Build the leeway command" ON)
option(LEEWAY_BUILD_SIMULATOR "Build the packet-loss simulator" ON)
option(LEEWAY_BUILD_FUZZERS "Build libFuzzer targets (needs clang)" OFF)
set(LEEWAY_SANITIZE "" CACHE STRING "Sanitizers for all targets, e.g. address;undefined or thread")
set(LEEWAY_TEST_OPTIONS "" CACHE STRING "Compile options of the tests' own files, e.g. -O0, after all others")
set(LEEWAY_UNOPTIMISED "" CACHE STRING "Rooms whose own files are compiled with -O0, e.g. rendezvous;observe")
option(LEEWAY_TEST_EACH_CASE "Every case of unit tests is a ctest case; OFF: every program" ON)
set(LEEWAY_TEST_SET ALL CACHE STRING "Which tests: ALL, or USUAL, those that every change must pass (see leeway_test)")
set_property(CACHE LEEWAY_TEST_SET PROPERTY STRINGS ALL USUAL)
option(LEEWAY_UNITY "Compile files of a target together: a cold build takes less than half the time" OFF)
set(LEEWAY_WITH_TORCH AUTO CACHE STRING "leeway train with libtorch: AUTO, ON or OFF")
set_property(CACHE LEEWAY_WITH_TORCH PROPERTY STRINGS AUTO ON OFF)
option(LEEWAY_WITH_PYTHON "The Python package (needs nanobind in the Python that CMake finds)" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(LEEWAY_CCACHE ccache)
if(LEEWAY_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LEEWAY_CCACHE})
endif()
if(LEEWAY_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(spdlog REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_path(LEEWAY_ASIO_INCLUDE_DIR asio.hpp REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(isal REQUIRED IMPORTED_TARGET libisal)

add_library(leeway_settings INTERFACE)
target_compile_features(leeway_settings INTERFACE cxx_std_20)
# -ffp-contract=off: a reduction must give the same bits on every machine, with or without fused multiply-add.
target_compile_options(leeway_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers -ffp-contract=off
  -fvisibility=hidden $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
# Ice Lake's and Zen 4's byte permutations, which Highway compiles for on demand only.
target_compile_definitions(leeway_settings INTERFACE HWY_WANT_AVX3_DL)
# For its generic processor gcc 12 clears and copies objects of 100 to 8,000 bytes by "rep stos", whose start costs more
# than they do: clearing 112 bytes takes 11 ns so and 1.4 ns otherwise, 320 bytes 12 and 6. A call has a dozen of them.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(leeway_settings INTERFACE -mtune=icelake-server)
endif()
foreach(sanitizer IN LISTS LEEWAY_SANITIZE)
  target_compile_options(leeway_settings INTERFACE -fsanitize=${sanitizer} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(leeway_settings INTERFACE -fsanitize=${sanitizer})
endforeach()
if(LEEWAY_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # gcc warns of members whose types are in an anonymous namespace of an included file, and a unity file includes sources.
  target_compile_options(leeway_settings INTERFACE -Wno-subobject-linkage)
endif()
if(LEEWAY_BUILD_FUZZERS)  # the library tells the fuzzer which of its branches an input reached
  target_compile_options(leeway_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Options of the tests' own files. A target names it last in its link line, so that they come after the sanitizers'.
add_library(leeway_test_settings INTERFACE)
target_compile_options(leeway_test_settings INTERFACE ${LEEWAY_TEST_OPTIONS})
if(LEEWAY_TEST_SET STREQUAL ALL)  # tests/support/seeds.h
  target_compile_definitions(leeway_test_settings INTERFACE LEEWAY_TEST_ALL)
endif()

add_library(leeway_asio INTERFACE)
target_include_directories(leeway_asio SYSTEM INTERFACE ${LEEWAY_ASIO_INCLUDE_DIR})
# Aligned allocation off: Asio 1.22 decides it by which standard header was included before it, so that two files of one
# program may allocate with operator new and release with free().
target_compile_definitions(leeway_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_DISABLE_STD_ALIGNED_ALLOC)
target_link_libraries(leeway_asio INTERFACE Threads::Threads)
