// Which read of suspensions answers which request.
#pragma once

#include "engine/readers.h"

namespace flowfabric::engine {

Result<WaitpointKids> answer(Readers& readers, const ListWaitpointKids& request);
Result<WaitpointPage> answer(Readers& readers, const ListPendingWaitpoints& request);
Result<std::optional<std::string>> answer(Readers& readers, const ReadWaitpointToken& request);
Result<SuspensionView> answer(Readers& readers, const DescribeSuspension& request);
Result<SuspendedPage> answer(Readers& readers, const ListSuspended& request);
Result<std::vector<ResumeSignal>> answer(Readers& readers, const ObserveSignals& request);

}  // namespace flowfabric::engine
