// All operations as types, with the definitions of those that change the store (core/operations.def is the
// list).
#pragma once

#include "core/operation.h"
#include "flowfabric/engine.h"

namespace flowfabric::core {

#define FLOWFABRIC_WRITE(Request) \
  template <>                     \
  const OperationDefinition<Request>& definition_of<Request>();
#include "core/operations.def"

#define FLOWFABRIC_WRITE(Request) , Request
using Writes = boost::mp11::mp_pop_front<boost::mp11::mp_list<void
#include "core/operations.def"
                                                              >>;

#define FLOWFABRIC_READ(Request) , Request
using Reads = boost::mp11::mp_pop_front<boost::mp11::mp_list<void
#include "core/operations.def"
                                                             >>;

}  // namespace flowfabric::core
