# veloc::client is recoup's libveloc-client, in the place of VELOC's; veloc-client is another name of it. With MPI, where
# CMake finds one; without, only VELOC_Init_single is declared. The prefix may be moved.

include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_package(MPI QUIET)

get_filename_component(_veloc_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET veloc::client)
  set(_veloc_links "")
  if(EXISTS "${_veloc_prefix}/lib/libveloc-client.so")
    add_library(veloc::client SHARED IMPORTED)
    set_target_properties(veloc::client PROPERTIES IMPORTED_LOCATION "${_veloc_prefix}/lib/libveloc-client.so")
  else()
    add_library(veloc::client STATIC IMPORTED)
    set_target_properties(veloc::client PROPERTIES IMPORTED_LOCATION "${_veloc_prefix}/lib/libveloc-client.a")
    list(APPEND _veloc_links Threads::Threads ${CMAKE_DL_LIBS} m)
  endif()

  # Programs of VELOC's own tree include "include/veloc.h", so the prefix is searched too.
  set_target_properties(veloc::client PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_veloc_prefix}/include;${_veloc_prefix}")
  if(TARGET MPI::MPI_CXX)
    list(APPEND _veloc_links MPI::MPI_CXX)
  elseif(TARGET MPI::MPI_C)
    list(APPEND _veloc_links MPI::MPI_C)
  else()
    set_target_properties(veloc::client PROPERTIES INTERFACE_COMPILE_DEFINITIONS VELOC_NO_MPI)
  endif()
  set_target_properties(veloc::client PROPERTIES INTERFACE_LINK_LIBRARIES "${_veloc_links}")

  add_library(veloc-client INTERFACE IMPORTED)
  set_target_properties(veloc-client PROPERTIES INTERFACE_LINK_LIBRARIES veloc::client)
  unset(_veloc_links)
endif()

unset(_veloc_prefix)
