#include "engine/serve.h"

namespace flowfabric {

#define FLOWFABRIC_WRITE FLOWFABRIC_INSTANTIATE
#define FLOWFABRIC_CALL FLOWFABRIC_INSTANTIATE
#include "core/operations.def"

}  // namespace flowfabric
