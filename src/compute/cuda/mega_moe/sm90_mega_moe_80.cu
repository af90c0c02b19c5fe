#include "compute/cuda/mega_moe/instantiate.cuh"

MM_INSTANTIATE_MEGA_MOE(80, 2)
