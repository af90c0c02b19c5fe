#include "moe/protocol_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_set>

#include "base/check.h"
#include "compute/mega/cell.h"
#include "compute/mega/schedule.h"

namespace megamoe::moe {
namespace {

using Byte = std::uint8_t;

// Where a thread stands: what it does next.
enum Step : Byte {
    kAsleep,  // a helper before its launch
    kStage,
    kPushIndex,     // at: (expert, row)
    kPublishCount,  // at: expert
    kReadCount,     // at: (local expert, source)
    kDoneNothing,   // at: source; says done to those that sent nothing
    kDraw,
    kPull,
    kFirst,
    kReturn,
    kCountDown,
    kDone,
    kFree,
    kJoin,       // the owner waits for its helpers; a helper is through
    kAwaitDone,  // at: expert rank
    kCombine,
    kFinished,
};

constexpr const char* kStepNames[] = {
    "sleep",      "stage rows",  "push an index", "publish a count", "read a count", "done (none)",       "draw",
    "pull a row", "first layer", "return a row",  "count down",      "done",         "free a block slot", "join",
    "read done",  "combine",     "finished"};

// One block of the stream: a row of `source` for local expert `local`.
struct BlockRow {
    Byte local, source, row;
};

// The bytes of a state, and the names of its words. Every word of a launch holds the launch's number, 0 = never
// written.
class Words {
  public:
    explicit Words(const ProtocolModel& m) : m_(m), experts_(m.num_ranks * m.local_experts) {
        launch_ = take(1);
        ticket_ = take(1);
        threads_ = take(3 * m.threads);
        pulled_ = take(m.ring);
        first_ = take(m.ring);
        freed_ = take(m.ring);
        left_ = take(m.num_ranks);
        staged_ = take(1);
        index_ = take(m.banks * experts_ * kRows);
        count_ = take(m.banks * experts_);
        done_ = take(m.banks * m.num_ranks);
        result_ = take(experts_ * kRows);
    }
    static constexpr std::int32_t kRows = 2;  // of a (source, expert), at most
    std::int32_t state_bytes() const { return m_.num_ranks * rank_bytes_; }

    Byte& launch(Byte* s, int r) const { return s[r * rank_bytes_ + launch_]; }
    Byte& ticket(Byte* s, int r) const { return s[r * rank_bytes_ + ticket_]; }
    Byte& step(Byte* s, int r, int t) const { return s[r * rank_bytes_ + threads_ + 3 * t]; }
    Byte& at(Byte* s, int r, int t) const { return s[r * rank_bytes_ + threads_ + 3 * t + 1]; }
    Byte& task(Byte* s, int r, int t) const { return s[r * rank_bytes_ + threads_ + 3 * t + 2]; }
    // Block slots hold block + 1, so that 0 means never.
    Byte& pulled(Byte* s, int r, int block) const { return s[r * rank_bytes_ + pulled_ + block % m_.ring]; }
    Byte& first(Byte* s, int r, int block) const { return s[r * rank_bytes_ + first_ + block % m_.ring]; }
    Byte& freed(Byte* s, int r, int block) const { return s[r * rank_bytes_ + freed_ + block % m_.ring]; }
    Byte& left(Byte* s, int r, int source) const { return s[r * rank_bytes_ + left_ + source]; }
    Byte& staged(Byte* s, int r) const { return s[r * rank_bytes_ + staged_]; }
    Byte& index(Byte* s, int r, int launch, int local, int source, int row) const {
        return s[r * rank_bytes_ + index_ + list(launch, local, source) * kRows + row];
    }
    Byte& count(Byte* s, int r, int launch, int local, int source) const {
        return s[r * rank_bytes_ + count_ + list(launch, local, source)];
    }
    Byte& done(Byte* s, int r, int launch, int expert_rank) const {
        return s[r * rank_bytes_ + done_ + bank(launch) * m_.num_ranks + expert_rank];
    }
    Byte& result(Byte* s, int r, int expert, int row) const {
        return s[r * rank_bytes_ + result_ + expert * kRows + row];
    }

