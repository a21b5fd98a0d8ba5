# Installs the library, its headers, the command, a CMake package (find_package(leeway) gives leeway::leeway) and a
# pkg-config file. tests/install builds a program against the result in both ways.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leeway)

install(TARGETS leeway EXPORT leewayTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/leeway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/include/leeway/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leeway)
install(EXPORT leewayTargets NAMESPACE leeway:: DESTINATION ${package_dir})

get_property(LEEWAY_OPTIONAL_CALLS GLOBAL PROPERTY LEEWAY_OPTIONAL_CALLS)
configure_package_config_file(tools/cmake/LeewayConfig.cmake.in LeewayConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(LeewayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/LeewayConfig.cmake DESTINATION ${package_dir} RENAME leewayConfig.cmake)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/LeewayConfigVersion.cmake DESTINATION ${package_dir}
        RENAME leewayConfigVersion.cmake)

# A static archive does not carry its own dependencies, so every user's link line needs them; a shared library needs
# them nowhere but in itself.
get_property(optional_modules GLOBAL PROPERTY LEEWAY_OPTIONAL_MODULES)
set(leeway_dependencies "protobuf spdlog libhwy${optional_modules}")
if(BUILD_SHARED_LIBS)
  set(LEEWAY_PC_REQUIRES "")
  set(LEEWAY_PC_REQUIRES_PRIVATE "${leeway_dependencies}")
else()
  set(LEEWAY_PC_REQUIRES "${leeway_dependencies}")
  set(LEEWAY_PC_REQUIRES_PRIVATE "")
endif()
# The prefix is found from where the file lies, so the installed tree can be moved.
file(RELATIVE_PATH LEEWAY_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(tools/cmake/leeway.pc.in leeway.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/leeway.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET leeway_command)
  install(TARGETS leeway_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
