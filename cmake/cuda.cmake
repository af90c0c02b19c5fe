# CUDA: one architecture, no run-time compilation, register spills are errors.
enable_language(CUDA)
set(CMAKE_CUDA_ARCHITECTURES 90a)
find_package(Threads REQUIRED)

add_library(mm_cuda_flags INTERFACE)
target_compile_features(mm_cuda_flags INTERFACE cxx_std_20)
# CMake 3.25 does not know this compiler's C++20, hence the plain flag.
target_compile_options(mm_cuda_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;-lineinfo;-Xptxas=--warn-on-spills,--warning-as-error;-Xcompiler=-Wall,-Wextra>"
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-ffp-contract=off>")
