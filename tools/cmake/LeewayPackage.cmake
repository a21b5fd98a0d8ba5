# Debian packages of the installation's components, with `cpack --config build/release/CPackConfig.cmake`:
#   libleeway0    the shared library        libleeway-dev  headers, archive, CMake package, examples
#   leeway-tools  the `leeway` command and scenarios to simulate
#   leeway-nccl   libnccl.so.2 for programs that are told to load it, and a network plugin for NVIDIA's
# Dependencies on other packages' libraries are read from the binaries (dpkg-shlibdeps). tests/install uses the packages.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME leeway)
set(CPACK_PACKAGE_CONTACT "The Leeway authors <authors@leeway.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev)
if(TARGET leeway_nccl)
  list(APPEND CPACK_COMPONENTS_ALL nccl)
endif()
if(TARGET leeway_command)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")  # before 1.0 any version may change the binary interface
set(version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libleeway${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "This package holds the shared library.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libleeway-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} (= ${version})")
set(CPACK_COMPONENT_DEV_DESCRIPTION
    "This package holds headers, the static library, the CMake package, the pkg-config file and examples.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME leeway-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION net)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "bible-kjv")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "This package holds the leeway command, which trains, measures, simulates and diagnoses.")

# Nobody depends on its libraries by their names: no shlibs for them.
set(CPACK_DEBIAN_NCCL_PACKAGE_NAME leeway-nccl)
set(CPACK_DEBIAN_NCCL_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_NCCL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_NCCL_PACKAGE_GENERATE_SHLIBS OFF)
set(CPACK_COMPONENT_NCCL_DESCRIPTION
    "This package holds Leeway's libnccl.so.2, which programs of NCCL load in place of NVIDIA's, and a network plugin for NVIDIA's.")

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}
          RENAME copyright COMPONENT ${component})
endforeach()
include(CPack)
