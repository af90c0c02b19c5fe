#include "kv/pools.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace megamoe::kv {
namespace {

// Zeroed address space that costs memory only where it is touched.
class Region {
  public:
    explicit Region(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
        if (bytes_ > 0) {
            void* base =
                mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            base_ = base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
        }
    }
    Region(Region&& other) noexcept : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}
    Region& operator=(Region&&) = delete;
    ~Region() {
        if (base_ != nullptr) {
            munmap(base_, bytes_);
        }
    }
    std::byte* base() const { return base_; }
    bool failed() const { return bytes_ > 0 && base_ == nullptr; }

  private:
    std::byte* base_ = nullptr;
    std::size_t bytes_;
};

Error out_of_memory(std::string_view group, std::int64_t bytes) {
    return Error{Errc::kResourceExhausted, fmt::format("no address space for the {} pool: {} bytes", group, bytes),
                 "lower max_total_tokens or max_running_requests"};
}

}  // namespace

struct Pools::Memory {
    Region token, window, state;
};

Pools::Pools(const PoolLayout& layout, const PoolSizes& sizes)
    : layout_(layout),
      token_pages_(sizes.token_pages),
      window_pages_(sizes.window_pages),
      state_slots_(sizes.state_slots) {}

Pools::~Pools() = default;

Result<std::unique_ptr<Pools>> Pools::create(const PoolLayout& layout, const PoolSizes& sizes) {
    const std::int64_t token_bytes = sizes.token_pages * layout.token_page_bytes;
    const std::int64_t window_bytes = sizes.window_pages * layout.window_page_bytes;
    const std::int64_t state_bytes = sizes.state_slots * layout.state_slot_bytes();
    Memory memory{Region(token_bytes), Region(window_bytes), Region(state_bytes)};
    if (memory.token.failed()) {
        return out_of_memory("token", token_bytes);
    }
    if (memory.window.failed()) {
        return out_of_memory("window", window_bytes);
    }
    if (memory.state.failed()) {
        return out_of_memory("state", state_bytes);
    }
    std::unique_ptr<Pools> pools(new Pools(layout, sizes));
    pools->token_base_ = memory.token.base();
    pools->window_base_ = memory.window.base();
    pools->state_base_ = reinterpret_cast<float*>(memory.state.base());
    pools->memory_ = std::make_unique<Memory>(std::move(memory));
    return pools;
}

Result<Done> Pools::census(std::span<const Sequence* const> live) const {
    std::vector<const PageTable*> token, window, state;
    for (const Sequence* sequence : live) {
        token.push_back(&sequence->token_table());
        window.push_back(&sequence->window_table());
        state.push_back(&sequence->state_table());
    }
    const auto check = [](std::string_view group, const PageAllocator& pages,
                          std::span<const PageTable* const> held) -> Result<Done> {
        if (const Result<Done> result = pages.census(held); !result) {
            return Error{result.error().code, fmt::format("{} pool: {}", group, result.error().what), {}};
        }
        return Done{};
    };
    MM_TRY_DONE(check("token", token_pages_, token));
    MM_TRY_DONE(check("window", window_pages_, window));
    return check("state", state_slots_, state);
}

}  // namespace megamoe::kv
