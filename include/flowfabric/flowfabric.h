// The whole public surface: what an embedding program includes.
#pragma once

#include "flowfabric/engine.h"
#include "flowfabric/error.h"
#include "flowfabric/ids.h"
#include "flowfabric/operations.h"
#include "flowfabric/policy.h"
#include "flowfabric/state.h"
#include "flowfabric/version.h"
