// The server of a stranger: it serves the pages that try things, and leads browsers on to other servers.
import { readFile } from 'node:fs/promises';
import http from 'node:http';

const serviceWorker = `
  onmessage = async ({ data: { url, options }, ports: [port] }) => {
    try {
      const got = await fetch(url, options);
      port.postMessage([got.type, got.status, await got.text()]);
    } catch (error) {
      port.postMessage(error.name);
    }
  };`;

const pages = {
  '/': () => ['text/html', '<!doctype html><title>Free money</title><body>'],
  '/service-worker.js': () => ['text/javascript', serviceWorker],
  // A page that breaks its own policy, and has that reported to an address of its choice.
  '/reports': () => ['text/html', '<!doctype html><script>"not allowed here";</script>'],
};
for (const name of ['page', 'reads', 'changes']) {
  const text = await readFile(new URL(`${name}.mjs`, import.meta.url), 'utf8');
  pages[`/${name}.mjs`] = () => ['text/javascript', text];
}

function answer(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://stranger');
  // To its own server it lets every page come.
  const headers = {
    'access-control-allow-origin': request.headers.origin ?? '*',
    'access-control-allow-headers': 'content-type',
    'access-control-allow-methods': '*',
  };
  if (pathname === '/redirect' && request.method !== 'OPTIONS') {
    headers.location = searchParams.get('to');
    return response.writeHead(Number(searchParams.get('status')), headers).end();
  }
  if (pathname === '/reports') {
    headers['content-security-policy'] = `script-src 'none'; report-uri ${searchParams.get('to')}`;
  }
  const [type, text] = pages[pathname]?.() ?? ['text/plain', ''];
  response.writeHead(200, { ...headers, 'content-type': type }).end(text);
}

export async function startStranger() {
  const server = http.createServer(answer);
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    port: server.address().port,
    stop: () => new Promise((done) => {
      server.close(done);
      server.closeAllConnections();
    }),
  };
}
