// Pages of strangers, in a browser on the same machine, can neither read from a server on loopback nor change it.
//
// Reading is seeing a difference. Each way to read is tried on addresses that the server answers differently to those
// who may ask; a page that sees the same each time has learnt nothing. How long an answer takes is not looked at.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { changes } from './changes.mjs';
import { addresses, contents, fill } from './contents.mjs';
import { reads } from './reads.mjs';
import { Server } from './server.mjs';
import { startStranger } from './stranger.mjs';
import { Visit, launch, pages, requestOf } from './visit.mjs';

const token = 'a-token-that-nobody-guesses';
let stranger;
let browser;

before(async () => {
  stranger = await startStranger();
  browser = await launch(stranger);
});
after(async () => {
  await browser?.close();
  await stranger?.stop();
});

// A server in use, for the tests of a suite.
function serving(options) {
  const place = {};
  before(async () => {
    place.server = await Server.start(options());
    place.ids = await fill(place.server);
  });
  after(() => place.server?.stop());
  place.during = (page, run) => Visit.during({ browser, stranger, ...place, page }, run);
  return place;
}

// To those who may ask: 200, 404, 204, and a download.
const different = ({ waiting, ended }) => [
  `/v1/executions/${waiting}`,
  `/v1/executions/${waiting.replace(/.$/, (last) => (last === '0' ? '1' : '0'))}`,
  `/v1/executions/${waiting}/wait?wait_ms=0`,
  `/v1/executions/${ended}/result`,
];

const named = (attempts, names) => names.map((name) => attempts.find((one) => one.name === name));

for (const [door, options, refusal] of [['without a token', {}, 403], ['with a token', { token }, 401]]) {
  describe(`a server ${door}, and a page`, () => {
    const place = serving(() => options);

    for (const [name, page] of Object.entries(pages)) {
      test(`${name}: it reads nothing`, () => place.during(page, async (visit) => {
        const leaks = [];
        for (const attempt of reads) {
          const { views, statuses } = await visit.read(attempt, different(place.ids));
          // Links may be followed: a person sees the answer, the page does not.
          const isLink = attempt.name.startsWith('window') && !page.isRebound && !options.token;
          const isRefused = statuses.every((status) => status === refusal);
          if (views.length === 1 && (isRefused || isLink)) continue;
          leaks.push(`${attempt.name} sees ${views.join(' and ')}: ${statuses}`);
        }
        assert.deepEqual(leaks, []);
      }));

      test(`${name}: it changes nothing`, async () => {
        const before = await contents(place.server, place.ids);
        await place.during(page, async (visit) => {
          const answered = [];
          for (const attempt of changes) {
            const statuses = await visit.change(attempt);
            if (statuses.some((status) => status !== refusal)) answered.push(`${attempt.name}: ${statuses}`);
          }
          assert.deepEqual(answered, []);
        });
        assert.deepEqual(await contents(place.server, place.ids), before);
      });
    }
  });
}

describe('a link of a stranger', () => {
  const place = serving(() => ({}));

  test('shows what it leads to, and the page that has it sees the same wherever it leads', async () => {
    const { server, ids } = place;
    const everywhere = new Set(await addresses(server, { ...ids, waiting: ids.ended, suspended: ids.ended }));
    await place.during(pages['of another site'], async (visit) => {
      const [link] = named(reads, ['window']);
      const { views, statuses } = await visit.read(link, [...everywhere]);
      assert.deepEqual(views, ['[0,"SecurityError"]']);
      assert.ok(statuses.includes(200));
    });
  });
});

