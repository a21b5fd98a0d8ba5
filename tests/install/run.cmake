# Installs build_dir under a fresh prefix, builds the consumer the given way (cmake or pkgconfig), runs it.
# Variables: see CMakeLists.txt beside this file. `flags` carries the sanitizers of a sanitized build.

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
      -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_CXX_FLAGS=${flags})
  run(${CMAKE_COMMAND} --build ${work_dir}/build)
endfunction()

function(build_with_pkgconfig)
  set(ENV{PKG_CONFIG_PATH} ${prefix}/${libdir}/pkgconfig)
  run(pkg-config --cflags leeway)
  separate_arguments(compile_flags UNIX_COMMAND "${run_output} ${flags}")
  run(pkg-config --libs leeway)
  separate_arguments(link_flags UNIX_COMMAND "${run_output} -Wl,-rpath,${prefix}/${libdir}")
  file(MAKE_DIRECTORY ${work_dir}/build)
  run(${compiler} -std=c++20 ${consumer_dir}/main.cc ${compile_flags} ${link_flags} -o ${work_dir}/build/consumer)
endfunction()

set(prefix ${work_dir}/prefix)
file(REMOVE_RECURSE ${work_dir})
run(${CMAKE_COMMAND} --install ${build_dir} --prefix ${prefix})
cmake_language(CALL build_with_${way})
run(${work_dir}/build/consumer)
message(STATUS "${run_output}")
