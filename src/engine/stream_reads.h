// Which read of output streams answers which request.
#pragma once

#include "engine/readers.h"
#include "engine/watchers.h"

namespace flowfabric::engine {

Result<StreamPage> answer(Readers& readers, const ReadStream& request);
Result<OutputPage> answer(Readers& readers, const ReadOutput& request);
Result<std::optional<SummaryDocument>> answer(Readers& readers, const ReadSummary& request);
Result<std::vector<StreamInfo>> answer(Readers& readers, const ListStreams& request);

// Answers now, or on a thread of the engine as soon as there is something.
void tail(Readers& readers, Watchers& watchers, TailStream request,
          std::function<void(Result<StreamPage>)> answer);

}  // namespace flowfabric::engine
