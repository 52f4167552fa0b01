// All ways in which a page can send something, each with a request that would change the server. `to` as in reads.mjs.
import {
  append, fetched, filledFrame, filledWindow, inServiceWorker, inWorker, lair, redirected, requested, sandboxed,
  submitForm,
} from './page.mjs';

// {lane} is one of the attempt's own, which is there afterwards if the attempt has succeeded.
const disable = { method: 'POST', path: '/v1/lanes/{lane}/disable' };
const register = { method: 'PUT', path: '/v1/lanes/{lane}' };
const remove = { method: 'DELETE', path: '/v1/budgets/{budget}' };
const withJson = (path, body) => ({ method: 'POST', path, type: 'application/json', body: JSON.stringify(body) });
const create = withJson('/v1/executions', { execution_kind: 'intruder' });
const claim = withJson('/v1/tasks/claim', { worker_id: 'thief' });
const cancel = withJson('/v1/executions/{execution}/cancel', { reason: 'because I can' });
const rotate = withJson('/v1/admin/rotate-waitpoint-secret', { new_kid: 'mine', new_secret_hex: 'ab'.repeat(32) });
// Types that pages may send without asking.
const asText = (request) => ({ ...request, type: 'text/plain' });
const asForm = (request) => ({ ...request, type: 'application/x-www-form-urlencoded', body: 'a=b' });
const asParts = (request) => ({ ...request, type: 'multipart/form-data; boundary=x', body: '--x--\r\n' });

const send = (options) => ({ url, method, type, body }) =>
  fetched(url, { method, body, headers: type ? { 'content-type': type } : {}, ...options });
const sendBlindly = send({ mode: 'no-cors' });
const fields = [['a', 'b']];
// The text of a form is `name=value`: here one that is JSON.
const jsonFields = [['{"execution_kind":"intruder","input":"', '"}']];
const parts = () => {
  const data = new FormData();
  data.append('a', 'b');
  return data;
};
const formIn = (open, type, content) => ({ url }) =>
  open((target) => submitForm({ method: 'POST', action: url, enctype: type, target }, content));
const selfSent = (url) => `<form id="form" method="POST" action="${url}"></form><script>form.submit();</script>`;
const blindly = (url) => `${JSON.stringify(url)}, { method: 'POST', mode: 'no-cors' }`;

export const changes = [
  { name: 'fetch', request: disable, run: send() },
  { name: 'fetch, text', request: asText(create), run: send() },
  { name: 'fetch, form', request: asForm(disable), run: send() },
  { name: 'fetch, multipart', request: asParts(disable),
    run: ({ url }) => fetched(url, { method: 'POST', body: parts() }) },
  { name: 'fetch, bytes', request: disable,
    run: ({ url }) => fetched(url, { method: 'POST', body: new Uint8Array([0x7b, 0x7d]) }) },
  { name: 'fetch, JSON', to: 'own', request: create, run: send() },
  { name: 'fetch, JSON, of the administration', to: 'own', request: rotate, run: send() },
  { name: 'fetch, JSON, to take work', to: 'own', request: claim, run: send() },
  { name: 'fetch, JSON, to cancel', to: 'own', request: cancel, run: send() },
  { name: 'fetch, PUT', to: 'own', request: register, run: send() },
  { name: 'fetch, DELETE', to: 'own', request: remove, run: send() },
  { name: 'fetch, no-cors', request: disable, run: sendBlindly },
  { name: 'fetch, no-cors, text', request: asText(create), run: sendBlindly },
  { name: 'fetch, no-cors, form', request: asForm(disable), run: sendBlindly },
  { name: 'fetch, no-cors, said to be JSON', request: create, run: sendBlindly },
  { name: 'fetch, no-cors, without referrer', request: disable,
    run: send({ mode: 'no-cors', referrerPolicy: 'no-referrer' }) },
  { name: 'fetch, kept alive', request: disable, run: send({ mode: 'no-cors', keepalive: true }) },
  { name: 'fetch, redirected', request: disable, run: ({ url }) => sendBlindly({ ...disable, url: redirected(url) }) },
  { name: 'fetch, redirected for good', request: disable,
    run: ({ url }) => send()({ ...disable, url: redirected(url, 308) }) },
  { name: 'fetch, redirected, JSON', to: 'none', request: create,
    run: (request) => send()({ ...request, url: redirected(request.url) }) },
  { name: 'XMLHttpRequest', request: disable, run: ({ url }) => requested('POST', url) },
  { name: 'XMLHttpRequest, synchronous', request: asText(create),
    run: ({ url, body }) => requested('POST', url, { isAsync: false, body }) },
  { name: 'beacon', request: disable, run: ({ url }) => navigator.sendBeacon(url) },
  { name: 'beacon, text', request: asText(create), run: ({ url, body }) => navigator.sendBeacon(url, body) },
  { name: 'beacon, bytes', request: disable, run: ({ url }) => navigator.sendBeacon(url, new Blob(['{}'])) },
  { name: 'beacon, form', request: asForm(disable),
    run: ({ url, body }) => navigator.sendBeacon(url, new URLSearchParams(body)) },
  { name: 'beacon, multipart', request: asParts(disable), run: ({ url }) => navigator.sendBeacon(url, parts()) },
  { name: 'beacon, JSON', to: 'own', request: create,
    run: ({ url, type, body }) => navigator.sendBeacon(url, new Blob([body], { type })) },
  { name: 'form in a frame', request: asForm(disable), run: formIn(filledFrame, '', fields) },
  { name: 'form in a frame, empty', request: asForm(disable), run: formIn(filledFrame, '', []) },
  { name: 'form in a frame, text', request: asText(create), run: formIn(filledFrame, 'text/plain', jsonFields) },
  { name: 'form in a frame, multipart', request: asParts(disable),
    run: formIn(filledFrame, 'multipart/form-data', fields) },
  { name: 'form in a window', request: asForm(disable), run: formIn(filledWindow, '', fields) },
  { name: 'form in a window, text', request: asText(create), run: formIn(filledWindow, 'text/plain', jsonFields) },
  { name: 'form, redirected', request: asForm(disable),
    run: ({ url }) => formIn(filledFrame, '', fields)({ url: redirected(url) }) },
  { name: 'form, without referrer', request: asForm(disable), run: ({ url }) =>
    append('iframe', { srcdoc: `<meta name="referrer" content="no-referrer">${selfSent(url)}` }) },
  { name: 'form in a sandboxed frame', request: asForm(disable),
    run: ({ url }) => append('iframe', { sandbox: 'allow-scripts allow-forms', srcdoc: selfSent(url) }) },
  { name: 'ping of a link', request: asText(disable), run: ({ url }) => append('a', { ping: url, href: '#' }).click() },
  { name: 'report of a violated policy', request: withJson('/v1/lanes/{lane}/disable', {}),
    run: ({ url }) => append('iframe', { src: `${lair}/reports?to=${encodeURIComponent(url)}` }) },
  { name: 'worker', request: disable, run: ({ url }) => inWorker(`await fetch(${blindly(url)}); answer();`) },
  { name: 'service worker', to: 'foreign', request: disable,
    run: ({ url }) => inServiceWorker(url, { method: 'POST', mode: 'no-cors' }) },
  { name: 'sandboxed frame', request: disable,
    run: ({ url }) => sandboxed(`fetch(${blindly(url)}).finally(() => answer());`) },
];