  private:
    int take(int bytes) {
        rank_bytes_ += bytes;
        return rank_bytes_ - bytes;
    }
    int bank(int launch) const { return m_.banks == 1 ? 0 : mega::bank_of(static_cast<mega::Epoch>(launch)); }
    int list(int launch, int local, int source) const {
        return (bank(launch) * m_.local_experts + local) * m_.num_ranks + source;
    }

    const ProtocolModel& m_;
    const int experts_;
    int rank_bytes_ = 0;
    int launch_, ticket_, threads_, pulled_, first_, freed_, left_, staged_, index_, count_, done_, result_;
};

class Machine {
  public:
    explicit Machine(const ProtocolModel& m) : m_(m), words_(m), experts_(m.num_ranks * m.local_experts) {
        MM_CHECK(m.num_ranks >= 1 && m.num_ranks <= 3 && experts_ <= 4 && m.threads >= 1 && m.threads <= 3, "sizes");
        MM_CHECK(m.rows.size() == static_cast<std::size_t>(m.num_ranks * experts_), "rows", m.rows.size());
        MM_CHECK(std::all_of(m.rows.begin(), m.rows.end(), [](int n) { return n >= 0 && n <= Words::kRows; }), "rows");
        for (int r = 0; r < m.num_ranks; ++r) {
            plan(r);
        }
    }

    std::int32_t state_bytes() const { return words_.state_bytes(); }

    void start(Byte* s) const {
        std::memset(s, 0, static_cast<std::size_t>(state_bytes()));
        for (int r = 0; r < m_.num_ranks; ++r) {
            begin_launch(s, r, 1);
        }
    }

    bool finished(Byte* s) const {
        for (int r = 0; r < m_.num_ranks; ++r) {
            if (words_.step(s, r, 0) != kFinished) {
                return false;
            }
        }
        return true;
    }

    std::string describe(Byte* s, int r, int t) const {
        return fmt::format("rank {} thread {} launch {}: {} {}", r, t, words_.launch(s, r),
                           kStepNames[words_.step(s, r, t)], words_.at(s, r, t));
    }

    // Takes the next step of a thread. False: it must wait. A bad read sets `violation`.
    bool advance(Byte* s, int r, int t, std::string& violation) const {
        switch (words_.step(s, r, t)) {
            case kAsleep:
            case kFinished:
                return false;
            case kStage:
            case kPushIndex:
            case kPublishCount:
                return announce(s, r, t);
            case kReadCount:
            case kDoneNothing:
                return collect(s, r, t);
            case kDraw:
                return draw(s, r, t);
            case kJoin:
            case kAwaitDone:
            case kCombine:
                return leave(s, r, t, violation);
            default:
                return work(s, r, t, violation);
        }
    }

  private:
    int rows(int source, int expert) const { return m_.rows[static_cast<std::size_t>(source * experts_ + expert)]; }

    // The stream of rank r, from the real cursor.
    void plan(int r) {
        mega::Schedule schedule{
            .num_experts = m_.local_experts, .block = 1, .unit_blocks = 1, .lag = m_.lag, .tiles1 = 1, .tiles2 = 1};
        std::vector<std::int32_t> total(static_cast<std::size_t>(m_.local_experts));
        std::vector<Byte> left;
        std::vector<BlockRow> blocks;
        for (int local = 0; local < m_.local_experts; ++local) {
            for (int source = 0; source < m_.num_ranks; ++source) {
                const int n = rows(source, r * m_.local_experts + local);
                for (int row = 0; row < n; ++row) {
                    blocks.push_back({static_cast<Byte>(local), static_cast<Byte>(source), static_cast<Byte>(row)});
                }
                total[static_cast<std::size_t>(local)] += n;
            }
        }
        for (int source = 0; source < m_.num_ranks; ++source) {
            left.push_back(static_cast<Byte>(
                std::count_if(blocks.begin(), blocks.end(), [&](const BlockRow& b) { return b.source == source; })));
        }
        std::vector<mega::ExpertBegin> begins(total.size() + 1);
        mega::fill_begins(schedule, total.data(), begins.data());
        mega::TaskCursor cursor(schedule, begins.data());
        std::vector<mega::Task> tasks;
        for (mega::Task task; cursor.seek(static_cast<std::int64_t>(tasks.size()), task);) {
            tasks.push_back(task);
        }
        blocks_.push_back(std::move(blocks));
        tasks_.push_back(std::move(tasks));
        received_.push_back(std::move(left));
    }

