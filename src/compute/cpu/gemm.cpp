// The driver of the matrix product: it cuts a call into tiles; gemm_kernels.h says what a tile is.
#include "compute/cpu/gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "compute/cpu/gemm_kernels.h"
#include "compute/cpu/gemm_stages.h"
#include "compute/ops/formats.h"

namespace megamoe::cpu {
namespace {

using ops::WeightFormat;

// Best first. A new instruction set is one row here and one file gemm_<isa>.cpp; the test walks the names in isa.h.
constexpr std::array kKernels{&kGemmAvx512Bf16, &kGemmAvx512, &kGemmAvx2, &kGemmScalar};

constexpr std::int32_t kRowBlock = 384;          // rows of `a` that meet a decoded panel
constexpr std::int32_t kMaxStraightRows = 16;    // beyond, decoding once pays for the detour through L1
constexpr std::int32_t kChunkBytes = 32 * 1024;  // of weights that many tiles read in turn: they stay in L1
static_assert(kTilePanels == kGroupPanels && kTilePanels == kTaskPanels);
static_assert(kBlockCols == kPackCols && kRowBlock == kMaxTaskRows);
static_assert(kRowBlock % kTileRows == 0);

constexpr std::int32_t ceil_div(std::int32_t a, std::int32_t b) {
    return (a + b - 1) / b;
}

// Where part `i` of `parts` even parts of [0, n) begins.
constexpr std::int32_t split(std::int32_t n, std::int32_t i, std::int32_t parts) {
    return static_cast<std::int32_t>(static_cast<std::int64_t>(n) * i / parts);
}

const GemmKernels& select(Isa isa, Math math, WeightFormat format) {
    for (const GemmKernels* k : kKernels) {
        const bool rounds_products = k->plain == WeightFormat::kBf16;
        if (k->needs <= isa && (!rounds_products || (math == Math::kBf16 && format != WeightFormat::kF32))) {
            return *k;
        }
    }
    return kGemmScalar;
}

// Rows [begin, end) of `a`, packed.
struct PackedRows {
    const std::byte* data;
    std::int64_t row_bytes;    // within a block
    std::int64_t block_bytes;  // from a block to the next
    std::int32_t begin;
    std::int32_t end;
};

PackedRows pack_rows(const GemmKernels& k, Workers& workers, const Gemm& g, std::int32_t begin, std::int32_t end) {
    thread_local std::vector<std::byte> buffer;  // grows to the largest call, then stays
    const std::int32_t padded_cols = g.w->padded_cols();
    const std::int64_t row_bytes = kBlockCols * (k.plain == WeightFormat::kBf16 ? 2 : 4);
    const std::int64_t block_bytes = row_bytes * (end - begin);
    const auto bytes = static_cast<std::size_t>(block_bytes * ceil_div(padded_cols, kBlockCols));
    if (buffer.size() < bytes) {
        buffer.resize(bytes);
    }
    std::byte* data = buffer.data();
    const auto pack = [&](std::int64_t r) {
        k.pack_row(g.a + (begin + r) * g.lda, g.w->cols(), padded_cols, g.math == Math::kBf16, block_bytes,
                   data + r * row_bytes);
    };
    constexpr std::int32_t kWorthWaking = 8;
    if (end - begin < kWorthWaking) {
        for (std::int32_t r = 0; r < end - begin; ++r) {
            pack(r);
        }
    } else {
        workers.run(end - begin, pack);
    }
    return {data, row_bytes, block_bytes, begin, end};
}

struct Scratch {
    alignas(64) float acc[kRowBlock * kTileWidth];
    alignas(64) std::byte decoded[kChunkBytes];
};

Scratch& thread_scratch() {
    thread_local const std::unique_ptr<Scratch> scratch = std::make_unique<Scratch>();
    return *scratch;
}

// One task: rows of `a` times the kTilePanels panels from `first_panel` on.
class PanelTask {
  public:
    PanelTask(const GemmKernels& k, const Gemm& g, const PackedRows& a, std::int32_t first_panel)
        : k_(k),
          g_(g),
          w_(*g.w),
          a_(a),
          first_panel_(first_panel),
          decodes_(w_.format() != k.plain && (k.tile[index(w_.format())] == nullptr || num_rows() > kMaxStraightRows)),
          scratch_(thread_scratch()) {}

