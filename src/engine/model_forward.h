// The V4 model behind the engine's port: each rank gets its compute threads, its MoE operator and its forward.
#pragma once

#include <memory>

#include "base/result.h"
#include "config/engine_config.h"
#include "engine/forward_port.h"
#include "model/loaded_model.h"

namespace megamoe::engine {

// Error kInvalidArgument: config.isa is unknown or more than this machine has
[[nodiscard]] Result<std::shared_ptr<const ForwardFactory>> make_forward_factory(
    const EngineConfig& config, std::shared_ptr<const model::LoadedModel> model);

}  // namespace megamoe::engine
