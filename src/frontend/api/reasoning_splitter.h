// Separates the reasoning of a thinking answer from its content, while the text arrives in pieces.
#pragma once

#include <string>
#include <string_view>

namespace megamoe::api {

// The prompt has opened the reasoning, so the text begins inside; the first "</think>" ends it. Without one, all of the
// text is reasoning. At most a part of that tag is held back.
// Same  the concatenated output does not depend on where the text is cut
// Spec  serving spec, 9.8
class ReasoningSplitter {
  public:
    struct Output {
        std::string reasoning;
        std::string content;
    };

    // `inside` false: all is content, tags included.
    explicit ReasoningSplitter(bool inside) : inside_(inside) {}

    Output push(std::string_view piece);
    // The end: what was held back.
    Output flush();
    bool is_inside() const { return inside_; }

  private:
    bool inside_;
    std::string held_;  // a proper prefix of the tag
};

}  // namespace megamoe::api