    void run() {
        std::fill_n(scratch_.acc, num_rows() * kTileWidth, 0.0F);
        const WeightFormat read = decodes_ ? k_.plain : w_.format();
        const std::int32_t chunk =
            one_tile() ? w_.padded_cols() : kChunkBytes / (kTilePanels * 64) * cols_a_vector(read);
        for (std::int32_t col = 0; col < w_.padded_cols(); col += chunk) {
            const std::int32_t cols = std::min(chunk, w_.padded_cols() - col);
            if (decodes_) {
                decode(col, cols);
            }
            tile_rows(col, cols);
        }
        store();
    }

  private:
    static constexpr std::size_t index(WeightFormat format) { return static_cast<std::size_t>(format); }

    std::int32_t num_rows() const { return a_.end - a_.begin; }
    std::int32_t tile_height() const { return decodes_ || w_.format() == k_.plain ? kTileRows : k_.straight_rows; }
    bool one_tile() const { return !decodes_ && num_rows() <= k_.straight_rows; }

    // The last group of panels may be short: it repeats the last panel, and store() drops the copies.
    std::int32_t panel(std::int32_t p) const { return std::min(first_panel_ + p, w_.num_panels() - 1); }

    const std::byte* codes(std::int32_t p, std::int32_t col) const {
        return w_.codes(panel(p)) + col / cols_a_vector(w_.format()) * w_.code_stride(first_panel_);
    }

    void decode(std::int32_t col, std::int32_t cols) {
        for (std::int32_t p = 0; p < kTilePanels; ++p) {
            k_.decode[index(w_.format())](codes(p, col), w_.code_stride(first_panel_), cols, scratch_.decoded + p * 64);
        }
    }

    void tile_rows(std::int32_t col, std::int32_t cols) {
        Tile t{};
        t.f32_scales = w_.scale_format() == ops::ScaleFormat::kF32;
        t.group_cols = w_.group_cols();
        t.cols = cols;
        t.code_stride = decodes_ ? kTilePanels * 64 : w_.code_stride(first_panel_);
        t.scale_stride = w_.scale_stride(first_panel_);
        t.a_block_bytes = a_.block_bytes;
        for (std::int32_t p = 0; p < kTilePanels; ++p) {
            t.codes[p] = decodes_ ? scratch_.decoded + p * 64 : codes(p, col);
            if (t.group_cols != 0) {
                t.scales[p] = w_.scales(panel(p)) + col / t.group_cols * t.scale_stride;
            }
        }
        const auto tile = decodes_ ? k_.tile_decoded : k_.tile[index(w_.format())];
        const std::int32_t tiles = ceil_div(num_rows(), tile_height());
        for (std::int32_t i = 0; i < tiles; ++i) {  // tiles of even height: 7 rows are 4 + 3, not 6 + 1
            const std::int32_t row = split(num_rows(), i, tiles);
            t.rows = split(num_rows(), i + 1, tiles) - row;
            t.a = a_.data + col / kBlockCols * a_.block_bytes + row * a_.row_bytes;
            t.acc = scratch_.acc + row * kTileWidth;
            tile(t);
        }
    }

    void store() const {
        const std::int32_t first = first_panel_ * kPanelRows;
        const std::int32_t width = std::min(kTileWidth, w_.rows() - first);
        for (std::int32_t r = a_.begin; r < a_.end; ++r) {
            k_.store(scratch_.acc + (r - a_.begin) * kTileWidth, width, g_.round_bf16, g_.out + r * g_.ldo + first);
        }
    }

