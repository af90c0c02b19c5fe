#include "bench/micro/roofs.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "bench/micro/best_time.h"

#ifdef MM_HAVE_DNNL
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#endif

namespace megamoe::bench {
namespace {

using Line = std::uint64_t __attribute__((vector_size(64)));  // a cache line

// Reads every line once. Asking 8 KiB ahead brings a tenth more than the hardware's own prefetching.
std::uint64_t fold(const Line* begin, const Line* end) {
    constexpr int kAhead = 8192 / sizeof(Line);
    Line sum[4] = {};
    for (const Line* p = begin; p < end; p += 4) {
        for (int i = 0; i < 4; ++i) {
            __builtin_prefetch(p + i + kAhead);
            sum[i] ^= p[i];
        }
    }
    const Line all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
    return all[0];
}

// Four regions take turns, each larger than the last-level cache: none is warm when its turn comes.
class ReadBuffer {
  public:
    ReadBuffer() : data_(std::aligned_alloc(kHugePage, kRegions * kRegionBytes)) {
        (void)madvise(data_.get(), kRegions * kRegionBytes, MADV_HUGEPAGE);
        std::memset(data_.get(), 1, kRegions * kRegionBytes);
    }

    double rate() {
        const double seconds = best_seconds(0.2, [this] {
            const auto* begin = static_cast<const Line*>(data_.get()) + next_ * (kRegionBytes / sizeof(Line));
            sink_ = fold(begin, begin + kRegionBytes / sizeof(Line));
            next_ = (next_ + 1) % kRegions;
        });
        return static_cast<double>(kRegionBytes) / seconds;
    }

  private:
    static constexpr std::size_t kRegions = 4;
    static constexpr std::size_t kRegionBytes = std::size_t{64} << 20;
    static constexpr std::size_t kHugePage = std::size_t{2} << 20;
    struct Free {
        void operator()(void* p) const { std::free(p); }
    };
    std::unique_ptr<void, Free> data_;
    std::size_t next_ = 0;
    volatile std::uint64_t sink_ = 0;
};

}  // namespace

double stream_read_rate() {
    static ReadBuffer buffer;
    static double best = 0;
    best = std::max(best, buffer.rate());
    return best;
}

#ifdef MM_HAVE_DNNL

std::optional<double> bf16_matmul_rate(std::int32_t m, std::int32_t n, std::int32_t k) try {
    using dnnl::memory;
    omp_set_num_threads(1);  // oneDNN asks OpenMP; the environment variable was read before main()
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    const auto any = memory::format_tag::any;
    const memory::desc a({m, k}, memory::data_type::bf16, any);
    const memory::desc w({k, n}, memory::data_type::bf16, any);
    const memory::desc out({m, n}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(a, w, out), engine);
    memory a_memory(plan.src_desc(), engine);
    memory w_memory(plan.weights_desc(), engine);
    memory out_memory(plan.dst_desc(), engine);
    for (memory* operand : {&a_memory, &w_memory}) {
        std::memset(operand->get_data_handle(), 0x3C, operand->get_desc().get_size());
    }
    dnnl::matmul product(plan);
    const std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, a_memory}, {DNNL_ARG_WEIGHTS, w_memory}, {DNNL_ARG_DST, out_memory}};
    const double seconds = best_seconds(0.2, [&] {
        product.execute(stream, arguments);
        stream.wait();
    });
    return 2.0 * m * n * k / seconds;
} catch (const dnnl::error&) {
    return std::nullopt;
}

#else

std::optional<double> bf16_matmul_rate(std::int32_t, std::int32_t, std::int32_t) {
    return std::nullopt;
}

#endif

}  // namespace megamoe::bench
