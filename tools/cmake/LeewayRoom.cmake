# One CMake target per room, so that the link line states the dependency rule.

# Where sources find the headers of rooms: "codec/codec.h" lies in src/math. Lower floors first; src has base and interop.
set(LEEWAY_FLOORS ${PROJECT_SOURCE_DIR}/src)
foreach(floor math core security runtime api interop)
  list(APPEND LEEWAY_FLOORS ${PROJECT_SOURCE_DIR}/src/${floor})
endforeach()

# The public headers, which every room may use.
add_library(leeway_headers INTERFACE)
target_include_directories(leeway_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)

# leeway_room(<name> [APART] [ALONE] SOURCES a.cc b.cc [LINKS leeway::base ...] [PRIVATE_LINKS ...])
# Objects of all rooms together become the library users link, shared and static (see src/CMakeLists.txt). APART: not these.
# ALONE: its files have names in common, or include themselves once per target of their kernels.
function(leeway_room name)
  cmake_parse_arguments(ROOM "APART;ALONE" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  set(target leeway_${name})
  add_library(${target} OBJECT ${ROOM_SOURCES})
  add_library(leeway::${name} ALIAS ${target})
  target_include_directories(${target} PUBLIC ${LEEWAY_FLOORS})
  target_link_libraries(${target} PUBLIC leeway_headers ${ROOM_LINKS} PRIVATE leeway_settings ${ROOM_PRIVATE_LINKS})
  if(name IN_LIST LEEWAY_UNOPTIMISED)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(ROOM_ALONE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(NOT ROOM_APART)
    set_property(GLOBAL APPEND PROPERTY LEEWAY_ROOMS ${target})
  endif()
endfunction()

# leeway_test(<name> [SERIAL] [IN_RELEASE|RELEASE_ONLY] [THREADS] SOURCES a_test.cc ... [LINKS ...] [LABELS unit]
#             [TIMEOUT seconds] [SHARDS number])
# A GoogleTest binary over the whole library with access to the rooms' private headers. Every test case is a ctest case;
# with LEEWAY_TEST_EACH_CASE=OFF a program of unit or inproc tests is one, which saves a process start per test case, or
# SHARDS of them, which run beside each other.
# SERIAL cases never run beside another. IN_RELEASE: unit tests that the usual tests run in Release, because their usual
# sanitizer build leaves out what they test (simulator, tools, libtorch, other people's interfaces).
# RELEASE_ONLY: likewise, because they only count and compare numbers; sanitizers take their time and see nothing.
# With LEEWAY_TEST_SET=USUAL sanitizer builds leave out RELEASE_ONLY, and Release leaves out what has neither.
# THREADS: the thread sanitizer runs them; their programs have the label and the target of threads besides.
# The target tests_<label> builds the binaries of one label and nothing else.
function(leeway_test name)
  cmake_parse_arguments(TEST "SERIAL;IN_RELEASE;RELEASE_ONLY;THREADS" "TIMEOUT;SHARDS" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${LEEWAY_FLOORS} ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE leeway_settings leeway_static ${TEST_LINKS} GTest::gtest GTest::gmock
                        GTest::gtest_main leeway_test_settings)
  set(left_out OFF)
  if(LEEWAY_TEST_SET STREQUAL USUAL AND LEEWAY_SANITIZE)
    set(left_out ${TEST_RELEASE_ONLY})
  elseif(LEEWAY_TEST_SET STREQUAL USUAL AND TEST_LABELS STREQUAL unit AND NOT TEST_IN_RELEASE AND NOT TEST_RELEASE_ONLY)
    set(left_out ON)
  endif()
  if(left_out)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  set(all_labels ${TEST_LABELS})
  if(TEST_THREADS)
    list(APPEND all_labels threads)
  endif()
  foreach(label IN LISTS all_labels)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  if(NOT LEEWAY_TEST_EACH_CASE AND TEST_LABELS MATCHES "^(unit|inproc)$")
    if(NOT TEST_SHARDS)
      set(TEST_SHARDS 1)
    endif()
    math(EXPR last "${TEST_SHARDS} - 1")
    foreach(shard RANGE ${last})
      set(test ${name})
      if(TEST_SHARDS GREATER 1)
        set(test ${name}_${shard})
      endif()
      add_test(NAME ${test} COMMAND ${name} --gtest_brief=1)
      set_tests_properties(${test} PROPERTIES TIMEOUT 900 LABELS "${all_labels}" RUN_SERIAL ${TEST_SERIAL}
                           ENVIRONMENT "GTEST_TOTAL_SHARDS=${TEST_SHARDS};GTEST_SHARD_INDEX=${shard}")
    endforeach()
    return()
  endif()
  # Tests with parameters are listed by the names that the tests give them, not by the parameters' bytes.
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}"
                       RUN_SERIAL ${TEST_SERIAL})
endfunction()

# leeway_proto(<target> [STATIC] file.proto): generated C++ in the build tree, warnings off.
# STATIC: a library of its own, no part of the one that users link.
function(leeway_proto target)
  cmake_parse_arguments(PROTO "STATIC" "" "" ${ARGN})
  if(PROTO_STATIC)
    add_library(${target} STATIC ${PROTO_UNPARSED_ARGUMENTS})
  else()
    add_library(${target} OBJECT ${PROTO_UNPARSED_ARGUMENTS})
    set_property(GLOBAL APPEND PROPERTY LEEWAY_ROOMS ${target})
  endif()
  protobuf_generate(TARGET ${target} LANGUAGE cpp PROTOC_OUT_DIR ${CMAKE_CURRENT_BINARY_DIR})
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
