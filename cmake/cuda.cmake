# CUDA: one architecture, no run-time compilation, spills are errors (they show as C7510/"spill" in ptxas' report, which
# mm_cuda_library turns into a failed build through -Werror on spills).
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_ARCHITECTURES 90a)
find_package(Threads REQUIRED)

add_library(mm_cuda_flags INTERFACE)
target_compile_features(mm_cuda_flags INTERFACE cxx_std_20 cuda_std_20)
target_compile_options(mm_cuda_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-lineinfo;-Xptxas=-v,--warn-on-spills,-Werror;-Xcompiler=-Wall,-Wextra>"
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-ffp-contract=off>")
