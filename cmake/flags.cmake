# Compiler flags of our own code, in one interface target.
add_library(mm_flags INTERFACE)
target_compile_features(mm_flags INTERFACE cxx_std_20)
# -ffp-contract=off: both compilers fuse a*b+c by default; here fused operations are written out.
set(mm_cxx -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
if(MM_WERROR)
  list(APPEND mm_cxx -Werror)
endif()
target_compile_options(mm_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${mm_cxx}>")
if(MM_SANITIZE)
  target_compile_options(mm_flags INTERFACE -fsanitize=${MM_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(mm_flags INTERFACE -fsanitize=${MM_SANITIZE})
endif()
