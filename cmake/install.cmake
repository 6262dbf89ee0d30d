# What `make install` puts where: libraries, headers under include/tapegrad, and what find_package and pkg-config read.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(without_icu "")
if(NOT use_icu)
  set(without_icu PATTERN wordpiece.hpp EXCLUDE PATTERN sentence_encoder.hpp EXCLUDE)
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tapegrad)
install(TARGETS ${libraries} tapegrad_distributed EXPORT tapegradTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_INCLUDEDIR}/tapegrad)
foreach(level ${levels})
  foreach(library ${libraries})
    install(TARGETS ${library}_${level} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/glibc-hwcaps/${level} NAMELINK_SKIP)
  endforeach()
endforeach()
install(EXPORT tapegradTargets NAMESPACE tapegrad:: DESTINATION ${package})
install(DIRECTORY autograd nn optim distributed DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tapegrad
        FILES_MATCHING PATTERN *.hpp
        PATTERN ops EXCLUDE PATTERN simd.hpp EXCLUDE ${without_icu})  # these no installed header includes
install(FILES tapegrad.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tapegrad)

write_basic_package_version_file(${PROJECT_BINARY_DIR}/tapegradConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/tapegradConfig.cmake ${PROJECT_SOURCE_DIR}/cmake/need.cmake
              ${PROJECT_BINARY_DIR}/tapegradConfigVersion.cmake DESTINATION ${package})

file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" up "${up}")
list(JOIN private_libraries " " private_libs)
set(static_libs "")
if(NOT BUILD_SHARED_LIBS)  # a static library alone is of no use: `pkg-config --libs` names what it needs
  set(static_libs " ${private_libs}")
endif()
set(flags " -DXTENSOR_USE_XSIMD")
foreach(array_library xtensor xsimd xtl)
  get_target_property(folder ${array_library} INTERFACE_INCLUDE_DIRECTORIES)
  if(folder AND NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    list(JOIN folder " -I" folder)
    string(APPEND flags " -I${folder}")
  endif()
endforeach()
foreach(library ${libraries})
  set(name tapegrad)
  set(real float)
  if(library STREQUAL tapegrad_double)
    set(name tapegrad-double)
    set(real double)
    string(APPEND flags " -DTAPEGRAD_DOUBLE")
  endif()
  configure_file(cmake/tapegrad.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
