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

option(SOMA_PCH "Parse the common headers once, for a faster cold build (cmake/precompiled.cmake)" ON)

find_program(SOMA_CCACHE ccache)
if(SOMA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SOMA_CCACHE})
  if(SOMA_PCH)
    # ccache refuses sources with a precompiled header unless it may take the header's macros as given.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${SOMA_CCACHE})
  endif()
  set(CMAKE_C_COMPILER_LAUNCHER ${SOMA_CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror
                    -Wno-gnu-zero-variadic-macro-arguments -Wno-c99-designator -Wno-missing-field-initializers
                    -Wno-c23-extensions
                    -fno-omit-frame-pointer)
# The everyday build is made for short compile times: light optimisation, line tables for stack traces.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -gline-tables-only -DNDEBUG")
# Debug is for the sanitizers: a gate whose build costs more than its tests run. Only a fuzzer runs long enough to want speed.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -gline-tables-only")
if(SOMA_FUZZ)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -gline-tables-only")
endif()
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

# Where nobody waits for the code and everybody for its compilation, a cold build (SOMA_PCH; never a release) does not optimise: unit
# tests, option parsing, and the coroutines, which would otherwise be most of it. _FORTIFY_SOURCE needs optimisation.
set(SOMA_UNHURRIED)
if(SOMA_PCH AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  set(SOMA_UNHURRIED -O0 -U_FORTIFY_SOURCE)
endif()
# gtest's macros expand to code that the two warnings would flag in every test.
set(SOMA_TEST_COMPILE_OPTIONS -Wno-global-constructors -Wno-shadow ${SOMA_UNHURRIED})
# Asio and Beast compiled once, in src/aio/asio_impl.cc; the rooms on top of aio see them with the same settings.
set(SOMA_ASIO_DEFINITIONS BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
                          BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_REGEX)
include(${CMAKE_CURRENT_LIST_DIR}/precompiled.cmake)

# soma_code_kind(OUT TARGET ROOMS): the kind of code in a target that depends on `rooms`: std, asio or cli (cmake/pch/KIND.h).
function(soma_code_kind out target rooms)
  set(kind std)
  if(target STREQUAL "soma_aio" OR "aio" IN_LIST rooms)
    set(kind asio)
  endif()
  if(target MATCHES "^soma_cli$|^soma-server$")
    set(kind cli)
  endif()
  set(${out} ${kind} PARENT_SCOPE)
endfunction()

# Compiles a target's sources as code of that kind.
function(soma_compile_as target kind)
  if(kind MATCHES "asio|cli")
    target_compile_options(${target} PRIVATE ${SOMA_UNHURRIED})
  endif()
  soma_precompiled(${target} ${kind})
endfunction()

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
  soma_code_kind(kind soma_${name} "${ARG_DEPENDS}")
  set_target_properties(soma_${name} PROPERTIES SOMA_CODE_KIND ${kind})
  if(ARG_SOURCES)
    soma_compile_as(soma_${name} ${kind})
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND soma_)
  target_link_libraries(soma_${name} ${scope} ${ARG_DEPENDS} ${ARG_LIBRARIES})
  if(SOMA_TEST_SWITCHES)
    target_compile_definitions(soma_${name} ${scope} SOMA_TEST_SWITCHES=1)
  endif()
endfunction()

# What the sanitizer presets build: the programs of the unit and corpus tests and what those need.
add_custom_target(unit_and_corpus)

# soma_unit_tests(ROOM SOURCES a_test.cc … [DEPENDS rooms] [LIBRARIES …] [LABELS …])
# One executable ROOM_test: hermetic, fast, no root.
function(soma_unit_tests room)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;LABELS" ${ARGN})
  add_executable(${room}_test ${ARG_SOURCES})
  add_dependencies(unit_and_corpus ${room}_test)
  list(TRANSFORM ARG_DEPENDS PREPEND soma_)
  target_link_libraries(${room}_test PRIVATE soma_${room} ${ARG_DEPENDS} ${ARG_LIBRARIES}
                        GTest::gmock GTest::gtest_main)
  target_compile_options(${room}_test PRIVATE ${SOMA_TEST_COMPILE_OPTIONS})
  get_target_property(kind soma_${room} SOMA_CODE_KIND)
  if(kind STREQUAL "std")
    soma_precompiled(${room}_test test)
  else()
    soma_precompiled(${room}_test asio_test)
  endif()
  add_test(NAME unit.${room} COMMAND ${room}_test)
  set_tests_properties(unit.${room} PROPERTIES LABELS "unit;${ARG_LABELS}" TIMEOUT 300)
endfunction()

# soma_program(NAME [STATIC] SOURCES main.cc DEPENDS rooms LIBRARIES …): an executable in bin/.
# Static programs start faster and have nothing to load inside a sandbox; with a sanitizer they must be dynamic.
function(soma_program name)
  cmake_parse_arguments(ARG "STATIC" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  soma_code_kind(kind ${name} "${ARG_DEPENDS}")
  soma_compile_as(${name} ${kind})
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
    soma_precompiled(${name} std)
    add_dependencies(unit_and_corpus ${name})
    add_test(NAME corpus.${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(corpus.${name} PROPERTIES LABELS "corpus" TIMEOUT 300)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ${ARG_LIBRARIES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()
