# veloc::client is recoup's libveloc-client, in the place of VELOC's; veloc-client is another name of it, and veloc::static
# the static library. Both bring librecoup. With MPI, where CMake finds one; without, only VELOC_Init_single is declared.
# The prefix may be moved.

include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_package(MPI QUIET)

get_filename_component(_veloc_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET veloc::client)
  add_library(veloc::static STATIC IMPORTED)
  set_target_properties(veloc::static PROPERTIES IMPORTED_LOCATION "${_veloc_prefix}/lib/libveloc-client.a")
  set(_veloc_static "${_veloc_prefix}/lib/librecoup.a" Threads::Threads ${CMAKE_DL_LIBS} m)
  if(EXISTS "${_veloc_prefix}/lib/libveloc-client.so")
    add_library(veloc::client SHARED IMPORTED)
    # What it needs is for the linker to find, and no business of the program's.
    set_target_properties(veloc::client PROPERTIES
      IMPORTED_LOCATION "${_veloc_prefix}/lib/libveloc-client.so"
      IMPORTED_LINK_DEPENDENT_LIBRARIES "${_veloc_prefix}/lib/librecoup.so")
    set(_veloc_client "")
  else()
    add_library(veloc::client STATIC IMPORTED)
    set_target_properties(veloc::client PROPERTIES IMPORTED_LOCATION "${_veloc_prefix}/lib/libveloc-client.a")
    set(_veloc_client ${_veloc_static})
  endif()

  set(_veloc_mpi "")
  if(TARGET MPI::MPI_CXX)
    set(_veloc_mpi MPI::MPI_CXX)
  elseif(TARGET MPI::MPI_C)
    set(_veloc_mpi MPI::MPI_C)
  endif()
  foreach(_veloc_kind client static)
    # Programs of VELOC's own tree include "include/veloc.h", so the prefix is searched too.
    set_target_properties(veloc::${_veloc_kind} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${_veloc_prefix}/include;${_veloc_prefix}"
      INTERFACE_LINK_LIBRARIES "${_veloc_${_veloc_kind}};${_veloc_mpi}")
    if(NOT _veloc_mpi)
      set_target_properties(veloc::${_veloc_kind} PROPERTIES INTERFACE_COMPILE_DEFINITIONS VELOC_NO_MPI)
    endif()
  endforeach()

  add_library(veloc-client INTERFACE IMPORTED)
  set_target_properties(veloc-client PROPERTIES INTERFACE_LINK_LIBRARIES veloc::client)
  unset(_veloc_static)
  unset(_veloc_client)
  unset(_veloc_mpi)
endif()

unset(_veloc_prefix)
