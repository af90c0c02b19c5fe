#include "lab/core/sha256.h"

#include <openssl/evp.h>

#include <fstream>
#include <vector>

#include "base/check.h"

namespace megamoe::lab {

struct Sha256::Context {
    EVP_MD_CTX* evp = EVP_MD_CTX_new();
    ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
    MM_CHECK(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1, "no SHA-256 in this OpenSSL");
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
    MM_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
}

void Sha256::update(std::span<const std::uint8_t> bytes) {
    MM_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
}

Digest Sha256::finish() {
    Digest digest;
    MM_CHECK(EVP_DigestFinal_ex(context_->evp, digest.data(), nullptr) == 1);
    MM_CHECK(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
    return digest;
}

std::string to_hex(const Digest& digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    hex.reserve(2 * digest.size());
    for (const std::uint8_t byte : digest) {
        hex += kDigits[byte >> 4];
        hex += kDigits[byte & 15];
    }
    return hex;
}

std::string sha256_hex(std::string_view bytes) {
    Sha256 hash;
    hash.update(bytes);
    return to_hex(hash.finish());
}

Result<std::string> sha256_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return Error{Errc::kNotFound, "cannot read " + path, "check the path and its permissions"};
    }
    Sha256 hash;
    std::vector<char> block(1 << 20);
    while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
        hash.update(std::string_view(block.data(), static_cast<std::size_t>(file.gcount())));
    }
    return to_hex(hash.finish());
}

}  // namespace megamoe::lab
