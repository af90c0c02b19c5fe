#include "frontend/text/utf8.h"

#include <algorithm>

namespace megamoe::text {
namespace {

bool is_ascii(char byte) {
    return static_cast<unsigned char>(byte) < 0x80;
}

}  // namespace

void Utf8Repair::append(std::string_view bytes, std::string& out) {
    for (auto at = bytes.begin(); at != bytes.end();) {
        if (missing_ == 0) {
            const auto run_end = std::find_if_not(at, bytes.end(), is_ascii);
            out.append(at, run_end);
            at = run_end;
            if (at != bytes.end()) {
                begin(*at++, out);
            }
            continue;
        }
        const auto byte = static_cast<unsigned char>(*at);
        if (byte < low_ || byte > high_) {
            finish(out);
            continue;  // the same byte again, as the first of a character
        }
        held_ += *at++;
        low_ = 0x80;
        high_ = 0xBF;
        if (--missing_ == 0) {
            out += held_;
            held_.clear();
        }
    }
}

void Utf8Repair::finish(std::string& out) {
    if (missing_ > 0) {
        out += kReplacement;
        held_.clear();
        missing_ = 0;
    }
}

// Unicode 3.9, table 3-7: which second bytes make no overlong form, surrogate or value above U+10FFFF.
void Utf8Repair::begin(char byte, std::string& out) {
    const auto lead = static_cast<unsigned char>(byte);
    low_ = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    high_ = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (lead < 0xC2 || lead > 0xF4) {
        out += kReplacement;
        return;
    }
    missing_ = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    held_ = byte;
}

std::string repair_utf8(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    Utf8Repair repair;
    repair.append(bytes, out);
    repair.finish(out);
    return out;
}

}  // namespace megamoe::text
