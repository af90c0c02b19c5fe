#include "lab/client/descriptor_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace megamoe::lab {
namespace {

constexpr std::int64_t kOwnFiles = 64;

std::int64_t bounded(rlim_t value) {
    constexpr auto kMax = static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min(value, kMax));
}

}  // namespace

Result<std::int64_t> needed_soft_limit(std::int64_t streams, DescriptorLimit now) {
    const std::int64_t need = streams + kOwnFiles;
    if (need <= now.soft) {
        return now.soft;
    }
    if (need > now.hard) {
        return Error{
            Errc::kResourceExhausted,
            fmt::format("{} concurrent streams need {} open files, the hard limit is {}", streams, need, now.hard),
            fmt::format("run `ulimit -Hn {}` as root before, or lower --max-concurrency", need)};
    }
    return need;
}

Result<Done> raise_descriptor_limit(std::int64_t streams) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    MM_TRY(const std::int64_t soft,
           needed_soft_limit(streams, {.soft = bounded(limit.rlim_cur), .hard = bounded(limit.rlim_max)}));
    if (soft == bounded(limit.rlim_cur)) {
        return Done{};
    }
    limit.rlim_cur = static_cast<rlim_t>(soft);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return Error{Errc::kResourceExhausted,
                     fmt::format("cannot raise the limit of open files to {}: {}", soft, std::strerror(errno)),
                     fmt::format("run `ulimit -n {}` before", soft)};
    }
    return Done{};
}

}  // namespace megamoe::lab
