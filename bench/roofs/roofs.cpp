#include "bench/roofs/roofs.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "bench/roofs/best_time.h"

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

    static constexpr std::size_t kRegionBytes = std::size_t{64} << 20;

    void read_next_region() {
        const auto* begin = static_cast<const Line*>(data_.get()) + next_ * (kRegionBytes / sizeof(Line));
        sink_ = fold(begin, begin + kRegionBytes / sizeof(Line));
        next_ = (next_ + 1) % kRegions;
    }

  private:
    static constexpr std::size_t kRegions = 4;
    static constexpr std::size_t kHugePage = std::size_t{2} << 20;
    struct Free {
        void operator()(void* p) const { std::free(p); }
    };
    std::unique_ptr<void, Free> data_;
    std::size_t next_ = 0;
    volatile std::uint64_t sink_ = 0;
};

}  // namespace

double stream_read_rate(std::int32_t num_threads) {
    static std::vector<std::unique_ptr<ReadBuffer>> buffers;
    static std::map<std::int32_t, double> best;
    while (static_cast<std::int32_t>(buffers.size()) < num_threads) {
        buffers.push_back(std::make_unique<ReadBuffer>());
    }
    const double seconds = best_seconds_together(
        num_threads, 0.2, [](std::int32_t thread) { buffers[static_cast<std::size_t>(thread)]->read_next_region(); });
    double& rate = best[num_threads];
    rate = std::max(rate, static_cast<double>(ReadBuffer::kRegionBytes) * num_threads / seconds);
    return rate;
}

#ifdef MM_HAVE_DNNL

namespace {

// One thread's product with its own operands.
class Bf16Product {
  public:
    Bf16Product(const dnnl::engine& engine, const dnnl::matmul::primitive_desc& plan)
        : stream_(engine),
          product_(plan),
          arguments_{{DNNL_ARG_SRC, dnnl::memory(plan.src_desc(), engine)},
                     {DNNL_ARG_WEIGHTS, dnnl::memory(plan.weights_desc(), engine)},
                     {DNNL_ARG_DST, dnnl::memory(plan.dst_desc(), engine)}} {
        for (const auto& [argument, operand] : arguments_) {
            std::memset(operand.get_data_handle(), 0x3C, operand.get_desc().get_size());
        }
    }

    void run() {
        omp_set_num_threads(1);  // of the calling thread; the environment variable was read before main()
        product_.execute(stream_, arguments_);
        stream_.wait();
    }

  private:
    dnnl::stream stream_;
    dnnl::matmul product_;
    std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace

std::optional<double> bf16_matmul_rate(std::int32_t m, std::int32_t n, std::int32_t k, std::int32_t num_threads) try {
    using dnnl::memory;
    omp_set_num_threads(1);  // oneDNN plans for the threads of its creator
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const auto any = memory::format_tag::any;
    const memory::desc a({m, k}, memory::data_type::bf16, any);
    const memory::desc w({k, n}, memory::data_type::bf16, any);
    const memory::desc out({m, n}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(a, w, out), engine);
    std::vector<std::unique_ptr<Bf16Product>> products;
    for (std::int32_t t = 0; t < num_threads; ++t) {
        products.push_back(std::make_unique<Bf16Product>(engine, plan));
    }
    const double seconds = best_seconds_together(
        num_threads, 0.2, [&](std::int32_t thread) { products[static_cast<std::size_t>(thread)]->run(); });
    return 2.0 * m * n * k * num_threads / seconds;
} catch (const dnnl::error&) {
    return std::nullopt;
}

#else

std::optional<double> bf16_matmul_rate(std::int32_t, std::int32_t, std::int32_t, std::int32_t) {
    return std::nullopt;
}

#endif

}  // namespace megamoe::bench
