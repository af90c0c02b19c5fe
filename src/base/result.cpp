#include "base/result.h"

namespace megamoe {

std::string to_string(const Error& error) {
    return error.hint.empty() ? error.what : error.what + " (" + error.hint + ")";
}

}  // namespace megamoe
