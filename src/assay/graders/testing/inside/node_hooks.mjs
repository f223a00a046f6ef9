// The same hooks for a node whose module hooks run on a thread of their own.
import parts from './node_hooks.cjs';

let own;

export function initialize(settings) {
  const { port } = settings;
  const waiting = new Map();
  port?.on('message', ({ url, source }) => {
    waiting.get(url)?.(source);
    waiting.delete(url);
  });
  const ask = (url) =>
    new Promise((resolve) => {
      waiting.set(url, resolve);
      port.postMessage(url);
    });
  own = parts.hooks({ ...settings, ask: port && ask });
}

export const resolve = (name, context, next) => own.resolve(name, context, next);
export const load = (url, context, next) => own.load(url, context, next);
