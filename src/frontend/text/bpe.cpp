#include "frontend/text/bpe.h"

#include <cstddef>
#include <queue>
#include <tuple>

namespace megamoe::text {
namespace {

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

constexpr std::int32_t kNone = -1;

// The piece as a linked list: a merge takes its right symbol out.
struct Symbol {
    std::int32_t id = 0;  // kNone: taken out
    std::int32_t prev = kNone;
    std::int32_t next = kNone;
};

struct Candidate {
    std::int32_t rank = 0;
    std::int32_t left = 0;  // index of the left symbol

    // The top of the queue is the lowest rank, and of equal ones the leftmost.
    bool operator<(const Candidate& other) const { return std::tie(rank, left) > std::tie(other.rank, other.left); }
};

}  // namespace

Bpe::Bpe(const std::array<std::int32_t, 256>& byte_ids, const std::vector<MergeRule>& merges,
         const std::vector<std::string>& tokens)
    : byte_ids_(byte_ids) {
    merges_.reserve(merges.size());
    std::int32_t rank = 0;
    for (const MergeRule& rule : merges) {
        merges_.insert_or_assign(pair_key(rule.left, rule.right), Merge{rank++, rule.result});
    }
    std::vector<std::int32_t> ids;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
        if (tokens[id].empty()) {
            continue;
        }
        ids.clear();
        merge(tokens[id], ids);
        if (ids.size() == 1 && ids.front() == static_cast<std::int32_t>(id)) {
            whole_pieces_.emplace(tokens[id], static_cast<std::int32_t>(id));
        }
    }
}

void Bpe::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
    if (const auto whole = whole_pieces_.find(piece); whole != whole_pieces_.end()) {
        ids.push_back(whole->second);
    } else {
        merge(piece, ids);
    }
}

const Bpe::Merge* Bpe::find_merge(std::int32_t left, std::int32_t right) const {
    const auto found = merges_.find(pair_key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::merge(std::string_view piece, std::vector<std::int32_t>& ids) const {
    const auto count = static_cast<std::int32_t>(piece.size());
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    for (std::int32_t i = 0; i < count; ++i) {
        const auto byte = static_cast<unsigned char>(piece[static_cast<std::size_t>(i)]);
        symbols.push_back({byte_ids_[byte], i - 1, i + 1 < count ? i + 1 : kNone});
    }
    const auto at = [&](std::int32_t index) -> Symbol& { return symbols[static_cast<std::size_t>(index)]; };

    std::priority_queue<Candidate> queue;
    const auto propose = [&](std::int32_t left) {
        if (left == kNone || at(left).next == kNone) {
            return;
        }
        if (const Merge* merge = find_merge(at(left).id, at(at(left).next).id)) {
            queue.push({merge->rank, left});
        }
    };
    for (std::int32_t i = 0; i + 1 < count; ++i) {
        propose(i);
    }
    while (!queue.empty()) {
        const Candidate best = queue.top();
        queue.pop();
        Symbol& left = at(best.left);
        if (left.id == kNone || left.next == kNone) {
            continue;
        }
        // A merge beside it since then has made another pair of it.
        const Merge* merge = find_merge(left.id, at(left.next).id);
        if (merge == nullptr || merge->rank != best.rank) {
            continue;
        }
        Symbol& right = at(left.next);
        left.id = merge->result;
        left.next = right.next;
        right.id = kNone;
        if (left.next != kNone) {
            at(left.next).prev = best.left;
        }
        propose(left.prev);
        propose(best.left);
    }
    for (std::int32_t i = 0; i != kNone; i = at(i).next) {
        ids.push_back(at(i).id);
    }
}

}  // namespace megamoe::text
