// Opens an engine on a persistent store.
#pragma once

#include "flowfabric/engine.h"

namespace flowfabric::cli {

// For the help of a command that uses it.
inline constexpr const char* kSecretHelp =
    "Environment: FF_WAITPOINT_HMAC_SECRET, the secret that signs waitpoint tokens, in hex, or\n"
    "FF_WAITPOINT_HMAC_SECRET_FILE, a file that holds it. Without either, the store's own is used.";

// Takes the secret for waitpoint tokens from FF_WAITPOINT_HMAC_SECRET, or else from the file that
// FF_WAITPOINT_HMAC_SECRET_FILE names. Notices go to standard error.
Result<Engine> open_engine(const std::string& url, EngineOptions options = {});

}  // namespace flowfabric::cli
