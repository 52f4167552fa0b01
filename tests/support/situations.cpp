#include "support/situations.h"

namespace flowfabric::tests {

template class SituationTests<EngineTest>;

}  // namespace flowfabric::tests
