# The compiler cache and the linker, when they are there. Neither changes what is built.

find_program(PALLASCOPE_CCACHE ccache)
mark_as_advanced(PALLASCOPE_CCACHE)
if(PALLASCOPE_CCACHE)
  # With a base folder and no working directory in the hash, a second checkout finds the objects of
  # the first: our include paths and source names are then relative to the checkout.
  set(launcher env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${PALLASCOPE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_program(PALLASCOPE_MOLD mold)
mark_as_advanced(PALLASCOPE_MOLD)
if(PALLASCOPE_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX "-fuse-ld=mold" PALLASCOPE_MOLD_WORKS)
  if(PALLASCOPE_MOLD_WORKS)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