    const GemmKernels& k_;
    const Gemm& g_;
    const PackedMatrix& w_;
    const PackedRows a_;
    const std::int32_t first_panel_;
    const bool decodes_;
    Scratch& scratch_;
};

// Few panels and many rows (a router, the mixing weights of the streams): split the rows too, so that all threads work.
std::int32_t row_parts(std::int32_t rows, std::int32_t panel_tasks, std::int32_t team) {
    constexpr std::int32_t kTasksAThread = 2;
    const std::int32_t wanted = ceil_div(kTasksAThread * team, panel_tasks);
    return team == 1 ? 1 : std::clamp(wanted, 1, ceil_div(rows, 2 * kTileRows));
}

PackedRows part_of(const PackedRows& all, std::int32_t part, std::int32_t parts) {
    const std::int32_t rows = all.end - all.begin;
    PackedRows some = all;
    some.begin = all.begin + split(rows, part, parts);
    some.end = all.begin + split(rows, part + 1, parts);
    some.data = all.data + (some.begin - all.begin) * all.row_bytes;
    return some;
}

}  // namespace

void gemm(Isa isa, Workers& workers, const Gemm& g) {
    gemm(isa, workers, std::span(&g, 1));
}

void gemm(Isa isa, Workers& workers, std::span<const Gemm> products) {
    const Gemm& first = products.front();
    const GemmKernels& k = select(isa, first.math, first.w->format());
    std::int32_t panel_tasks = 0;
    for (const Gemm& g : products) {
        MM_CHECK(g.a == first.a && g.lda == first.lda && g.m == first.m && g.math == first.math &&
                     g.w->cols() == first.w->cols() && g.m >= 0,
                 "m", g.m, "cols", g.w->cols());
        if (&select(isa, g.math, g.w->format()) != &k) {  // other kernels pack otherwise
            for (const Gemm& alone : products) {
                gemm(isa, workers, alone);
            }
            return;
        }
        panel_tasks += ceil_div(g.w->num_panels(), kTilePanels);
    }
    if (panel_tasks == 0) {
        return;
    }
    const std::int32_t blocks = ceil_div(first.m, kRowBlock);
    for (std::int32_t block = 0; block < blocks; ++block) {
        const PackedRows rows =
            pack_rows(k, workers, first, split(first.m, block, blocks), split(first.m, block + 1, blocks));
        const std::int32_t parts = row_parts(rows.end - rows.begin, panel_tasks, workers.size());
        workers.run(panel_tasks * parts, [&](std::int64_t task) {
            auto panel_task = static_cast<std::int32_t>(task) / parts;
            const Gemm* g = &first;
            for (; panel_task >= ceil_div(g->w->num_panels(), kTilePanels); ++g) {
                panel_task -= ceil_div(g->w->num_panels(), kTilePanels);
            }
            PanelTask(k, *g, part_of(rows, static_cast<std::int32_t>(task) % parts, parts), panel_task * kTilePanels)
                .run();
        });
    }
}

Packing packing_for(Isa isa, Math math, ops::WeightFormat format) {
    return {isa, select(isa, math, format).plain == WeightFormat::kBf16};
}

void pack_row(Packing packing, const float* a, std::int32_t cols, std::int32_t row, std::int32_t rows,
              std::byte* packed) {
    const GemmKernels& k = select(packing.isa, packing.bf16 ? Math::kBf16 : Math::kF32,
                                  packing.bf16 ? WeightFormat::kBf16 : WeightFormat::kF32);
    const std::int32_t padded_cols = ceil_div(cols, kColPad) * kColPad;
    k.pack_row(a, cols, padded_cols, packing.bf16, packing.block_bytes(rows),
               packed + std::int64_t{row} * kPackCols * packing.element_bytes());
}

void pack_row(Packing packing, const std::uint16_t* a, std::int32_t cols, std::int32_t row, std::int32_t rows,
              std::byte* packed) {
    if (!packing.bf16) {
        thread_local std::vector<float> wide;
        wide.resize(static_cast<std::size_t>(cols));
        std::transform(a, a + cols, wide.begin(), ops::from_bf16);
        pack_row(packing, wide.data(), cols, row, rows, packed);
        return;
    }
    std::byte* to = packed + std::int64_t{row} * kPackCols * 2;
    for (std::int32_t col = 0; col < cols; col += kPackCols, to += packing.block_bytes(rows)) {
        const std::int32_t count = std::min(kPackCols, cols - col);
        const std::int32_t padded = ceil_div(count, kColPad) * kColPad;
        std::memcpy(to, a + col, static_cast<std::size_t>(count) * 2);
        std::memset(to + std::int64_t{count} * 2, 0, static_cast<std::size_t>(padded - count) * 2);
    }
}

void gemm_task(Isa isa, Math math, const PackedMatrix& w, std::int32_t first_panel, const std::byte* packed,
               std::int32_t rows, bool round_bf16, float* out, std::int64_t ldo) {
    MM_DCHECK(rows >= 1 && rows <= kMaxTaskRows && first_panel % kTaskPanels == 0, "rows", rows, "panel", first_panel);
    const GemmKernels& k = select(isa, math, w.format());
    const Packing packing{isa, k.plain == WeightFormat::kBf16};
    // PanelTask stores at the panel's place in a whole output row.
    const Gemm g{
        .w = &w, .m = rows, .out = out - first_panel * kPanelRows, .ldo = ldo, .math = math, .round_bf16 = round_bf16};
    const PackedRows a{packed, std::int64_t{kPackCols} * packing.element_bytes(), packing.block_bytes(rows), 0, rows};
    PanelTask(k, g, a, first_panel).run();
}

}  // namespace megamoe::cpu