    void begin_launch(Byte* s, int r, int launch) const {
        words_.launch(s, r) = static_cast<Byte>(launch);
        words_.ticket(s, r) = 0;
        for (int b = 0; b < m_.ring; ++b) {
            words_.pulled(s, r, b) = words_.first(s, r, b) = words_.freed(s, r, b) = 0;
        }
        for (int source = 0; source < m_.num_ranks; ++source) {
            words_.left(s, r, source) = received_[static_cast<std::size_t>(r)][static_cast<std::size_t>(source)];
        }
        go(s, r, 0, kStage);
        for (int t = 1; t < m_.threads; ++t) {
            go(s, r, t, m_.all_read_counts ? kReadCount : kAsleep);
        }
    }

    void go(Byte* s, int r, int t, Step step) const {
        words_.step(s, r, t) = step;
        words_.at(s, r, t) = words_.task(s, r, t) = 0;
    }

    // `at` + 1 while it stays below `end`, else on to `next`.
    void count_on(Byte* s, int r, int t, int end, Step next) const {
        if (++words_.at(s, r, t) >= end) {
            go(s, r, t, next);
        }
    }

    bool is_of(Byte word, int launch) const { return word == launch || (m_.breach == Breach::kAnyEpoch && word != 0); }

    bool announce(Byte* s, int r, int t) const {
        const int launch = words_.launch(s, r);
        const bool counts_first = m_.breach == Breach::kCountBeforeIndex;
        const int at = words_.at(s, r, t);
        switch (words_.step(s, r, t)) {
            case kStage:
                words_.staged(s, r) = static_cast<Byte>(launch);
                go(s, r, t, counts_first ? kPublishCount : kPushIndex);
                return true;
            case kPushIndex: {
                const int expert = at / Words::kRows;
                if (at % Words::kRows < rows(r, expert)) {
                    words_.index(s, expert / m_.local_experts, launch, expert % m_.local_experts, r,
                                 at % Words::kRows) = static_cast<Byte>(launch);
                }
                count_on(s, r, t, experts_ * Words::kRows, counts_first ? kReadCount : kPublishCount);
                return true;
            }
            default:
                words_.count(s, at / m_.local_experts, launch, at % m_.local_experts, r) = static_cast<Byte>(launch);
                count_on(s, r, t, experts_, counts_first ? kPushIndex : kReadCount);
                return true;
        }
    }

    bool collect(Byte* s, int r, int t) const {
        const int launch = words_.launch(s, r);
        const int at = words_.at(s, r, t);
        if (words_.step(s, r, t) == kReadCount) {
            if (!is_of(words_.count(s, r, launch, at / m_.num_ranks, at % m_.num_ranks), launch)) {
                return false;
            }
            count_on(s, r, t, m_.local_experts * m_.num_ranks, t == 0 ? kDoneNothing : kDraw);
            return true;
        }
        if (received_[static_cast<std::size_t>(r)][static_cast<std::size_t>(at)] == 0) {
            words_.done(s, at, launch, r) = static_cast<Byte>(launch);
        }
        count_on(s, r, t, m_.num_ranks, kDraw);
        if (words_.step(s, r, t) == kDraw && !m_.all_read_counts) {
            for (int helper = 1; helper < m_.threads; ++helper) {
                go(s, r, helper, kDraw);
            }
        }
        return true;
    }

