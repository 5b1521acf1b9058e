# What the window is made of: Dear ImGui, ImPlot, GLFW, OpenGL, tree-sitter and fonts. Included by
# deps.cmake. THIRD_PARTY.md has the licences.
#
#   imgui  implot        Dear ImGui (docking) and ImPlot, without the test engine: the product's
#   imgui_glfw           ImGui's backends for GLFW and OpenGL 3
#   imgui_null           ImGui's backend that draws nothing; a frame without a window
#   imgui_te  implot_te  imgui_null_te
#                        the same with imgui_test_engine, for test binaries only: its licence and its
#                        hooks stay out of what ships. Never link both kinds into one binary:
#                        pallascope_ui_tests (tests.cmake) compiles the views a second time instead.
#   tree_sitter          the parser library with the grammar of Python
#   stb                  stb_image_write.h, compiled
#   pallascope_fonts     PALLASCOPE_FONT_*: absolute paths of font files, as string literals

pallascope_sdist(imgui-bundle 1.93.0 imgui_bundle
  10ad1dab8258a6787b4f07bb926b08d0efc648a7906242568c8dd778c5e719bf
  "*/external/imgui/imgui/*" "*/external/implot/implot/*" "*/external/glfw/glfw/deps/stb_image_write.h"
  "*/external/imgui_test_engine/imgui_test_engine/imgui_test_engine/*")
pallascope_sdist(tree-sitter 0.26.1 tree_sitter
  9919cbaf02d17fa9a4cd0e6da496aecf901b758e6eacf122eee393e3ef08aacd)
# The grammar's 0.25.0 has parser.c and its headers but no scanner.c; 0.23.6 has scanner.c, written for
# the same list of external tokens, and no headers.
pallascope_sdist(tree-sitter-python 0.23.6 tree_sitter_python
  354bfa0a2f9217431764a631516f85173e9711af2c13dbd796a8815acfe505d9)
set(tree_sitter_python_scanner "${tree_sitter_python_SOURCE_DIR}/src/scanner.c")
pallascope_sdist(tree-sitter-python 0.25.0 tree_sitter_python
  b13e090f725f5b9c86aa455a268553c65cadf325471ad5b65cd29cac8a1a68ac)

find_package(glfw3 3.3 REQUIRED)
find_package(Freetype 2.10 REQUIRED)
pallascope_find_library(pallascope_opengl GL/gl.h GL libgl-dev)

set(_imgui "${imgui_bundle_SOURCE_DIR}/external/imgui/imgui")
set(_implot "${imgui_bundle_SOURCE_DIR}/external/implot/implot")
set(_test_engine "${imgui_bundle_SOURCE_DIR}/external/imgui_test_engine/imgui_test_engine/imgui_test_engine")

# A library of others' sources: no warnings of ours, built only when something links it. With sanitizers
# on, addresses are checked in it too, but not undefined behaviour: that doubles ImPlot's build time.
function(pallascope_foreign_library target)
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${ARGN})
  target_compile_options(${target} PRIVATE -w $<$<CONFIG:Debug>:-fno-sanitize=undefined>)
endfunction()

# ImGui, ImPlot and the null backend under one configuration. `suffix` is empty or _te.
function(pallascope_imgui suffix)
  pallascope_foreign_library(imgui${suffix}
    "${_imgui}/imgui.cpp" "${_imgui}/imgui_demo.cpp" "${_imgui}/imgui_draw.cpp" "${_imgui}/imgui_tables.cpp"
    "${_imgui}/imgui_widgets.cpp" "${_imgui}/imgui_stacklayout.cpp" "${_imgui}/misc/cpp/imgui_stdlib.cpp"
    "${_imgui}/misc/freetype/imgui_freetype.cpp")
  target_include_directories(imgui${suffix} SYSTEM PUBLIC
    "${_imgui}" "${_imgui}/backends" "${_imgui}/misc/cpp" "${_imgui}/misc/freetype")
  target_compile_definitions(imgui${suffix}
    PUBLIC IMGUI_ENABLE_FREETYPE IMGUI_DEFINE_MATH_OPERATORS
    PRIVATE IMGUI_DISABLE_DEMO_WINDOWS)  # 9,000 lines that nobody opens
  target_link_libraries(imgui${suffix} PUBLIC Freetype::Freetype)

  pallascope_foreign_library(implot${suffix} "${_implot}/implot.cpp" "${_implot}/implot_items.cpp")
  target_include_directories(implot${suffix} SYSTEM PUBLIC "${_implot}")
  # Plots of other types would each cost seconds of compile time.
  target_compile_definitions(implot${suffix} PUBLIC "IMPLOT_CUSTOM_NUMERIC_TYPES=(float)(double)(int)")
  target_link_libraries(implot${suffix} PUBLIC imgui${suffix})

  pallascope_foreign_library(imgui_null${suffix} "${_imgui}/backends/imgui_impl_null.cpp")
  target_link_libraries(imgui_null${suffix} PUBLIC imgui${suffix})
endfunction()

pallascope_imgui("")
pallascope_foreign_library(imgui_glfw
  "${_imgui}/backends/imgui_impl_glfw.cpp" "${_imgui}/backends/imgui_impl_opengl3.cpp")
target_link_libraries(imgui_glfw PUBLIC imgui glfw pallascope_opengl ${CMAKE_DL_LIBS})

