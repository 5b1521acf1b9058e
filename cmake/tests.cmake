# Tests are found, not listed:
#   tests/unit/<room>/*.cpp   one GoogleTest executable test_<room>, linked with that room
#   tests/golden/*.cpp        test_golden, linked with session and report
#   tests/ui/*.cpp            test_ui, the views in front of imgui_test_engine, without a window
#   tests/bench/<name>.cpp    a Google Benchmark executable bench_<name>; ./test builds it
#   tests/bench/ui_*.cpp      bench_ui, all of them together: the views without a window
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

# test_ui and bench_ui. The views are a library of the product, which holds no test engine; so test_ui
# compiles them a second time, against the ImGui that has it. The benchmark measures what ships.
function(pallascope_ui_tests)
  if(NOT TARGET pallascope_views_layer_usage)
    return()
  endif()
  file(GLOB views CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/app/views/*.cpp")
  file(GLOB tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/ui/*.cpp")
  file(GLOB benchmarks CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/bench/ui_*.cpp")
  set(layers "")
  foreach(name IN ITEMS session report client model repl workspace)
    if(TARGET pallascope_${name}_layer)
      list(APPEND layers pallascope_${name}_layer)
    endif()
  endforeach()

  if(views AND tests)
    # What the views need, with the other ImGui in place of the product's. The layers below them must
    # not know ImGui, or both kinds would meet in one program.
    get_target_property(needs pallascope_views_layer_usage INTERFACE_LINK_LIBRARIES)
    list(TRANSFORM needs REPLACE "^(imgui|implot)$" "\\1_te")
    if("imgui_glfw" IN_LIST needs)
      message(FATAL_ERROR "app/views draws with ImGui alone: imgui_glfw belongs into app/window.")
    endif()
    add_library(pallascope_views_te STATIC EXCLUDE_FROM_ALL ${views})
    target_include_directories(pallascope_views_te PUBLIC "${PROJECT_SOURCE_DIR}")
    target_link_libraries(pallascope_views_te PUBLIC ${needs} pallascope_fonts)
    target_compile_options(pallascope_views_te PRIVATE ${PALLASCOPE_WARNINGS})
    pallascope_gtest(test_ui SOURCES ${tests}
      LINK pallascope_views_te ${layers} imgui_te implot_te imgui_null_te stb pallascope_fonts)
    if(TARGET pallascope_host)
      add_dependencies(test_ui pallascope_host)  # a session starts it
    endif()
  endif()

  if(views AND benchmarks)
    pallascope_test_executable(bench_ui SOURCES ${benchmarks}
      LINK pallascope_views_layer ${layers} imgui implot imgui_null pallascope_fonts
           benchmark::benchmark benchmark::benchmark_main)
    if(TARGET pallascope_host)
      add_dependencies(bench_ui pallascope_host)
    endif()
  endif()
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

  pallascope_ui_tests()

  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/bench/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/ui_[^/]*$")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    string(REGEX REPLACE "^bench_" "" name "${name}")
    pallascope_test_executable(bench_${name} SOURCES "${source}"
      LINK pallascope_model_layer pallascope_report_layer pallascope_session_layer
           benchmark::benchmark benchmark::benchmark_main)
  endforeach()
endfunction()
