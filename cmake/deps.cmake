# Every third-party package is found here and nowhere else; names and versions are Debian 12's.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Boost 1.81 REQUIRED)  # headers only: Asio and Beast
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED)  # SHA-256
find_package(prometheus-cpp CONFIG REQUIRED COMPONENTS core)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
if(MM_TESTS)
  find_package(GTest REQUIRED)
  find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
endif()
if(MM_BENCH)
  find_package(benchmark REQUIRED)
  # oneDNN's own CMake package insists on OpenCL headers, which a roof for the CPU does not need.
  find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.hpp)
  find_library(DNNL_LIBRARY dnnl)
endif()
