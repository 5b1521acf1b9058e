# Everything that is not ours: Debian's packages, and source distributions from PyPI by pinned
# version and sha256. Nothing of it is committed. THIRD_PARTY.md has the licences.
#
# pallascope_third_party(<name> [TARGET <cmake target>] [HEADERS <prefix>...])
#   names a library, and the beginnings of the includes that belong to it. The layer test reads the
#   same table, so a header is allowed exactly in the rooms whose pallascope_layer() call names the
#   library. A library without TARGET is known to the test, but no room can use it yet.
#
# pallascope_sdist(<PyPI name> <version> <file stem> <sha256> [<pattern>...])
#   downloads (once) into DEPS_CACHE and unpacks into build/_deps, with patterns only what fits one;
#   sets <stem>_SOURCE_DIR. Works offline when the file is in the cache.

set(_deps_cache "$ENV{HOME}/.cache/pallascope")
execute_process(COMMAND "${CMAKE_COMMAND}" -E make_directory "${_deps_cache}"
                RESULT_VARIABLE _failed OUTPUT_QUIET ERROR_QUIET)
if(_failed OR NOT IS_DIRECTORY "${_deps_cache}")
  set(_deps_cache "${CMAKE_BINARY_DIR}/_deps/cache")
endif()
set(DEPS_CACHE "${_deps_cache}" CACHE PATH "Where downloaded source distributions are kept")

# The Python that downloads: the configured one, or a throw-away environment when it has no pip.
function(pallascope_pip_python result)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m pip --version
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  set(python "${Python_EXECUTABLE}")
  if(failed)
    set(python "${CMAKE_BINARY_DIR}/_deps/pip/bin/python")
    if(NOT EXISTS "${python}")
      find_program(PALLASCOPE_SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
      execute_process(COMMAND "${PALLASCOPE_SYSTEM_PYTHON}" -m venv "${CMAKE_BINARY_DIR}/_deps/pip"
                      RESULT_VARIABLE failed OUTPUT_VARIABLE out ERROR_VARIABLE out)
      if(failed)
        message(FATAL_ERROR "${Python_EXECUTABLE} has no pip, and /usr/bin/python3 could not make an "
                            "environment that has one (is python3-venv installed?):\n${out}")
      endif()
    endif()
  endif()
  set(${result} "${python}" PARENT_SCOPE)
endfunction()

function(pallascope_sdist name version stem sha256)
  set(archive "${DEPS_CACHE}/${stem}-${version}.tar.gz")
  set(folder "${CMAKE_BINARY_DIR}/_deps/${stem}-${version}")
  set(${stem}_SOURCE_DIR "${folder}" PARENT_SCOPE)
  if(EXISTS "${folder}.ok")
    file(READ "${folder}.ok" unpacked)
    if(unpacked STREQUAL "${ARGN}")
      return()
    endif()
  endif()
  if(NOT EXISTS "${archive}")
    message(STATUS "Downloading ${name} ${version} from PyPI")
    pallascope_pip_python(python)
    file(MAKE_DIRECTORY "${DEPS_CACHE}")
    set(pin "${CMAKE_BINARY_DIR}/_deps/${stem}-${version}.txt")
    file(WRITE "${pin}" "${name}==${version} --hash=sha256:${sha256}\n")
    # --no-binary names the package: with :all: pip would build CMake itself from source.
    execute_process(
      COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${PROJECT_SOURCE_DIR}/cmake/pip_stub"
              "${python}" -m pip download --quiet --disable-pip-version-check --no-deps
              --no-binary "${name}" --no-build-isolation --use-pep517 --require-hashes
              --dest "${DEPS_CACHE}" --requirement "${pin}"
      RESULT_VARIABLE failed OUTPUT_VARIABLE out ERROR_VARIABLE out)
    if(failed)
      message(FATAL_ERROR "Could not download ${name} ${version} from PyPI. Without a network, put "
                          "${stem}-${version}.tar.gz into ${DEPS_CACHE}. pip said:\n${out}")
    endif()
  endif()
  file(SHA256 "${archive}" got)
  if(NOT got STREQUAL sha256)
    message(FATAL_ERROR "${archive} is not the file that was pinned (sha256 ${got}, expected "
                        "${sha256}). Delete it and configure again.")
  endif()
  file(REMOVE_RECURSE "${folder}")
  set(patterns "")
  if(ARGN)
    set(patterns PATTERNS ${ARGN})
  endif()
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${CMAKE_BINARY_DIR}/_deps" ${patterns})
  file(WRITE "${folder}.ok" "${ARGN}")
endfunction()

# A library of Debian that comes without a usable CMake package. (libzip's own package refuses to
# load unless three unrelated command-line tools are installed.)
function(pallascope_find_library target header library package)
  find_path(${target}_INCLUDE "${header}")
  find_library(${target}_LIBRARY "${library}")
  if(NOT ${target}_INCLUDE OR NOT ${target}_LIBRARY)
    message(FATAL_ERROR "${header} or lib${library} was not found: install Debian's ${package}.")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE "${${target}_INCLUDE}")
  target_link_libraries(${target} INTERFACE "${${target}_LIBRARY}")
  mark_as_advanced(${target}_INCLUDE ${target}_LIBRARY)
