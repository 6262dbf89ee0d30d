# need(NAME TARGET HEADER...): a library that is there when one of its headers is; else its name goes into `missing`.
# Where it comes without a CMake package (headers on CPATH, a bare copy in a prefix), TARGET is made from the header's
# folder. Used by the build, and by find_package(tapegrad).
macro(need name target)
  find_package(${name} CONFIG QUIET)
  set(hints "")
  if(TARGET ${target})
    get_target_property(hints ${target} INTERFACE_INCLUDE_DIRECTORIES)
  endif()
  find_path(folder NAMES ${ARGN} HINTS ${hints} ENV CPATH NO_CACHE)
  if(NOT folder)
    list(APPEND missing ${name})
  elseif(NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED)
    target_include_directories(${target} INTERFACE ${folder})
  endif()
  unset(folder)
endmacro()

# What the headers of tapegrad include.
macro(need_arrays)
  need(xtl xtl xtl/xtl_config.hpp)
  need(xsimd xsimd xsimd/xsimd.hpp)
  need(xtensor xtensor xtensor/xtensor_config.hpp xtensor/core/xtensor_config.hpp)
endmacro()
