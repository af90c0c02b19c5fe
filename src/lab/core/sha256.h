// SHA-256 over pieces of data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace megamoe::lab {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
  public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;

    void update(std::string_view bytes);
    void update(std::span<const std::uint8_t> bytes);
    // The digest of all updates; the object is then as new.
    Digest finish();

  private:
    struct Context;
    std::unique_ptr<Context> context_;
};

std::string to_hex(const Digest& digest);
std::string sha256_hex(std::string_view bytes);
// Error kNotFound: the file cannot be read
[[nodiscard]] Result<std::string> sha256_of_file(const std::string& path);

}  // namespace megamoe::lab
