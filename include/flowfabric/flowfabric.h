// The whole public surface: what an embedding program includes.
#pragma once

#include "flowfabric/check.h"
#include "flowfabric/engine.h"
#include "flowfabric/error.h"
#include "flowfabric/flows.h"
#include "flowfabric/grants.h"
#include "flowfabric/handle.h"
#include "flowfabric/ids.h"
#include "flowfabric/listing.h"
#include "flowfabric/operations.h"
#include "flowfabric/operators.h"
#include "flowfabric/policy.h"
#include "flowfabric/registry.h"
#include "flowfabric/scanner_filter.h"
#include "flowfabric/state.h"
#include "flowfabric/suspension.h"
#include "flowfabric/version.h"
