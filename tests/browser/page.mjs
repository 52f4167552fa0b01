// Tools of a stranger's page: they run in the browser, which loads them from the stranger's server (stranger.mjs).

export const lair = new URL(import.meta.url).origin;
export const redirected = (url, status = 307) =>
  `${lair}/redirect?status=${status}&to=${encodeURIComponent(url)}`;

// The longest wait for an event that may never come. A refused attempt never waits that long.
let patience_ms = 20_000;
export const setPatience = (ms) => (patience_ms = ms);

// Waits for the first of these events. Returns it, with the result of `look` at that moment.
export function first(source, events, look = () => undefined) {
  return new Promise((done) => {
    const end = (event) => done([event, look()]);
    for (const name of events) source.addEventListener(name, () => end(name));
    setTimeout(end, patience_ms, 'silence');
  });
}

// Every answer has an id of its own, which tells nothing.
const withoutId = (text) => text.replace(/"request_id":"[^"]*"/, '');

// A failure is an observation, too.
export async function observe(run) {
  try {
    return await run();
  } catch (error) {
    return error.name;
  }
}

async function read(response) {
  const headers = [...response.headers].filter(([name]) => name !== 'x-request-id');
  return [response.type, response.status, response.statusText, headers, withoutId(await response.text())];
}
export const fetched = (url, options) => observe(async () => read(await fetch(url, options)));

export function requested(method, url, { isAsync = true, body = null } = {}) {
  return observe(async () => {
    const request = new XMLHttpRequest();
    request.open(method, url, isAsync);
    const end = isAsync && first(request, ['load', 'error']);
    request.send(body);
    return [await end, request.status, withoutId(request.responseText)];
  });
}

// The page's view of another window.
function view(other) {
  try {
    return [other.length, other.location.href === 'about:blank', withoutId(other.document.body.innerText)];
  } catch (error) {
    return [other.length, error.name];
  }
}

// Stays while the page does.
export function append(name, properties) {
  const made = Object.assign(document.createElement(name), properties);
  document.body.append(made);
  return made;
}

export async function element(name, properties, look = () => undefined) {
  const made = Object.assign(document.createElement(name), properties);
  const end = first(made, ['load', 'error', 'loadedmetadata'], () => look(made));
  document.body.append(made);
  const visible = await end;
  made.remove();
  return visible;
}

export const frame = (properties) => element('iframe', properties, (made) => view(made.contentWindow));

// A frame that `open` fills.
export async function filledFrame(open) {
  const made = append('iframe', { name: `frame-${Math.random()}` });
  const end = first(made, ['load'], () => view(made.contentWindow));
  open(made.name);
  const visible = await end;
  made.remove();
  return visible;
}

// A window that `open` fills, once it has left the empty page that it begins with.
export async function filledWindow(open) {
  const name = `window-${Math.random()}`;
  const other = window.open('', name);
  const isEmpty = () => {
    try {
      return other.location.href === 'about:blank' || other.document.readyState !== 'complete';
    } catch {
      return false;
    }
  };
  open(name, other);
  for (const begin = performance.now(); isEmpty() && performance.now() - begin < patience_ms; ) {
    await new Promise((done) => setTimeout(done, 10));
  }
  const visible = view(other);
  other.close();
  return visible;
}

export function submitForm(properties, fields = []) {
  const form = append('form', properties);
  for (const [name, value] of fields) {
    form.append(Object.assign(document.createElement('input'), { type: 'hidden', name, value }));
  }
  form.submit();
  form.remove();
}

// A frame with an opaque origin, which browsers send as `null`. It runs the script and returns what `answer`
// gets.
export function sandboxed(script) {
  return new Promise((done) => {
    const made = append('iframe', {
      sandbox: 'allow-scripts allow-forms',
      srcdoc: `<body><script type="module">
        const answer = (value) => parent.postMessage(value, '*');
        ${script}</script>`,
    });
    addEventListener('message', ({ source, data }) => source === made.contentWindow && done(data));
    setTimeout(done, patience_ms, 'silence');
  });
}

// Runs the script in a worker and returns what `answer` gets.
export function inWorker(script) {
  return observe(async () => {
    const text = `const answer = (value) => postMessage(value); (async () => { ${script} })()
      .catch((error) => answer(error.name));`;
    const worker = new Worker(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })));
    return new Promise((done) => {
      worker.onmessage = ({ data }) => done(data);
      worker.onerror = () => done('error');
    }).finally(() => worker.terminate());
  });
}

// The view that the stranger's service worker gets of an answer.
export function inServiceWorker(url, options) {
  return observe(async () => {
    await navigator.serviceWorker.register('/service-worker.js');
    const { active } = await navigator.serviceWorker.ready;
    const { port1, port2 } = new MessageChannel();
    const answer = new Promise((done) => (port1.onmessage = ({ data }) => done(data)));
    active.postMessage({ url, options }, [port2]);
    return answer;
  });
}

export function streamed(source, events) {
  return first(source, events, () => source.readyState).finally(() => source.close());
}
