# SPDX-License-Identifier: Apache-2.0
# The helpers that every room uses: soma_room, soma_unit_tests, soma_program, soma_fuzz, soma_bench.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# g++ 12 silently miscompiles coroutines (double frees), so it must not even start.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR "Soma needs clang 19 (or g++ 14): use 'cmake --preset dev'.")
endif()

find_program(SOMA_CCACHE ccache)
if(SOMA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SOMA_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${SOMA_CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror
                    -Wno-gnu-zero-variadic-macro-arguments -Wno-c99-designator -Wno-missing-field-initializers
                    -Wno-c23-extensions
                    -fno-omit-frame-pointer)
# The everyday build is made for short compile times: light optimisation, line tables for stack traces.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -gline-tables-only -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -gline-tables-only")
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)  # no path of the build machine in the product
endif()
add_compile_definitions(_GNU_SOURCE)
add_link_options(-fuse-ld=lld)
if(SOMA_SANITIZE)
  add_compile_options(-fsanitize=${SOMA_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SOMA_SANITIZE})
else()
  add_compile_options(-fstack-protector-strong -fcf-protection -ftrivial-auto-var-init=zero)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
  add_link_options(-Wl,-z,relro,-z,now)
endif()
if(SOMA_LTO)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

find_package(GTest REQUIRED)

# soma_room(NAME SOURCES a.cc … DEPENDS base sys … LIBRARIES fmt …)
# A room is one static library soma_NAME. DEPENDS are rooms, LIBRARIES foreign targets.
function(soma_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  if(ARG_SOURCES)
    add_library(soma_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(soma_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(soma_${name} ${scope} ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
  list(TRANSFORM ARG_DEPENDS PREPEND soma_)
  target_link_libraries(soma_${name} ${scope} ${ARG_DEPENDS} ${ARG_LIBRARIES})
  if(SOMA_TEST_SWITCHES)
    target_compile_definitions(soma_${name} ${scope} SOMA_TEST_SWITCHES=1)
  endif()
endfunction()

# soma_unit_tests(ROOM SOURCES a_test.cc … [DEPENDS rooms] [LIBRARIES …] [LABELS …])
# One executable ROOM_test: hermetic, fast, no root.
function(soma_unit_tests room)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;LABELS" ${ARGN})
  add_executable(${room}_test ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPENDS PREPEND soma_)
  target_link_libraries(${room}_test PRIVATE soma_${room} ${ARG_DEPENDS} ${ARG_LIBRARIES}
                        GTest::gmock GTest::gtest_main)
  # gtest's macros expand to code that these two would flag in every test.
  target_compile_options(${room}_test PRIVATE -Wno-global-constructors -Wno-shadow)
  add_test(NAME unit.${room} COMMAND ${room}_test)
  set_tests_properties(unit.${room} PROPERTIES LABELS "unit;${ARG_LABELS}" TIMEOUT 300)
endfunction()

# soma_program(NAME [STATIC] SOURCES main.cc DEPENDS rooms LIBRARIES …): an executable in bin/.
# Static programs start faster and have nothing to load inside a sandbox; with a sanitizer they must be dynamic.
function(soma_program name)
  cmake_parse_arguments(ARG "STATIC" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPENDS PREPEND soma_)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LIBRARIES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(ARG_STATIC AND NOT SOMA_SANITIZE)
    target_link_options(${name} PRIVATE -static -Wl,--gc-sections)
  endif()
endfunction()

# soma_fuzz(NAME SOURCES x_fuzz.cc DEPENDS rooms): a fuzz target. With the preset `fuzz` it is a libFuzzer program; everywhere
# else it replays fuzz/corpus/NAME (and simple mutations of it) as the test corpus.NAME.
function(soma_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND soma_)
  if(SOMA_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${ARG_SOURCES} ${CMAKE_SOURCE_DIR}/fuzz/replay_main.cc)
    add_test(NAME corpus.${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(corpus.${name} PROPERTIES LABELS "corpus" TIMEOUT 300)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LIBRARIES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()
