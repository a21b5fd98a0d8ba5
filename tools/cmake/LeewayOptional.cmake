# Libraries that Leeway uses where they are installed and does without where they are not.

# leeway_optional(<NAME> <title> <Debian package> <pkg-config module>...)
# Defines the option LEEWAY_WITH_<NAME> (AUTO: where found, ON: required, OFF) and, where the modules are there, the
# target PkgConfig::leeway_<name>. The library links it; what needs it is built under
# `if(TARGET PkgConfig::leeway_<name>)`. The summary has a row for it.
function(leeway_optional name title package)
  string(TOLOWER "leeway_${name}" prefix)
  set(option LEEWAY_WITH_${name})
  set(${option} AUTO CACHE STRING "${title}: AUTO, ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  if(${option} STREQUAL AUTO)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${ARGN})
  elseif(${option})
    pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET ${ARGN})
  endif()
  if(TARGET PkgConfig::${prefix})
    list(GET ARGN 0 first)
    set(row "yes (${first} ${${prefix}_${first}_VERSION}${${prefix}_VERSION})")
    set_property(GLOBAL APPEND PROPERTY LEEWAY_OPTIONAL_TARGETS PkgConfig::${prefix})
  else()
    set(row "no (${option}=${${option}}; needs ${package})")
  endif()
  set_property(GLOBAL APPEND PROPERTY LEEWAY_OPTIONAL_NAMES ${name})
  set_property(GLOBAL PROPERTY LEEWAY_OPTIONAL_TITLE_${name} "${title}")
  set_property(GLOBAL PROPERTY LEEWAY_OPTIONAL_ROW_${name} "${row}")
endfunction()

leeway_optional(VERBS "InfiniBand and RoCE" "libibverbs-dev and librdmacm-dev" libibverbs librdmacm)
leeway_optional(UCX "UCX" "libucx-dev" ucx ucx-ucs)
leeway_optional(METRICS "Prometheus" "prometheus-cpp-dev" prometheus-cpp-core)
