# One call declares a layer (a room of the source tree) and everything it may include:
#
#   pallascope_layer(core/trace USES base THIRD_PARTY nlohmann_json libzip)
#
# USES         layers by the last part of their path; each must be declared before, which keeps the
#              order of the list in DESIGN.md. Only what is named may be included: what a named layer
#              uses is not included in it.
# THIRD_PARTY  libraries by their name in deps.cmake.
# KIND         LIBRARY (default), EXECUTABLE or PYTHON_MODULE
# OUTPUT       name of the executable or of the module
#
# The sources are the room's *.cpp; a room without any is a room of headers; new files are picked up
# by the next build. build/layers.json holds the same declarations for tests/layers.

set(PALLASCOPE_WARNINGS -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND PALLASCOPE_WARNINGS -Wno-restrict)  # wrong about std::string::insert and + (GCC bug 105651)
endif()
if(PALLASCOPE_WERROR)
  list(APPEND PALLASCOPE_WARNINGS -Werror)
endif()

function(pallascope_layer path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "KIND;OUTPUT" "USES;THIRD_PARTY")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "pallascope_layer(${path}): what is '${arg_UNPARSED_ARGUMENTS}'?")
  endif()
  if(NOT arg_KIND)
    set(arg_KIND LIBRARY)
  endif()
  get_filename_component(name "${path}" NAME)
  set(target "pallascope_${name}_layer")

  # What users of the layer need: our one include root, the layers and the libraries.
  add_library(${target}_usage INTERFACE)
  target_include_directories(${target}_usage INTERFACE "${PROJECT_SOURCE_DIR}")
  set(uses "")
  foreach(used IN LISTS arg_USES)
    get_property(used_path GLOBAL PROPERTY "PALLASCOPE_LAYER_${used}")
    if(NOT used_path)
      message(FATAL_ERROR "pallascope_layer(${path}) uses '${used}', which is not declared above it.")
    endif()
    get_property(used_kind GLOBAL PROPERTY "PALLASCOPE_LAYER_${used}_KIND")
    if(NOT used_kind STREQUAL "LIBRARY")
      message(FATAL_ERROR "pallascope_layer(${path}) uses '${used}', which is no library.")
    endif()
    target_link_libraries(${target}_usage INTERFACE pallascope_${used}_layer)
    list(APPEND uses "${used_path}")
  endforeach()
  foreach(library IN LISTS arg_THIRD_PARTY)
    get_property(library_target GLOBAL PROPERTY "PALLASCOPE_THIRD_PARTY_${library}_TARGET")
    if(NOT library_target)
      message(FATAL_ERROR "pallascope_layer(${path}): '${library}' has no TARGET in cmake/deps.cmake.")
    endif()
    if(NOT library STREQUAL "pybind11")  # comes with pybind11_add_module or pybind11::embed
      target_link_libraries(${target}_usage INTERFACE ${library_target})
    endif()
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${path}/*.cpp")
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${path}/*.h")

  set(extra "")
  if(arg_KIND STREQUAL "LIBRARY")
    if(sources)
      add_library(${target} STATIC ${sources})
      target_link_libraries(${target} PUBLIC ${target}_usage)
    else()
      add_library(${target} INTERFACE)
      target_link_libraries(${target} INTERFACE ${target}_usage)
    endif()
  elseif(arg_KIND STREQUAL "EXECUTABLE")
    set(target "${arg_OUTPUT}")
    if("pybind11" IN_LIST arg_THIRD_PARTY)
      set(extra pybind11::embed)
    endif()
    if(sources)
      add_executable(${target} ${sources})
      set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
    endif()
  elseif(arg_KIND STREQUAL "PYTHON_MODULE")
    set(target "${arg_OUTPUT}")
    set(extra pybind11::module)
    if(sources)
      # NO_EXTRAS: link-time optimisation makes each build slower and the calls no faster.
      pybind11_add_module(${target} MODULE NO_EXTRAS ${sources})
      set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/python")
      target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
    endif()
  else()
    message(FATAL_ERROR "pallascope_layer(${path}): no KIND '${arg_KIND}'.")
  endif()

  if(sources)
    target_compile_options(${target} PRIVATE ${PALLASCOPE_WARNINGS})
    if(NOT arg_KIND STREQUAL "LIBRARY")
      target_link_libraries(${target} PRIVATE pallascope_${name}_layer_usage ${extra})
      # pybind11's types are hidden; a visible type of ours that holds one is a warning.
      set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden)
      set_property(GLOBAL APPEND PROPERTY PALLASCOPE_PRODUCTS ${target})
    endif()
  endif()

  # Each header compiles alone: one translation unit a header, in the test build only.
  if(PALLASCOPE_TESTS AND headers)
    set(units "")
    foreach(header IN LISTS headers)
      string(REPLACE "/" "_" unit "${header}")
      set(unit "${CMAKE_BINARY_DIR}/headers_alone/${unit}.cpp")
      file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"${header}\"\n")
      list(APPEND units "${unit}")
    endforeach()
    add_library(headers_alone_${name} OBJECT ${units})
    target_link_libraries(headers_alone_${name} PRIVATE pallascope_${name}_layer_usage ${extra})
    target_compile_options(headers_alone_${name} PRIVATE ${PALLASCOPE_WARNINGS} -O0)
    set_target_properties(headers_alone_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden)
    add_dependencies(pallascope_tests headers_alone_${name})
  endif()

  set_property(GLOBAL PROPERTY "PALLASCOPE_LAYER_${name}" "${path}")
  set_property(GLOBAL PROPERTY "PALLASCOPE_LAYER_${name}_KIND" "${arg_KIND}")
  set_property(GLOBAL APPEND PROPERTY PALLASCOPE_LAYERS "${name}")
  pallascope_json_list(uses_json ${uses})
  pallascope_json_list(third_party_json ${arg_THIRD_PARTY})
  set_property(GLOBAL APPEND PROPERTY PALLASCOPE_LAYERS_JSON
    "    {\"path\": \"${path}\", \"uses\": ${uses_json}, \"third_party\": ${third_party_json}}")
endfunction()

function(pallascope_json_list result)
  list(TRANSFORM ARGN REPLACE "(.+)" "\"\\1\"")
  list(JOIN ARGN ", " joined)
  set(${result} "[${joined}]" PARENT_SCOPE)
endfunction()

# Writes what was declared to build/layers.json. Call it once, after the last layer.
function(pallascope_write_layers)
  get_property(layers GLOBAL PROPERTY PALLASCOPE_LAYERS_JSON)
  list(JOIN layers ",\n" layers)
  get_property(names GLOBAL PROPERTY PALLASCOPE_THIRD_PARTY)
  set(libraries "")
  foreach(name IN LISTS names)
    get_property(headers GLOBAL PROPERTY "PALLASCOPE_THIRD_PARTY_${name}_HEADERS")
    pallascope_json_list(headers ${headers})
    list(APPEND libraries "    \"${name}\": ${headers}")
  endforeach()
  list(JOIN libraries ",\n" libraries)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/layers.json" @ONLY CONTENT
    "{\n  \"layers\": [\n${layers}\n  ],\n  \"third_party\": {\n${libraries}\n  }\n}\n")
endfunction()
