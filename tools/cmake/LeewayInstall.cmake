# Installs the libraries, their headers, the command, a CMake package (find_package(leeway) gives leeway::leeway and
# leeway::static) and a pkg-config file. Components: runtime, dev, tools; LeewayPackage makes Debian packages of them.
# tests/install builds programs against the result.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leeway)

install(TARGETS leeway leeway_archive EXPORT leewayTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(DIRECTORY include/leeway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/include/leeway/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leeway
        COMPONENT dev)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS COMPONENT dev)
install(EXPORT leewayTargets NAMESPACE leeway:: DESTINATION ${package_dir} COMPONENT dev)

configure_package_config_file(tools/cmake/LeewayConfig.cmake.in LeewayConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(LeewayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/LeewayConfig.cmake DESTINATION ${package_dir} RENAME leewayConfig.cmake
        COMPONENT dev)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/LeewayConfigVersion.cmake DESTINATION ${package_dir}
        RENAME leewayConfigVersion.cmake COMPONENT dev)

list(JOIN LEEWAY_STATIC_LIBS " " LEEWAY_PC_LIBS_PRIVATE)
# The prefix is found from where the file lies, so the installed tree can be moved.
file(RELATIVE_PATH LEEWAY_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(tools/cmake/leeway.pc.in leeway.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/leeway.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

if(TARGET leeway_command)
  install(TARGETS leeway_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  install(DIRECTORY simulator/scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/leeway COMPONENT tools)
endif()

# Builds what is installed, and no more: for those who do not build everything (tools/demo).
add_custom_target(leeway_installed DEPENDS leeway leeway_archive)
foreach(target leeway_command leeway_nccl leeway_nccl_stub leeway_nccl_net)
  if(TARGET ${target})
    add_dependencies(leeway_installed ${target})
  endif()
endforeach()