describe('signals with a waitpoint\'s token alone', () => {
  const place = serving(() => ({ token, settings: ['--outside-signals-per-minute', '5'] }));  // one at a time

  test('are not held up by a page of a stranger', async () => {
    const { server, ids } = place;
    const path = `/v1/executions/${ids.suspended}/signal`;
    const since = server.requests.length;
    await place.during(pages['of another site'], ({ tab, url }) => tab.evaluate(async (signal) => {
      for (let i = 0; i < 3; ++i) await fetch(signal, { method: 'POST', mode: 'no-cors' });
    }, url + path));
    await server.untilAsked(since, 'POST', path);
    const { waitpoint: waitpoint_id, waitpointToken: waitpoint_token } = ids;
    const body = JSON.stringify({ waitpoint_id, waitpoint_token, signal_name: 'approved' });
    const { status, text } = await server.send({ method: 'POST', path, type: 'application/json', body, token: '' });
    assert.equal(status, 200, text);
  });
});

// The attempts above would be worth nothing if they could not succeed.
describe('those who may do all that', () => {
  const readers = ['fetch', 'fetch, as JSON', 'XMLHttpRequest', 'worker, fetch'];
  const writers = [
    'fetch', 'fetch, bytes', 'fetch, JSON', 'fetch, JSON, to take work', 'fetch, JSON, of the administration',
    'fetch, PUT', 'fetch, DELETE', 'fetch, no-cors', 'XMLHttpRequest', 'beacon', 'beacon, bytes', 'worker',
  ];
  const succeed = async (place, page, { reading, writing }) => {
    const { server, ids } = place;
    const before = await contents(server, ids);
    await place.during(page, async (visit) => {
      for (const attempt of named(reads, reading)) {
        const { views } = await visit.read(attempt, different(ids), 1_000);
        assert.ok(views.length > 1, `${attempt.name} sees only ${views}`);
      }
      for (const attempt of named(changes, writing)) {
        const statuses = await visit.change(attempt);
        assert.ok(statuses.every((status) => status < 300), `${attempt.name}: ${statuses}`);
      }
    });
    const after = await contents(server, ids);
    for (const path of ['/v1/executions', '/v1/lanes', '/v1/budgets', '/v1/admin/waitpoint-kids', '/v1/events']) {
      assert.notEqual(after[path], before[path], path);
    }
  };

  describe('a page whose origin is listed', () => {
    const page = { ...pages['of another port of localhost'], isListed: true };
    const settings = () => ['--cors-origins', `http://localhost:${stranger.port}`];
    const open = serving(() => ({ settings: settings() }));
    test('reads and changes', () => succeed(open, page, { reading: readers, writing: writers }));

    const closed = serving(() => ({ token, settings: settings() }));
    test('does so with the token where there is one', () => closed.during(page, async ({ tab, url }) => {
      const statuses = await tab.evaluate(async ({ url, token }) => {
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
        const body = '{"execution_kind":"welcome"}';
        const got = await fetch(`${url}/v1/executions`, { headers });
        const sent = await fetch(`${url}/v1/executions`, { method: 'POST', headers, body });
        const refused = await fetch(`${url}/v1/executions`);
        return [got.status, sent.status, refused.status];
      }, { url, token });
      assert.deepEqual(statuses, [200, 201, 401]);
    }));
  });

  describe('a page whose name was rebound to a server that answers to every name', () => {
    const place = serving(() => ({ settings: ['--allow-anonymous'] }));
    test('reads and changes', () => succeed(place, pages['whose name was rebound'], {
      reading: [...readers, 'what the browser notes of a fetch', 'script', 'object', 'frame', 'window'],
      writing: [...writers, 'beacon, JSON'],
    }));
  });

  describe('a program on the machine', () => {
    const place = serving(() => ({}));
    test('changes the server with the same requests, except that they must be JSON', async () => {
      const { server, ids } = place;
      const before = await contents(server, ids);
      for (const attempt of changes) {
        const request = requestOf(attempt, ids);
        const { status, text } = await server.send(request);
        if (!request.type || request.type === 'application/json') assert.ok(status < 300, `${attempt.name}: ${text}`);
        else assert.equal(status, 415, attempt.name);
      }
      assert.notDeepEqual(await contents(server, ids), before);
    });
  });
});
