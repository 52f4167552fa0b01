// The entry of libFuzzer; FF_FUZZ_TARGET is the function of targets.h to call.
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  flowfabric::fuzz::FF_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}

// OpenSSL keeps something for each thread until it ends, where the leak checker does not look.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcrypto\n";
}
