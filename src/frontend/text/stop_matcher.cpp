#include "frontend/text/stop_matcher.h"

namespace megamoe::text {

StopMatcher::StopMatcher(const std::vector<std::string>& stops, bool keep_stop) : nodes_(1), keep_stop_(keep_stop) {
    for (std::size_t i = 0; i < stops.size(); ++i) {
        stop_bytes_.push_back(stops[i].size());
        std::int32_t end = 0;
        for (const char byte : stops[i]) {
            end = add_child(end, byte);
        }
        if (end != 0 && node(end).stop < 0) {
            node(end).stop = static_cast<std::int32_t>(i);
        }
    }
    link_fallbacks();
}

StopMatcher::Output StopMatcher::push(std::string_view piece) {
    Output output;
    for (const char byte : piece) {
        if (stopped_) {
            break;
        }
        state_ = advance(state_, byte);
        held_ += byte;
        const std::int32_t stop = node(state_).stop;
        std::size_t keep = static_cast<std::size_t>(node(state_).depth);
        if (stop >= 0) {
            stopped_ = true;
            output.matched = static_cast<std::size_t>(stop);
            keep = keep_stop_ ? 0 : stop_bytes_[*output.matched];
        }
        const std::size_t safe = held_.size() - keep;
        output.text.append(held_, 0, safe);
        held_.erase(0, safe);
    }
    if (stopped_) {
        held_.clear();
    }
    return output;
}

std::string StopMatcher::flush() {
    state_ = 0;
    return std::exchange(held_, {});
}

std::int32_t StopMatcher::child(std::int32_t parent, char byte) const {
    for (const auto& [label, target] : nodes_[static_cast<std::size_t>(parent)].next) {
        if (label == byte) {
            return target;
        }
    }
    return -1;
}

std::int32_t StopMatcher::add_child(std::int32_t parent, char byte) {
    if (const std::int32_t known = child(parent, byte); known >= 0) {
        return known;
    }
    const auto added = static_cast<std::int32_t>(nodes_.size());
    node(parent).next.emplace_back(byte, added);
    nodes_.push_back({.depth = node(parent).depth + 1, .next = {}});
    return added;
}

std::int32_t StopMatcher::advance(std::int32_t from, char byte) const {
    for (;; from = nodes_[static_cast<std::size_t>(from)].fallback) {
        if (const std::int32_t target = child(from, byte); target >= 0) {
            return target;
        }
        if (from == 0) {
            return 0;
        }
    }
}

// Breadth first: a fallback is shallower than its node, so it is complete before it is used.
void StopMatcher::link_fallbacks() {
    std::vector<std::int32_t> queue{0};
    for (std::size_t done = 0; done < queue.size(); ++done) {
        const std::int32_t parent = queue[done];
        for (const auto& [byte, target] : node(parent).next) {
            Node& linked = node(target);
            linked.fallback = parent == 0 ? 0 : advance(node(parent).fallback, byte);
            if (linked.stop < 0) {
                linked.stop = node(linked.fallback).stop;
            }
            queue.push_back(target);
        }
    }
}

}  // namespace megamoe::text
