#include "engine/figures.h"
#include "engine/flow_reads.h"
#include "engine/history.h"
#include "engine/limit_reads.h"
#include "engine/listing.h"
#include "engine/reads.h"
#include "engine/serve.h"
#include "engine/stream_reads.h"
#include "engine/suspension_reads.h"

namespace flowfabric {

#define FLOWFABRIC_READ FLOWFABRIC_INSTANTIATE
#include "core/operations.def"

}  // namespace flowfabric
