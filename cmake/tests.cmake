# Tests are found, not listed:
#   tests/unit/<room>/*.cpp   one GoogleTest executable test_<room>, linked with that room
#   tests/golden/*.cpp        test_golden, linked with session and report
#   tests/bench/<name>.cpp    a Google Benchmark executable bench_<name>; ./test builds it
# A file put there is picked up by the next build. Python tests need nothing here: ./test gives
# tests/layers, tests/package and tests/differential to pytest.
#
# In each of them PALLASCOPE_TEST_DATA is the absolute path of tests/, and the paths that the app
# gets are there too. A test runs with the source folder as its working directory.

function(pallascope_test_executable target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINK} pallascope_paths)
  target_compile_options(${target} PRIVATE ${PALLASCOPE_WARNINGS})
  target_compile_definitions(${target} PRIVATE "PALLASCOPE_TEST_DATA=\"${PROJECT_SOURCE_DIR}/tests\"")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_dependencies(pallascope_tests ${target})
endfunction()

function(pallascope_gtest target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  pallascope_test_executable(${target} SOURCES ${arg_SOURCES}
    LINK ${arg_LINK} rapidcheck GTest::gtest GTest::gtest_main)
  add_test(NAME ${target} COMMAND ${target} --gtest_brief=1 WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${target} PROPERTIES TIMEOUT 300)
endfunction()

function(pallascope_all_tests)
  get_property(layers GLOBAL PROPERTY PALLASCOPE_LAYERS)
  foreach(name IN LISTS layers)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/unit/${name}/*.cpp")
    get_property(kind GLOBAL PROPERTY "PALLASCOPE_LAYER_${name}_KIND")
    if(sources AND kind STREQUAL "LIBRARY")
      set(oracle "")
      if(name STREQUAL "index")
        set(oracle pallascope_isl)
      endif()
      pallascope_gtest(test_${name} SOURCES ${sources} LINK pallascope_${name}_layer ${oracle})
      if(name MATCHES "^(client|repl)$" AND TARGET pallascope_host)
        add_dependencies(test_${name} pallascope_host)  # they start it
      endif()
    elseif(sources)
      message(SEND_ERROR "tests/unit/${name}: ${name} is no library, so a unit test cannot link it.")
    endif()
  endforeach()
  file(GLOB rooms CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE "${PROJECT_SOURCE_DIR}/tests/unit"
    "${PROJECT_SOURCE_DIR}/tests/unit/*")
  foreach(room IN LISTS rooms)
    file(GLOB sources "${PROJECT_SOURCE_DIR}/tests/unit/${room}/*.cpp")
    if(sources AND NOT room IN_LIST layers)  # support/ holds headers that several rooms share
      message(WARNING "tests/unit/${room} is not built: there is no layer '${room}'.")
    endif()
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/golden/*.cpp")
  if(sources)
    pallascope_gtest(test_golden SOURCES ${sources} LINK pallascope_report_layer pallascope_session_layer)
  endif()

  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/bench/*.cpp")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    string(REGEX REPLACE "^bench_" "" name "${name}")
    pallascope_test_executable(bench_${name} SOURCES "${source}"
      LINK pallascope_report_layer pallascope_session_layer benchmark::benchmark benchmark::benchmark_main)
  endforeach()
endfunction()
