# recoup::recoup is the shared library, recoup::static the static one; both bring recoup.h. The prefix may be moved.

include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(_recoup_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET recoup::recoup)
  add_library(recoup::recoup SHARED IMPORTED)
  set_target_properties(recoup::recoup PROPERTIES
    IMPORTED_LOCATION "${_recoup_prefix}/lib/librecoup.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_recoup_prefix}/include")

  add_library(recoup::static STATIC IMPORTED)
  set_target_properties(recoup::static PROPERTIES
    IMPORTED_LOCATION "${_recoup_prefix}/lib/librecoup.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_recoup_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()

unset(_recoup_prefix)
