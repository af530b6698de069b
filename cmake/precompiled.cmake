# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: most of a cold build is the parsing of the same standard, Boost.Asio and gtest headers. One header a kind
# (cmake/pch/KIND.h), compiled once and reused by every target of that kind: soma_precompiled(TARGET KIND).
#
# A precompiled header holds the paths of its checkout, so two worktrees that share a compiler cache cannot share objects that were
# made with it: SOMA_PCH=OFF there.

# Every object ends in a program, none in a shared library: with one kind of code, one header serves libraries and programs.
if(SOMA_PCH)
  add_compile_options(-fPIE)
endif()

function(soma_precompiled target kind)
  if(NOT SOMA_PCH)
    return()
  endif()
  if(NOT TARGET soma_pch_${kind})
    set(empty ${CMAKE_BINARY_DIR}/generated/pch_${kind}.cc)
    file(CONFIGURE OUTPUT ${empty} CONTENT "")
    add_library(soma_pch_${kind} OBJECT ${empty})
    target_include_directories(soma_pch_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/cmake)
    target_precompile_headers(soma_pch_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch/${kind}.h)
    # Without its time in the file, the same header gives the same bytes and the compiler cache can answer.
    target_compile_options(soma_pch_${kind} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    if(kind MATCHES "asio|cli")
      target_compile_definitions(soma_pch_${kind} PRIVATE ${SOMA_ASIO_DEFINITIONS})
      target_compile_options(soma_pch_${kind} PRIVATE ${SOMA_UNHURRIED})
    endif()
    if(kind MATCHES "test")
      target_link_libraries(soma_pch_${kind} PRIVATE GTest::gmock)
      target_compile_options(soma_pch_${kind} PRIVATE ${SOMA_TEST_COMPILE_OPTIONS})
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM soma_pch_${kind})
  # clang forgets the pragmas with which libstdc++ silences its own use of get_temporary_buffer (in stable_sort). Builds without
  # precompiled headers and the lint keep the warning.
  target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
endfunction()
