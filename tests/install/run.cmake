# Installs build_dir under a fresh prefix, builds the consumer the given way (cmake or pkgconfig, with _static or
# without), runs it. Variables: see CMakeLists.txt beside this file. `flags` carries the sanitizers of a sanitized build.
# The packages of what Leeway is built on are hidden: a user needs none of them.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(run_output "${output}" PARENT_SCOPE)
endfunction()

function(build_with_cmake)
  run(${CMAKE_COMMAND} -G ${generator} -S ${consumer_dir} -B ${work_dir}/build -DCMAKE_PREFIX_PATH=${prefix}
      -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_CXX_FLAGS=${flags} -DCONSUMER_LIBRARY=${library}
      -DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON -DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON
      -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON)
  run(${CMAKE_COMMAND} --build ${work_dir}/build)
endfunction()

function(build_with_pkgconfig)
  set(ENV{PKG_CONFIG_LIBDIR} ${prefix}/${libdir}/pkgconfig)
  run(pkg-config --cflags leeway)
  separate_arguments(compile_flags UNIX_COMMAND "${run_output} ${flags}")
  if(library STREQUAL "leeway::static")
    run(pkg-config --static --libs leeway)
    separate_arguments(link_flags UNIX_COMMAND "-Wl,--as-needed -L${prefix}/${libdir} -l:libleeway.a ${run_output}")
  else()
    run(pkg-config --libs leeway)
    if(run_output MATCHES "protobuf|spdlog|ssl|crypto|fmt|hwy|isal|ibverbs|ucx?p|IPSec")
      message(FATAL_ERROR "pkg-config --libs names a dependency of Leeway's own: ${run_output}")
    endif()
    separate_arguments(link_flags UNIX_COMMAND "${run_output} -Wl,-rpath,${prefix}/${libdir}")
  endif()
  file(MAKE_DIRECTORY ${work_dir}/build)
  run(${compiler} -std=c++20 ${consumer_dir}/main.cc ${compile_flags} ${link_flags} -o ${work_dir}/build/consumer)
endfunction()

set(prefix ${work_dir}/prefix)
set(library leeway::leeway)
if(way MATCHES "_static")
  set(library leeway::static)
endif()
string(REPLACE "_static" "" builder ${way})
file(REMOVE_RECURSE ${work_dir})
run(${CMAKE_COMMAND} --install ${build_dir} --prefix ${prefix})
cmake_language(CALL build_with_${builder})
run(${work_dir}/build/consumer)
message(STATUS "${run_output}")

run(objdump -p ${work_dir}/build/consumer)
string(FIND "${run_output}" libleeway.so position)
if((library STREQUAL "leeway::static" AND NOT position EQUAL -1) OR (library STREQUAL "leeway::leeway" AND position EQUAL -1))
  message(FATAL_ERROR "the consumer was to use ${library}:\n${run_output}")
endif()
