// All ways in which a page can ask for something. Each gets an address and says what the page can see of the answer: a
// page that can read anything sees a difference between addresses that are answered differently.
//
// `to` says to which servers browsers send the request: to `any`; to the page's `own` only, because to others they
// ask first and are refused, or refuse by themselves; or to `foreign` ones only.
import {
  element, fetched, filledFrame, filledWindow, first, frame, inServiceWorker, inWorker, observe, redirected, requested,
  sandboxed, streamed, submitForm,
} from './page.mjs';

const text = JSON.stringify;

async function sheetRules(properties) {
  return element('link', { rel: 'stylesheet', ...properties }, ({ sheet }) => {
    try {
      return sheet?.cssRules.length;
    } catch (error) {
      return error.name;
    }
  });
}

// With the errors that a script causes which is no script.
async function script(properties) {
  const errors = [];
  const listen = ({ message, lineno, colno }) => errors.push([message, lineno, colno]);
  addEventListener('error', listen);
  const visible = await element('script', properties);
  removeEventListener('error', listen);
  return [visible, errors];
}

// The browser's notes about a request, which it makes in its own time.
async function noted(url) {
  await fetched(url, { mode: 'no-cors' });
  const found = new EventTarget();
  let entry = {};
  const observer = new PerformanceObserver((list) => {
    entry = list.getEntries().find(({ name }) => name === new URL(url).href) ?? entry;
    if (entry.name) found.dispatchEvent(new Event('note'));
  });
  observer.observe({ type: 'resource', buffered: true });
  await first(found, ['note']);
  const { responseStatus, transferSize, encodedBodySize, decodedBodySize, contentType } = entry;
  return [responseStatus, transferSize, encodedBodySize, decodedBodySize, contentType];
}

async function cached(url) {
  return observe(async () => {
    const cache = await caches.open('attempts');
    await cache.add(new Request(url, { mode: 'no-cors' }));
    const kept = await cache.match(url);
    return [kept.type, kept.status];
  });
}

export const reads = [
  { name: 'fetch', run: (url) => fetched(url) },
  { name: 'fetch, no-cors', run: (url) => fetched(url, { mode: 'no-cors' }) },
  { name: 'fetch, same-origin', to: 'own', run: (url) => fetched(url, { mode: 'same-origin' }) },
  { name: 'fetch, with credentials', run: (url) => fetched(url, { credentials: 'include' }) },
  { name: 'fetch, without referrer', run: (url) => fetched(url, { referrerPolicy: 'no-referrer' }) },
  { name: 'fetch, as JSON', to: 'own',
    run: (url) => fetched(url, { headers: { 'content-type': 'application/json' } }) },
  { name: 'fetch, with a token that is guessed', to: 'own',
    run: (url) => fetched(url, { headers: { authorization: 'Bearer 0123456789abcdef' } }) },
  { name: 'fetch, HEAD', method: 'HEAD', run: (url) => fetched(url, { method: 'HEAD' }) },
  { name: 'fetch, redirects not followed', run: (url) => fetched(url, { redirect: 'manual' }) },
  { name: 'fetch, redirected', run: (url) => fetched(redirected(url)) },
  { name: 'fetch, redirected, no-cors', run: (url) => fetched(redirected(url), { mode: 'no-cors' }) },
  { name: 'fetch, kept alive', run: (url) => fetched(url, { keepalive: true }) },
  { name: 'what the browser notes of a fetch', run: noted },
  { name: 'XMLHttpRequest', run: (url) => requested('GET', url) },
  { name: 'XMLHttpRequest, synchronous', run: (url) => requested('GET', url, { isAsync: false }) },
  { name: 'cache', to: 'foreign', run: cached },
  { name: 'worker, fetch', run: (url) => inWorker(`const got = await fetch(${text(url)}); answer(got.status);`) },
  { name: 'worker, importScripts', run: (url) => inWorker(`importScripts(${text(url)}); answer('ran');`) },
  { name: 'worker, its script', to: 'own', run: (url) => observe(() => first(new Worker(url), ['error'])) },
  { name: 'service worker, fetch', to: 'foreign', run: (url) => inServiceWorker(url) },
  { name: 'service worker, fetch, no-cors', to: 'foreign', run: (url) => inServiceWorker(url, { mode: 'no-cors' }) },
  { name: 'sandboxed frame, fetch', run: (url) =>
    sandboxed(`fetch(${text(url)}).then((got) => answer(got.status), (error) => answer(error.name));`) },
  { name: 'image', run: (src) => element('img', { src }, (made) => [made.naturalWidth, made.naturalHeight]) },
  { name: 'image, by CORS', run: (src) => element('img', { crossOrigin: 'anonymous', src }) },
  { name: 'image, redirected', run: (url) => element('img', { src: redirected(url) }) },
  { name: 'script', run: (src) => script({ src }) },
  { name: 'script, by CORS', run: (src) => script({ crossOrigin: 'anonymous', src }) },
  { name: 'script, module', run: (src) => script({ type: 'module', src }) },
  { name: 'import()', run: (url) => observe(async () => Object.keys(await import(url))) },
  { name: 'style sheet', run: (href) => sheetRules({ href }) },
  { name: 'style sheet, by CORS', run: (href) => sheetRules({ crossOrigin: 'anonymous', href }) },
  { name: 'style sheet, imported', run: (url) => element('style', { textContent: `@import url("${url}");` }) },
  { name: 'font', run: (url) => observe(async () => (await new FontFace('font', `url("${url}")`).load()).status) },
  { name: 'prefetch', run: (href) => element('link', { rel: 'prefetch', href }) },
  { name: 'preload', run: (href) => element('link', { rel: 'preload', as: 'script', href }) },
  { name: 'modulepreload', run: (href) => element('link', { rel: 'modulepreload', href }) },
  { name: 'video', run: (src) => element('video', { src }, (made) => made.error?.code) },
  { name: 'audio', run: (src) => element('audio', { src }, (made) => made.error?.code) },
  { name: 'object', run: (data) => element('object', { data }, (made) => made.contentDocument?.body?.innerText) },
  { name: 'object, with a type', run: (data) => element('object', { type: 'text/plain', data }) },
  { name: 'object, redirected', run: (url) => element('object', { data: redirected(url) }) },
  { name: 'embed', run: (src) => element('embed', { src }) },
  { name: 'frame', run: (src) => frame({ src }) },
  { name: 'frame, sandboxed', run: (src) => frame({ sandbox: '', src }) },
  { name: 'frame, redirected', run: (url) => frame({ src: redirected(url) }) },
  { name: 'frame, by a form', run: (action) => filledFrame((target) => submitForm({ action, target })) },
  { name: 'frame, by its location', run: (url) => filledFrame((name) => (window.frames[name].location = url)) },
  { name: 'window', run: (url) => filledWindow((name) => window.open(url, name)) },
  { name: 'window, by its location', run: (url) => filledWindow((name, other) => (other.location = url)) },
  { name: 'window, by a form', run: (action) => filledWindow((target) => submitForm({ action, target })) },
  { name: 'window, redirected', run: (url) => filledWindow((name) => window.open(redirected(url, 302), name)) },
  { name: 'event source', run: (url) => streamed(new EventSource(url), ['open', 'message', 'error']) },
  { name: 'web socket', run: (url) => streamed(new WebSocket(url.replace('http', 'ws')), ['open', 'error']) },
];
