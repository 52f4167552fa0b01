// A server in use, and all that can be read of it.

const budget = '550e8400-e29b-41d4-a716-446655440000';
const quota = '9a1de5f0-0c2b-4f57-8d0e-5a3b7c9d1e2f';

async function submit(server, kind) {
  const { Created } = await server.call('POST', '/v1/executions', { execution_kind: kind, input: { secret: kind } });
  return Created.execution_id;
}

async function claim(server) {
  const { tasks } = await server.call('POST', '/v1/tasks/claim', { worker_id: 'worker' });
  return { execution_id: tasks[0].execution_id, lease: tasks[0].lease };
}

// Something of everything, none of which changes by itself. Returns the ids.
export async function fill(server) {
  const ended = await submit(server, 'ended');
  await server.call('POST', '/v1/tasks/complete', { ...(await claim(server)), result: { secret: 'of the ended' } });
  const suspended = await submit(server, 'suspended');
  const { waitpoints } = await server.call('POST', '/v1/tasks/suspend', {
    ...(await claim(server)),
    reason_code: 'waiting_for_approval',
    resume_condition: { Single: { waitpoint_key: 'approval', matcher: { ByName: 'approved' } } },
  });
  const waiting = await submit(server, 'waiting');
  const { flow_id: flow } = await server.call('POST', '/v1/flows/submit', {
    flow_kind: 'pair',
    nodes: [{ name: 'a', execution_kind: 'a' }, { name: 'b', execution_kind: 'b' }],
    edges: [{ from: 'a', to: 'b' }],
  });
  const { edges } = await server.call('GET', `/v1/flows/${flow}/graph`);
  await server.call('POST', '/v1/budgets', {
    budget_id: budget, scope_type: 'lane', scope_id: 'default', enforcement_mode: 'strict', on_hard_limit: 'fail',
    on_soft_limit: 'warn', reset_interval_ms: 86_400_000, dimensions: ['tokens'], hard_limits: [1000],
    soft_limits: [800],
  });
  await server.call('POST', '/v1/quotas', {
    quota_policy_id: quota, window_seconds: 60, max_requests_per_window: 100, max_concurrent: 10,
  });
  await server.call('PUT', '/v1/workers/worker-1', {
    worker_id: 'worker', lanes: ['default'], capabilities: [], liveness_ttl_ms: 3_600_000,
  });
  const { operation_id: operation } = await server.call('POST', '/v1/operations', {
    action: 'cancel', filter: { lane: 'nowhere' },
  });
  return {
    ended, suspended, waiting, flow, budget, quota, operation,
    waitpoint: waitpoints[0].waitpoint_id, waitpointToken: waitpoints[0].token, edge: edges[0].edge_id,
  };
}

// The addresses of all routes that read, of everything that `fill` has made.
export async function addresses(server, ids) {
  const { paths } = await server.call('GET', '/openapi.json');
  return Object.entries(paths).filter(([, methods]) => methods.get).flatMap(([path]) => {
    const filled = path.replace('/flows/{id}', `/flows/${ids.flow}`).replace('/budgets/{id}', `/budgets/${ids.budget}`)
      .replace('/quotas/{id}', `/quotas/${ids.quota}`).replace('/operations/{id}', `/operations/${ids.operation}`)
      .replace('{waitpoint_id}', ids.waitpoint).replace('{edge_id}', ids.edge).replace('{idx}', '0');
    if (!filled.includes('{')) return [filled];
    return [ids.ended, ids.suspended, ids.waiting].map((id) => filled.replace('{id}', id));
  });
}

// All that the server can be asked for, except that which depends on the time.
export async function contents(server, ids) {
  const all = {};
  for (const path of await addresses(server, ids)) {
    if (!path.startsWith('/v1/') || /\/(overview|live|tail|wait)$/.test(path)) continue;
    const isStream = path === '/v1/events';
    const { status, text } = await server.send({ path: isStream ? `${path}?after=0&follow=false` : path });
    const lasting = isStream ? text.match(/^data: .*$/gm).sort() : text.replace(/"request_id":"[^"]*"/, '');
    all[path] = `${status} ${lasting}`;
  }
  return all;
}