endfunction()

function(pallascope_third_party name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TARGET" "HEADERS")
  set_property(GLOBAL APPEND PROPERTY PALLASCOPE_THIRD_PARTY "${name}")
  set_property(GLOBAL PROPERTY "PALLASCOPE_THIRD_PARTY_${name}_TARGET" "${arg_TARGET}")
  set_property(GLOBAL PROPERTY "PALLASCOPE_THIRD_PARTY_${name}_HEADERS" "${arg_HEADERS}")
endfunction()

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CLI11 2 REQUIRED)
pallascope_find_library(pallascope_libzip zip.h zip libzip-dev)
pallascope_find_library(pallascope_libedit histedit.h edit libedit-dev)

pallascope_sdist(pybind11 3.1.0 pybind11 a1cc06b524ab3edca51f8ad3895f9c4fa20b8b19283173dff4ae781449dc9639)
set(PYBIND11_FINDPYTHON ON)
add_subdirectory("${pybind11_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/_deps/pybind11-build" EXCLUDE_FROM_ALL SYSTEM)

pallascope_third_party(nlohmann_json TARGET nlohmann_json::nlohmann_json HEADERS nlohmann/)
pallascope_third_party(fmt TARGET fmt::fmt HEADERS fmt/)
pallascope_third_party(libzip TARGET pallascope_libzip HEADERS zip.h zipconf.h)
pallascope_third_party(cli11 TARGET CLI11::CLI11 HEADERS CLI/)
pallascope_third_party(libedit TARGET pallascope_libedit HEADERS histedit.h editline/)
pallascope_third_party(pybind11 TARGET pybind11::headers HEADERS pybind11/ Python.h)
pallascope_third_party(threads TARGET Threads::Threads)

if(PALLASCOPE_TESTS)
  find_package(GTest 1.12 REQUIRED)
  find_package(benchmark 1.7 REQUIRED)
  find_package(rapidcheck REQUIRED)
  pallascope_find_library(pallascope_isl isl/set.h isl libisl-dev)
endif()
pallascope_third_party(gtest TARGET GTest::gtest HEADERS gtest/ gmock/)
pallascope_third_party(benchmark TARGET benchmark::benchmark HEADERS benchmark/)
pallascope_third_party(rapidcheck TARGET rapidcheck HEADERS rapidcheck.h rapidcheck/)
pallascope_third_party(isl TARGET pallascope_isl HEADERS isl/)

include("${CMAKE_CURRENT_LIST_DIR}/window_deps.cmake")
