#include "moe/mega.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "moe/wire.h"

namespace megamoe::moe {
namespace {

constexpr std::int32_t kBlockRows = 240;  // whole register tiles, and enough rows to pay for decoding a weight panel
constexpr std::int32_t kLag = 1;          // units between the layers of a block: it is still in the cache
constexpr std::int32_t kTileCols = cpu::kPackCols;  // a first-layer task fills one block of packed activations

mega::Schedule make_schedule(const OperatorConfig& c, std::int32_t num_ranks) {
    mega::Schedule s;
    s.num_experts = c.num_experts / num_ranks;
    s.block = kBlockRows;
    s.unit_blocks = 1;
    s.lag = kLag;
    s.tiles1 = mega::ceil_div(c.math.inter, kTileCols);
    s.tiles2 = mega::ceil_div(c.math.hidden, kTileCols);
    return s;
}

}  // namespace

mega::Shape MegaOperator::shape_of(const OperatorConfig& c, std::int32_t num_ranks) {
    return {.num_ranks = num_ranks,
            .num_experts = c.num_experts,
            .top_k = c.top_k,
            .hidden = c.math.hidden,
            .inter = c.math.inter,
            .max_rows = c.max_rows};
}

mega::Wire MegaOperator::wire_of(const ExpertMath& math) {
    return {.row_bytes = wire_row_bytes(math), .scale_bytes = 0, .return_bytes = wire_row_bytes(math)};
}

MegaOperator::MegaOperator(const OperatorConfig& config, std::int32_t version, const MegaOptions& options,
                           const comm::RankContext& context, comm::SymmetricBlock block, Workers& workers)
    : Operator(config, context),
      version_(version),
      wait_{options.timeout_ms},
      delay_(options.delay),
      block_(block),
      workers_(workers),
      shape_(shape_of(config, context.size)),
      wire_(wire_of(config.math)),
      layout_(mega::heap_layout(shape_, wire_)),
      shard_(shard_of(config, context.size, context.rank)),
      schedule_(make_schedule(config, context.size)),
      epoch_(options.first_epoch),
      counts_(static_cast<std::size_t>(shard_.count * context.size)),
      lists_(counts_.size()),
      rows_(static_cast<std::size_t>(shard_.count)),
      begins_(static_cast<std::size_t>(shard_.count) + 1),
      sent_(static_cast<std::size_t>(context.size)),
      remaining_(static_cast<std::size_t>(context.size)) {
    for (std::int32_t r = 0; r < context.size; ++r) {
        bases_.push_back(block.at(RankId{r}));
    }
    view_ = {raw(context.rank), bases_.data()};
}

// The rows as the experts read them, where peers can pull them. Nobody still reads the last launch's: its results are
// all back.
void MegaOperator::stage_rows(const Launch& launch) {
    const std::int64_t h = config_.math.hidden;
    delay(Edge::kStage);
    workers_.run(launch.input.rows, [&](std::int64_t row) {
        float* x = quantised_.data() + row * h;
        std::copy_n(launch.input.x + row * h, h, x);
        if (config_.math.ds()) {
            cpu::quantise_fp8(config_.math.isa, x, config_.math.hidden, kActGroup);
        }
        write_wire(config_.math, x, config_.math.hidden, view_.mine<std::byte>(layout_.x + row * wire_.row_bytes));
    });
    const std::int64_t pairs = std::int64_t{launch.input.rows} * config_.top_k;
    std::copy_n(launch.input.expert_id, pairs, view_.mine<std::int32_t>(layout_.topk_id));
    std::copy_n(launch.input.weight, pairs, view_.mine<float>(layout_.topk_weight));
}

// Pushes to every expert the list of rows it gets from here, then the count that makes the list valid. 0 is sent too.
// Only a row that names an expert more than once can make a list longer than max_rows; the rest of it stays here
// (find_list).
void MegaOperator::publish_routes(const Launch& launch) {
    const std::int32_t me = view_.rank;
    std::vector<std::int32_t> count(static_cast<std::size_t>(config_.num_experts));
    std::fill(sent_.begin(), sent_.end(), 0);
    delay(Edge::kIndex);
    for (std::int32_t pair = 0; pair < launch.input.rows * config_.top_k; ++pair) {
        const std::int32_t expert = launch.input.expert_id[pair];
        if (expert < 0 || expert >= config_.num_experts) {
            continue;
        }
        const std::int32_t owner = shape_.owner_of(expert);
        const std::int32_t local = expert - owner * shape_.local_experts();
        const std::int64_t list = mega::count_index(shape_, launch.epoch, local, me);
        std::int32_t& n = count[static_cast<std::size_t>(expert)];
        if (n < shape_.max_rows) {
            view_.at<std::uint32_t>(owner, layout_.index)[list * shape_.max_rows + n] =
                static_cast<std::uint32_t>(pair);
        }
        ++n;
        ++sent_[static_cast<std::size_t>(owner)];
    }
    for (std::int32_t expert = 0; expert < config_.num_experts; ++expert) {
        const std::int32_t owner = shape_.owner_of(expert);
        const std::int32_t local = expert - owner * shape_.local_experts();
        delay(Edge::kCounts);
        publish(view_.at<mega::Cell>(owner, layout_.counts) + mega::count_index(shape_, launch.epoch, local, me),
                launch.epoch, static_cast<std::uint32_t>(count[static_cast<std::size_t>(expert)]));
    }
}

// The pairs that `source` sends to an expert. If the list did not fit, the ids at the source say the same.
const std::uint32_t* MegaOperator::find_list(const Launch& launch, std::int32_t local, std::int32_t source,
                                             std::int32_t count) {
    if (count <= shape_.max_rows) {
        return view_.mine<std::uint32_t>(layout_.index) +
               mega::count_index(shape_, launch.epoch, local, source) * shape_.max_rows;
    }
    const auto* ids = view_.at<std::int32_t>(source, layout_.topk_id);
    std::vector<std::uint32_t>& list = long_lists_.emplace_back();
    for (std::uint32_t pair = 0; list.size() < static_cast<std::size_t>(count); ++pair) {
        if (ids[pair] == shard_.first + local) {
            list.push_back(pair);
        }
    }
    return list.data();
}

Result<Done> MegaOperator::collect_counts(Launch& launch) {
    std::fill(rows_.begin(), rows_.end(), 0);
    long_lists_.clear();
    for (auto& left : remaining_) {
        left.store(0, std::memory_order_relaxed);
    }
    for (std::int32_t local = 0; local < shard_.count; ++local) {
        for (std::int32_t source = 0; source < context_.size; ++source) {
            auto* cell =
                view_.mine<mega::Cell>(layout_.counts) + mega::count_index(shape_, launch.epoch, local, source);
            if (version_ == 2 && !try_read(cell, launch.epoch)) {
                run_shared(launch);  // a peer is late: do what needs no peer
            }
            MM_TRY(const auto count, wait_cell(context_, view_, wait_, cell, launch.epoch, Edge::kCounts, source));
            const auto rows = static_cast<std::int32_t>(count);
            const auto list = static_cast<std::size_t>(local * context_.size + source);
            counts_[list] = rows;
            lists_[list] = find_list(launch, local, source, rows);
            rows_[static_cast<std::size_t>(local)] += rows;
            remaining_[static_cast<std::size_t>(source)].fetch_add(rows, std::memory_order_relaxed);
        }
    }
    for (std::int32_t source = 0; source < context_.size; ++source) {
        if (remaining_[static_cast<std::size_t>(source)].load(std::memory_order_relaxed) == 0) {  // nothing to return
            delay(Edge::kDone);
            publish(view_.at<mega::Cell>(source, layout_.done) + mega::done_index(shape_, launch.epoch, view_.rank),
                    launch.epoch, 0);
        }
    }
    mega::fill_begins(schedule_, rows_.data(), begins_.data());
    if (version_ == 1) {
        schedule_.lag = begins_.back().unit;  // every first layer before any second
    }
    return Done{};
}

void MegaOperator::run_shared(Launch& launch) {
    if (!launch.shared_done) {
        clock_.lap(Stage::kWait);  // a peer is late, or nothing else is left to do
        run_expert(config_.math, workers_, launch.experts.shared, quantised_.data(), nullptr, launch.input.rows,
                   shared_.data());
        launch.shared_done = true;
        clock_.lap(Stage::kShared);
    }
}

std::int32_t MegaOperator::block_rows(const mega::Task& task) const {
    return std::min(schedule_.block, rows_[static_cast<std::size_t>(task.expert)] - task.first_row);
}

// Copies a block's rows from their sources, next to each other, sources in rank order.
void MegaOperator::pull(const Launch& launch, const mega::Task& task, BlockSlot& slot) {
    const auto packing =
        cpu::packing_for(config_.math.isa, config_.math.math(),
                         launch.experts.routed[static_cast<std::size_t>(shard_.first + task.expert)].w1.format());
    slot.rows = block_rows(task);
    slot.origin.resize(static_cast<std::size_t>(slot.rows));
    slot.x.resize(std::max(slot.x.size(), static_cast<std::size_t>(packing.bytes(slot.rows, config_.math.hidden))));
    slot.act.resize(std::max(slot.act.size(), static_cast<std::size_t>(packing.bytes(slot.rows, config_.math.inter))));
    delay(Edge::kPull);
    std::int32_t skip = task.first_row;
    std::int32_t row = 0;
    for (std::int32_t source = 0; source < context_.size && row < slot.rows; ++source) {
        const auto of = static_cast<std::size_t>(task.expert * context_.size + source);
        const std::int32_t count = counts_[of];
        const std::uint32_t* list = lists_[of];
        for (std::int32_t i = skip; i < count && row < slot.rows; ++i, ++row) {
            const auto pair = static_cast<std::int32_t>(list[i]);
            const auto* from =
                view_.at<std::byte>(source, layout_.x + std::int64_t{pair / config_.top_k} * wire_.row_bytes);
            slot.origin[static_cast<std::size_t>(row)] = {source, pair,
                                                          view_.at<float>(source, layout_.topk_weight)[pair]};
            if (config_.math.ds()) {
                cpu::pack_row(packing, reinterpret_cast<const std::uint16_t*>(from), config_.math.hidden, row,
                              slot.rows, slot.x.data());
            } else {
                cpu::pack_row(packing, reinterpret_cast<const float*>(from), config_.math.hidden, row, slot.rows,
                              slot.x.data());
            }
        }
        skip = std::max(0, skip - count);
    }
    MM_CHECK(row == slot.rows, "pulled", row, "of", slot.rows);
    slot.first_done.store(0, std::memory_order_relaxed);
    slot.second_done.store(0, std::memory_order_relaxed);
    delay(Edge::kBlock);
    slot.pulled.store(task.block, std::memory_order_release);
}

void MegaOperator::first_layer(const Launch& launch, const mega::Task& task, BlockSlot& slot) {
    alignas(64) thread_local float gate[kBlockRows * kTileCols];
    alignas(64) thread_local float up[kBlockRows * kTileCols];
    const ExpertMath& m = config_.math;
    const PackedExpert& e = launch.experts.routed[static_cast<std::size_t>(shard_.first + task.expert)];
    const std::int32_t cols = std::min(kTileCols, m.inter - task.tile * kTileCols);
    for (std::int32_t first = 0; first < cols; first += cpu::kTaskRows) {
        const std::int32_t panel = (task.tile * kTileCols + first) / cpu::kPanelRows;
        cpu::gemm_task(m.isa, m.math(), e.w1, panel, slot.x.data(), slot.rows, m.ds(), gate + first, kTileCols);
        cpu::gemm_task(m.isa, m.math(), e.w3, panel, slot.x.data(), slot.rows, m.ds(), up + first, kTileCols);
    }
    const auto packing = cpu::packing_for(m.isa, m.math(), e.w2.format());
    std::byte* act = slot.act.data() + task.tile * packing.block_bytes(slot.rows);
    for (std::int32_t r = 0; r < slot.rows; ++r) {
        float* g = gate + r * kTileCols;
        const float before = m.ds() ? slot.origin[static_cast<std::size_t>(r)].weight : 1.0F;
        cpu::swiglu(m.isa, g, up + r * kTileCols, cols, m.limit, before, m.rounding(), g);
        if (m.ds()) {
            cpu::quantise_fp8(m.isa, g, cols, kActGroup);
        }
        cpu::pack_row(packing, g, cols, r, slot.rows, act);
    }
    delay(Edge::kFirst);
    slot.first_done.fetch_add(1, std::memory_order_release);
}

void MegaOperator::second_layer(const Launch& launch, const mega::Task& task, BlockSlot& slot) {
    alignas(64) thread_local float result[kBlockRows * kTileCols];
    const ExpertMath& m = config_.math;
    const PackedExpert& e = launch.experts.routed[static_cast<std::size_t>(shard_.first + task.expert)];
    const std::int32_t begin = task.tile * kTileCols;
    const std::int32_t cols = std::min(kTileCols, m.hidden - begin);
    for (std::int32_t first = 0; first < cols; first += cpu::kTaskRows) {
        cpu::gemm_task(m.isa, m.math(), e.w2, (begin + first) / cpu::kPanelRows, slot.act.data(), slot.rows, m.ds(),
                       result + first, kTileCols);
    }
    delay(Edge::kReturn);
    const std::int64_t offset = begin * (wire_.return_bytes / m.hidden);
    for (std::int32_t r = 0; r < slot.rows; ++r) {
        const RowOrigin& origin = slot.origin[static_cast<std::size_t>(r)];
        float* row = result + r * kTileCols;
        if (!m.ds()) {
            for (std::int32_t i = 0; i < cols; ++i) {
                row[i] *= origin.weight;
            }
        }
        std::byte* home = version_ == 2 ? return_row(origin) : slot.result.data() + r * wire_.return_bytes;
        write_wire(m, row, cols, home + offset);
    }
    if (slot.second_done.fetch_add(1, std::memory_order_acq_rel) + 1 == schedule_.tiles2 && version_ == 2) {
        returned(launch, slot);
        delay(Edge::kSlot);
        slot.freed.store(task.block, std::memory_order_release);
    }
}

// All of a block's results are at their sources; the last row of a source lets it know.
void MegaOperator::returned(const Launch& launch, const BlockSlot& slot) {
    for (std::size_t first = 0; first < slot.origin.size();) {
        const std::int32_t source = slot.origin[first].source;
        std::size_t last = first;
        while (last < slot.origin.size() && slot.origin[last].source == source) {
            ++last;
        }
        const auto count = static_cast<std::int32_t>(last - first);
        auto& left = remaining_[static_cast<std::size_t>(source)];
        if (left.fetch_sub(count, std::memory_order_acq_rel) == count) {
            std::int32_t total = 0;
            for (std::int32_t local = 0; local < shard_.count; ++local) {
                total += counts_[static_cast<std::size_t>(local * context_.size + source)];
            }
            delay(Edge::kDone);
            publish(view_.at<mega::Cell>(source, layout_.done) + mega::done_index(shape_, launch.epoch, view_.rank),
                    launch.epoch, static_cast<std::uint32_t>(total));
        }
        first = last;
    }
}

// Draws tickets until the stream ends. A task waits for tasks with smaller tickets only.
void MegaOperator::work(const Launch& launch, std::atomic<std::int64_t>& ticket) {
    mega::TaskCursor cursor(schedule_, begins_.data());
    mega::Task task;
    while (cursor.seek(ticket.fetch_add(1, std::memory_order_relaxed), task)) {
        BlockSlot& slot = ring_.of(task.block);
        if (task.layer == 1) {
            if (task.tile == 0 && slot.pulled.load(std::memory_order_relaxed) != task.block) {
                wait_until([&] { return ring_.is_free_for(task.block); });
                pull(launch, task, slot);
            }
            wait_until([&] { return slot.pulled.load(std::memory_order_acquire) == task.block; });
            first_layer(launch, task, slot);
        } else {
            wait_until([&] {
                return slot.pulled.load(std::memory_order_acquire) == task.block &&
                       slot.first_done.load(std::memory_order_acquire) == schedule_.tiles1;
            });
            second_layer(launch, task, slot);
        }
    }
}

std::byte* MegaOperator::return_row(const RowOrigin& origin) const {
    return view_.at<std::byte>(origin.source, layout_.combine + origin.pair * wire_.return_bytes);
}

// Version 1: all rows are here before the first product starts.
void MegaOperator::pull_all(const Launch& launch) {
    mega::TaskCursor cursor(schedule_, begins_.data());
    mega::Task task;
    for (std::int64_t ticket = 0; cursor.seek(ticket, task) && task.layer == 1; ++ticket) {
        if (task.tile == 0) {
            BlockSlot& slot = ring_.of(task.block);
            pull(launch, task, slot);
            slot.result.resize(static_cast<std::size_t>(slot.rows * wire_.return_bytes));
        }
    }
}

// Version 1: all results are here before the first goes back.
void MegaOperator::return_all(const Launch& launch) {
    const auto bytes = static_cast<std::size_t>(wire_.return_bytes);
    workers_.run(begins_.back().block, [&](std::int64_t block) {
        const BlockSlot& slot = ring_.of(block);
        for (std::size_t r = 0; r < slot.origin.size(); ++r) {
            delay(Edge::kReturn);
            std::memcpy(return_row(slot.origin[r]), slot.result.data() + r * bytes, bytes);
        }
        returned(launch, slot);
    });
}

void MegaOperator::run_tasks(const Launch& launch) {
    const std::int64_t blocks = begins_.back().block;
    ring_.resize(std::max<std::int64_t>(
        1, version_ == 1 ? blocks : std::min<std::int64_t>(blocks, mega::min_ring_blocks(schedule_) + 1)));
    if (version_ == 1) {
        pull_all(launch);
        clock_.lap(Stage::kPull);
    }
    std::atomic<std::int64_t> ticket{0};
    workers_.run(workers_.size(), [&](std::int64_t) { work(launch, ticket); });
    clock_.lap(Stage::kExperts);
    if (version_ == 1) {
        return_all(launch);
        clock_.lap(Stage::kReturn);
    }
}

Result<Done> MegaOperator::await_returns(Launch& launch) {
    for (std::int32_t r = 0; r < context_.size; ++r) {
        auto* cell = view_.mine<mega::Cell>(layout_.done) + mega::done_index(shape_, launch.epoch, r);
        if (!try_read(cell, launch.epoch)) {
            run_shared(launch);
        }
        MM_TRY(const auto count, wait_cell(context_, view_, wait_, cell, launch.epoch, Edge::kDone, r));
        MM_CHECK(count == static_cast<std::uint32_t>(sent_[static_cast<std::size_t>(r)]), "rank", r, "returned", count,
                 "rows of", sent_[static_cast<std::size_t>(r)]);
    }
    run_shared(launch);
    return Done{};
}

Result<Done> MegaOperator::run(const Input& input, const LayerExperts& experts, const step::StepPlan&, float* out) {
    const auto floats = static_cast<std::size_t>(input.rows) * static_cast<std::size_t>(config_.math.hidden);
    quantised_.resize(std::max(quantised_.size(), floats));
    shared_.resize(std::max(shared_.size(), floats));
    Launch launch{input, experts, epoch_};
    epoch_ = mega::next_epoch(epoch_);
    clock_.start();
    stage_rows(launch);
    publish_routes(launch);
    clock_.lap(Stage::kDispatch);
    if (version_ == 1) {
        run_shared(launch);
    }
    MM_TRY_DONE(collect_counts(launch));
    clock_.lap(Stage::kWait);
    run_tasks(launch);
    MM_TRY_DONE(await_returns(launch));
    clock_.lap(Stage::kWait);
    delay(Edge::kCombine);
    combine(config_, workers_, input, view_.mine<std::byte>(layout_.combine), shared_.data(), out);
    clock_.lap(Stage::kCombine);
    return Done{};
}

}  // namespace megamoe::moe