    bool draw(Byte* s, int r, int t) const {
        const auto& tasks = tasks_[static_cast<std::size_t>(r)];
        const int ticket = words_.ticket(s, r)++;
        if (ticket >= static_cast<int>(tasks.size())) {
            words_.ticket(s, r) = static_cast<Byte>(tasks.size());  // nobody tells apart how far behind the end it is
            go(s, r, t, kJoin);
            return true;
        }
        go(s, r, t,
           tasks[static_cast<std::size_t>(ticket)].layer == 1 ? kPull
           : m_.breach == Breach::kDoneBeforeRows             ? kCountDown
                                                              : kReturn);
        words_.task(s, r, t) = static_cast<Byte>(ticket);
        return true;
    }

    bool work(Byte* s, int r, int t, std::string& violation) const {
        const int launch = words_.launch(s, r);
        const int block = tasks_[static_cast<std::size_t>(r)][static_cast<std::size_t>(words_.task(s, r, t))].block;
        const BlockRow& row = blocks_[static_cast<std::size_t>(r)][static_cast<std::size_t>(block)];
        const auto on = [&](Step step) { words_.step(s, r, t) = step; };
        const bool done_first = m_.breach == Breach::kDoneBeforeRows;
        const bool first_layer_done = words_.pulled(s, r, block) == block + 1 && words_.first(s, r, block) == block + 1;
        switch (words_.step(s, r, t)) {
            case kPull:
                if (block >= m_.ring && words_.freed(s, r, block) < block - m_.ring + 1) {
                    return false;
                }
                if (words_.index(s, r, launch, row.local, row.source, row.row) != launch) {
                    violation = fmt::format("rank {} pulls by a stale index in launch {}", r, launch);
                } else if (words_.staged(s, row.source) != launch) {
                    violation = fmt::format("rank {} pulls rows of launch {} in launch {}", r,
                                            words_.staged(s, row.source), launch);
                }
                words_.pulled(s, r, block) = static_cast<Byte>(block + 1);
                on(kFirst);
                return true;
            case kFirst:
                words_.first(s, r, block) = static_cast<Byte>(block + 1);
                go(s, r, t, kDraw);
                return true;
            case kReturn:
                if (!first_layer_done) {
                    return false;
                }
                words_.result(s, row.source, r * m_.local_experts + row.local, row.row) = static_cast<Byte>(launch);
                on(done_first ? kFree : kCountDown);
                return true;
            case kCountDown:
                if (!first_layer_done) {
                    return false;
                }
                on(--words_.left(s, r, row.source) == 0 ? kDone : done_first ? kReturn : kFree);
                return true;
            case kDone:
                words_.done(s, row.source, launch, r) = static_cast<Byte>(launch);
                on(done_first ? kReturn : kFree);
                return true;
            default:  // kFree
                words_.freed(s, r, block) = static_cast<Byte>(block + 1);
                go(s, r, t, kDraw);
                return true;
        }
    }

    bool leave(Byte* s, int r, int t, std::string& violation) const {
        const int launch = words_.launch(s, r);
        switch (words_.step(s, r, t)) {
            case kJoin:
                for (int helper = 0; helper < m_.threads; ++helper) {
                    if (t != 0 || words_.step(s, r, helper) != kJoin) {
                        return false;
                    }
                }
                go(s, r, t, m_.breach == Breach::kLeaveEarly ? kCombine : kAwaitDone);
                return true;
            case kAwaitDone:
                if (!is_of(words_.done(s, r, launch, words_.at(s, r, t)), launch)) {
                    return false;
                }
                count_on(s, r, t, m_.num_ranks, kCombine);
                return true;
            default:  // kCombine
                for (int at = 0; at < experts_ * Words::kRows; ++at) {
                    const int expert = at / Words::kRows;
                    const int row = at % Words::kRows;
                    if (row < rows(r, expert) && words_.result(s, r, expert, row) != launch) {
                        violation =
                            fmt::format("rank {} sums a stale result of expert {} in launch {}", r, expert, launch);
                    }
                }
                if (launch == m_.launches) {
                    for (int helper = 0; helper < m_.threads; ++helper) {
                        go(s, r, helper, kFinished);
                    }
                } else {
                    begin_launch(s, r, launch + 1);
                }
                return true;
        }
    }

