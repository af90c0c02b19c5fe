#include "model/compressor.h"

#include <cstring>
#include <vector>

#include "compute/ops/compress.h"
#include "compute/ops/formats.h"

namespace megamoe::model {
namespace {

// The state ring of one sequence: `slots` rows of [value | gate], the row of position t at slot t mod slots.
struct Ring {
    float* base;
    std::int32_t slots;
    std::int32_t width;  // c * d

    float* row(std::int32_t position) const { return base + std::int64_t{position % slots} * 2 * width; }
    ops::RawRow raw(std::int32_t position, const float* bias_row) const {
        return {row(position), row(position) + width, bias_row};
    }
};

}  // namespace

void run_compressor(const StepContext& c, const CompressorSite& site, const float* x, const EntryStore& store) {
    const bool overlap = site.ratio == 4;
    const std::int32_t width = (overlap ? 2 : 1) * site.dim;
    const std::int64_t n = c.num_rows();
    float* value = c.scratch.take(n * width);
    float* gate = c.scratch.take(n * width);
    c.multiply(x, c.g.hidden_size, {{site.weights->wkv, value, width, true}, {site.weights->wgate, gate, width, true}});

    const auto& ape = site.weights->raw->ape;
    const auto& frequencies = c.model.frequencies(ops::RopeKind::kCompress);
    std::vector<std::int64_t> first_row;
    std::int64_t row = 0;
    for (const Segment& segment : c.segments) {
        first_row.push_back(row);
        row += static_cast<std::int64_t>(segment.tokens.size());
    }
    // Sequences are independent; within one, a ring row is overwritten only after the windows that read it have closed.
    c.workers.run(static_cast<std::int64_t>(c.segments.size()), [&](std::int64_t s) {
        const Segment& segment = c.segments[static_cast<std::size_t>(s)];
        const Ring ring{c.pools.state(site.layer_idx, site.state, segment.sequence->state_slot()),
                        overlap ? 2 * site.ratio : site.ratio, width};
        std::vector<ops::RawRow> previous;
        std::vector<ops::RawRow> window;
        std::vector<float> entry(static_cast<std::size_t>(site.dim));
        std::vector<float> cos_sin(static_cast<std::size_t>(c.g.rope_dim));
        const auto collect = [&](std::int32_t first, std::vector<ops::RawRow>& out) {
            out.clear();
            for (std::int32_t i = 0; i < site.ratio; ++i) {
                out.push_back(ring.raw(first + i, ape.data() + std::int64_t{i} * width));
            }
        };
        for (std::size_t i = 0; i < segment.tokens.size(); ++i) {
            const auto position = segment.start + static_cast<std::int32_t>(i);
            const std::int64_t from = (first_row[static_cast<std::size_t>(s)] + static_cast<std::int64_t>(i)) * width;
            float* to = ring.row(position);
            std::memcpy(to, value + from, sizeof(float) * static_cast<std::size_t>(width));
            std::memcpy(to + width, gate + from, sizeof(float) * static_cast<std::size_t>(width));
            if ((position + 1) % site.ratio != 0) {
                continue;
            }
            const std::int32_t first = position + 1 - site.ratio;
            previous.clear();
            if (overlap && first > 0) {
                collect(first - site.ratio, previous);
            }
            collect(first, window);
            ops::pool_window(previous, window, overlap, entry);
            if (c.ds()) {
                for (float& v : entry) {
                    v = ops::round_bf16(v);
                }
            }
            cpu::rms_norm(c.isa, entry.data(), site.weights->raw->norm.data(), site.dim, c.g.rms_eps, c.rounding(),
                          entry.data());
            ops::rope_angles(frequencies, first, cos_sin);
            ops::rotate(entry, cos_sin, false, c.ds());
            store(*segment.sequence, first / site.ratio, entry);
        }
    });
}

}  // namespace megamoe::model
