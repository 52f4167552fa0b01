#include "support/bulk_fixture.h"

namespace flowfabric::tests {

template class Bulk<EngineTest>;
template class Bulk<ReopenTest>;

}  // namespace flowfabric::tests
