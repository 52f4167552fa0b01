// A page in the browser, and the server that it is after.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

// From the folder where it was installed, which is the one that the test runs in.
const { chromium } = createRequire(`${process.cwd()}/`)('playwright-core');

export function launch(stranger) {
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync',
      '--host-resolver-rules=MAP evil.example 127.0.0.1, MAP localhost 127.0.0.1',
      // As if the stranger had a certificate: browsers let pages with one do more.
      `--unsafely-treat-insecure-origin-as-secure=http://evil.example:${stranger.port}`,
    ],
  });
}

// The pages, and by which name each calls the server. The name of the last one led to the stranger when the page was
// loaded, and leads to the server now: to the browser, both are one origin.
export const pages = {
  'of another site': { host: 'evil.example', calls: '127.0.0.1' },
  'of another port of localhost': { host: 'localhost', calls: 'localhost' },
  'of another port of 127.0.0.1': { host: '127.0.0.1', calls: '127.0.0.1' },
  'whose name was rebound': { host: 'evil.example', calls: 'evil.example', isRebound: true },
};

const slug = (name) => name.toLowerCase().replace(/[^a-z]+/g, '-');

// The request that the server would get.
export function requestOf({ name, request }, ids) {
  const names = { lane: slug(name), budget: ids.budget, execution: ids.waiting };
  return { ...request, path: request.path.replace(/{(\w+)}/, (_, key) => names[key]) };
}

export class Visit {
  constructor({ browser, stranger, server, ids, page }) {
    Object.assign(this, { browser, server, ids, page });
    this.url = `http://${page.calls}:${server.port}`;
    this.lair = `http://${page.isRebound ? '127.0.0.1' : page.host}:${stranger.port}`;
  }

  // Opens the page, runs what is given, and closes it.
  static async during(what, run) {
    const visit = new Visit(what);
    const context = await visit.browser.newContext({ viewport: { width: 100, height: 100 } });  // quickly drawn
    try {
      visit.tab = await context.newPage();
      await visit.tab.goto(visit.page.isRebound ? `${visit.url}/v1/version` : visit.lair);
      return await run(visit);
    } finally {
      await context.close();
    }
  }

  // The page's view when it tries this on each address.
  #attempt(kind, { name }, targets, patience_ms) {
    return this.tab.evaluate(async ({ lair, kind, name, targets, patience_ms }) => {
      const { setPatience } = await import(`${lair}/page.mjs`);
      const attempts = (await import(`${lair}/${kind}.mjs`))[kind];
      const { run } = attempts.find((one) => one.name === name);
      setPatience(patience_ms);
      const views = [];
      for (const target of targets) views.push(JSON.stringify(await run(target)) ?? 'nothing');
      return views;
    }, { lair: this.lair, kind, name, targets, patience_ms });
  }

  // The statuses with which the server has answered. Browsers do send what they are known to send, and nothing else.
  async #statuses(attempt, since, method, path) {
    const { to = 'any' } = attempt;
    const isOwn = this.page.isRebound || this.page.isListed;
    const isSent = to === 'any' || to === (isOwn ? 'own' : 'foreign');
    if (isSent) await this.server.untilAsked(since, method, path);
    const answers = this.server.asked(since, method, path);
    if (!isSent) assert.deepEqual(answers, [], `${attempt.name} was sent`);
    return answers.map(({ status }) => status);
  }

  // The different views that the page gets of these addresses.
  async read(attempt, paths, patience_ms = 20_000) {
    const since = this.server.requests.length;
    // Another address for each attempt, because browsers keep some answers.
    const urls = paths.map((path) => `${this.url}${path}${path.includes('?') ? '&' : '?'}by=${slug(attempt.name)}`);
    const views = new Set(await this.#attempt('reads', attempt, urls, patience_ms));
    const statuses = new Set();
    for (const path of paths.filter((one) => one !== '/metrics')) {  // which the server does not log
      const found = await this.#statuses(attempt, since, attempt.method ?? 'GET', path.split('?')[0]);
      found.forEach((status) => statuses.add(status));
    }
    return { views: [...views], statuses: [...statuses] };
  }

  async change(attempt) {
    const since = this.server.requests.length;
    const request = requestOf(attempt, this.ids);
    await this.#attempt('changes', attempt, [{ ...request, url: this.url + encodeURI(request.path) }], 20_000);
    return this.#statuses(attempt, since, request.method, request.path);
  }
}
