// `flowfabric serve` as a process of its own, on a free port, with a store in a folder of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const program = process.env.FLOWFABRIC_PROGRAM;
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('FF_')));
const patience_ms = 30_000;

export class Server {
  // All that it has answered, as its access log has it: without OPTIONS and /metrics.
  requests = [];
  #said = [];

  static async start({ token, settings = [] } = {}) {
    const server = new Server();
    await server.#start(token, settings).catch(async (error) => {
      await server.stop();
      throw error;
    });
    return server;
  }

  async #start(token, settings) {
    this.token = token;
    this.folder = await mkdtemp(join(tmpdir(), 'flowfabric-browser-'));
    const serve = ['serve', '--store', `sqlite:${join(this.folder, 'store.db')}`, '--listen', '127.0.0.1:0'];
    // It dies with the test.
    this.process = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...serve, '--log-access', ...settings], {
      cwd: this.folder,
      env: { ...environment, ...(token ? { FF_API_TOKEN: token } : {}) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    createInterface({ input: this.process.stderr }).on('line', (line) => this.#hear(line));
    await this.#until('it listens', () => this.port);
    await this.#until('it is ready', async () => (await this.send({ path: '/readyz' })).status === 200);
  }

  #hear(line) {
    this.#said.push(line);
    if (line.includes('"log":"access"')) {
      const { method, path, status } = JSON.parse(line);
      this.requests.push({ method, path: decodeURIComponent(path), status });
    }
    this.port ??= line.match(/ listens on http:\/\/127\.0\.0\.1:(\d+)/)?.[1];
  }

  async #until(what, isSo) {
    for (const end = Date.now() + patience_ms; !(await isSo()); await sleep(5)) {
      if (Date.now() < end) continue;
      throw new Error(`not within ${patience_ms} ms: ${what}; it said\n${this.#said.slice(-5).join('\n')}`);
    }
  }

  // The answers of one address after the first `since` of all.
  asked(since, method, path) {
    return this.requests.slice(since).filter((one) => one.method === method && one.path === path);
  }
  async untilAsked(since, method, path) {
    await this.#until(`${method} ${path}`, () => this.asked(since, method, path).length > 0);
  }

  // A request like curl's: nothing in it says that a browser has sent it.
  send({ method = 'GET', path, type, body, token = this.token }) {
    const headers = {
      ...(type ? { 'content-type': type } : {}),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
    };
    return new Promise((done, fail) => {
      const to = { host: '127.0.0.1', port: this.port, path: encodeURI(path), agent: false };
      const request = http.request({ ...to, method, headers });
      request.on('error', fail).on('response', async (response) => {
        let text = '';
        for await (const part of response.setEncoding('utf8')) text += part;
        done({ status: response.statusCode, text });
      });
      request.end(body);
    });
  }

  async call(method, path, body) {
    const { status, text } = await this.send({ method, path, type: 'application/json', body: JSON.stringify(body) });
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return text && JSON.parse(text);
  }

  async stop() {
    const hasEnded = this.process.exitCode !== null || this.process.signalCode !== null;
    const end = hasEnded || once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await end;
    await rm(this.folder, { recursive: true });
  }
}