    const ProtocolModel& m_;
    const Words words_;
    const int experts_;
    std::vector<std::vector<BlockRow>> blocks_;   // [rank]
    std::vector<std::vector<mega::Task>> tasks_;  // [rank]
    std::vector<std::vector<Byte>> received_;     // [rank][source] rows
};

// All states met so far, each once, with the way to it.
class Visited {
  public:
    explicit Visited(std::int32_t state_bytes)
        : bytes_(static_cast<std::size_t>(state_bytes)), known_(1024, Hash{this}, Equal{this}) {}

    std::size_t size() const { return from_.size(); }
    const Byte* state(std::uint32_t i) const { return arena_.data() + i * bytes_; }
    std::uint32_t from(std::uint32_t i) const { return from_[i]; }
    Byte mover(std::uint32_t i) const { return mover_[i]; }

    void add(const Byte* state, std::uint32_t from, Byte mover) {
        const auto id = static_cast<std::uint32_t>(size());
        arena_.insert(arena_.end(), state, state + bytes_);
        if (known_.insert(id).second) {
            from_.push_back(from);
            mover_.push_back(mover);
        } else {
            arena_.resize(arena_.size() - bytes_);
        }
    }

  private:
    std::string_view text(std::uint32_t i) const { return {reinterpret_cast<const char*>(state(i)), bytes_}; }
    struct Hash {
        const Visited* v;
        std::size_t operator()(std::uint32_t i) const { return std::hash<std::string_view>{}(v->text(i)); }
    };
    struct Equal {
        const Visited* v;
        bool operator()(std::uint32_t a, std::uint32_t b) const { return v->text(a) == v->text(b); }
    };

    const std::size_t bytes_;
    std::vector<Byte> arena_;
    std::vector<std::uint32_t> from_;
    std::vector<Byte> mover_;  // rank * threads + thread
    std::unordered_set<std::uint32_t, Hash, Equal> known_;
};

std::vector<std::string> trace_to(const ProtocolModel& model, const Machine& machine, const Visited& visited,
                                  std::uint32_t state) {
    std::vector<std::string> trace;
    for (; state != 0; state = visited.from(state)) {
        std::vector<Byte> before(visited.state(visited.from(state)),
                                 visited.state(visited.from(state)) + machine.state_bytes());
        const int mover = visited.mover(state);
        trace.push_back(machine.describe(before.data(), mover / model.threads, mover % model.threads));
    }
    std::reverse(trace.begin(), trace.end());
    return trace;
}

}  // namespace

ModelVerdict explore(const ProtocolModel& model) {
    const Machine machine(model);
    Visited visited(machine.state_bytes());
    std::vector<Byte> state(static_cast<std::size_t>(machine.state_bytes()));
    machine.start(state.data());
    visited.add(state.data(), 0, 0);
    ModelVerdict verdict;
    std::uint32_t at = 0;
    for (; at < visited.size() && verdict.violation.empty(); ++at) {
        bool moved = false;
        for (int mover = 0; mover < model.num_ranks * model.threads && verdict.violation.empty(); ++mover) {
            std::copy_n(visited.state(at), state.size(), state.begin());
            const int rank = mover / model.threads;
            const int thread = mover % model.threads;
            if (machine.advance(state.data(), rank, thread, verdict.violation)) {
                moved = true;
                visited.add(state.data(), at, static_cast<Byte>(mover));
            }
        }
        std::copy_n(visited.state(at), state.size(), state.begin());
        if (!moved && !machine.finished(state.data())) {
            verdict.violation = "deadlock: no thread can go on";
        }
    }
    verdict.states = static_cast<std::int64_t>(visited.size());
    if (!verdict.violation.empty()) {
        verdict.trace = trace_to(model, machine, visited, at - 1);
    }
    return verdict;
}

}  // namespace megamoe::moe