if(PALLASCOPE_TESTS)
  pallascope_imgui(_te)
  file(GLOB _test_engine_sources "${_test_engine}/*.cpp")
  target_sources(imgui_te PRIVATE ${_test_engine_sources})
  target_include_directories(imgui_te SYSTEM PUBLIC "${_test_engine}" "${_test_engine}/..")
  target_compile_definitions(imgui_te PUBLIC IMGUI_ENABLE_TEST_ENGINE IMGUI_TEST_ENGINE_ENABLE_STD_FUNCTION=1
    IMGUI_TEST_ENGINE_ENABLE_COROUTINE_STDTHREAD_IMPL=1)
  target_link_libraries(imgui_te PUBLIC Threads::Threads)
endif()

# Alone in a folder: its own has a getopt.h and other names that must not be found.
set(_stb "${CMAKE_BINARY_DIR}/_deps/stb")
configure_file("${imgui_bundle_SOURCE_DIR}/external/glfw/glfw/deps/stb_image_write.h"
               "${_stb}/stb_image_write.h" COPYONLY)
file(CONFIGURE OUTPUT "${_stb}/stb_image_write.c" CONTENT
  "#define STB_IMAGE_WRITE_IMPLEMENTATION\n#include \"stb_image_write.h\"\n")
pallascope_foreign_library(stb "${_stb}/stb_image_write.c")
target_include_directories(stb SYSTEM PUBLIC "${_stb}")

# Debian's own libtree-sitter is too old for the grammar; its header is found only after this one.
set(_tree_sitter "${tree_sitter_SOURCE_DIR}/tree_sitter/core/lib")
set(_grammar "${tree_sitter_python_SOURCE_DIR}/src")
pallascope_foreign_library(tree_sitter_python "${_grammar}/parser.c" "${tree_sitter_python_scanner}")
target_include_directories(tree_sitter_python BEFORE PRIVATE "${_grammar}")
set_target_properties(tree_sitter_python PROPERTIES C_STANDARD 11)
pallascope_foreign_library(tree_sitter "${_tree_sitter}/src/lib.c")
target_include_directories(tree_sitter SYSTEM PUBLIC "${_tree_sitter}/include" PRIVATE "${_tree_sitter}/src")
target_compile_definitions(tree_sitter PRIVATE _POSIX_C_SOURCE=200112L _DEFAULT_SOURCE)
target_link_libraries(tree_sitter PUBLIC tree_sitter_python)
set_target_properties(tree_sitter PROPERTIES C_STANDARD 11)

# Fonts, by what they are for. Inter and JetBrains Mono are merged with DejaVu for the signs that they
# lack: SIGNS (DejaVu Sans) and then MONO_SIGNS (DejaVu Sans Mono, which alone has the magnifier U+2315)
# behind Inter; MONO_SIGNS behind JetBrains Mono, with the same advance of 0.60 em.
add_library(pallascope_fonts INTERFACE)
function(pallascope_font name package)
  find_file(PALLASCOPE_FONT_${name}_FILE NAMES ${ARGN}
    PATHS /usr/share/fonts /usr/local/share/fonts
    PATH_SUFFIXES opentype/inter truetype/inter inter truetype/jetbrains-mono jetbrains-mono
                  truetype/dejavu dejavu
    NO_DEFAULT_PATH DOC "Font file: ${name}")
  mark_as_advanced(PALLASCOPE_FONT_${name}_FILE)
  if(NOT PALLASCOPE_FONT_${name}_FILE)
    list(GET ARGN 0 file)
    message(FATAL_ERROR "The font ${file} was not found: install Debian's ${package}, or give any font file "
                        "that should stand in for it with -DPALLASCOPE_FONT_${name}_FILE=PATH.")
  endif()
  target_compile_definitions(pallascope_fonts INTERFACE
    "PALLASCOPE_FONT_${name}=\"${PALLASCOPE_FONT_${name}_FILE}\"")
endfunction()
pallascope_font(UI fonts-inter Inter-Regular.otf Inter-Regular.ttf)
pallascope_font(UI_BOLD fonts-inter Inter-SemiBold.otf Inter-SemiBold.ttf)
pallascope_font(UI_ITALIC fonts-inter Inter-Italic.otf Inter-Italic.ttf)
pallascope_font(MONO fonts-jetbrains-mono JetBrainsMono-Regular.ttf JetBrainsMono-Regular.otf)
pallascope_font(MONO_BOLD fonts-jetbrains-mono JetBrainsMono-Bold.ttf JetBrainsMono-Bold.otf)
pallascope_font(MONO_ITALIC fonts-jetbrains-mono JetBrainsMono-Italic.ttf JetBrainsMono-Italic.otf)
pallascope_font(SIGNS fonts-dejavu-core DejaVuSans.ttf)
pallascope_font(MONO_SIGNS fonts-dejavu-core DejaVuSansMono.ttf)

pallascope_third_party(imgui TARGET imgui HEADERS imgui imstb_ misc/cpp/imgui)
pallascope_third_party(imgui_glfw TARGET imgui_glfw HEADERS imgui_impl_ backends/imgui)
pallascope_third_party(implot TARGET implot HEADERS implot)
pallascope_third_party(glfw TARGET glfw HEADERS GLFW/)
pallascope_third_party(opengl TARGET pallascope_opengl HEADERS GL/)
pallascope_third_party(tree_sitter TARGET tree_sitter HEADERS tree_sitter/)
pallascope_third_party(stb TARGET stb HEADERS stb_)
pallascope_third_party(fonts TARGET pallascope_fonts)
# Without TARGET: tests link them, no room can.
pallascope_third_party(imgui_null HEADERS imgui_impl_null)
pallascope_third_party(imgui_test_engine HEADERS imgui_te_ imgui_test_engine imgui_capture_tool)
