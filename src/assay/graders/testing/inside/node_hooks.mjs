// The same hooks for a node whose module hooks run on a thread of their own.
import parts from './node_hooks.cjs';

let own;

export function initialize(settings) {
  own = parts.hooks(settings);
}

export const resolve = (name, context, next) => own.resolve(name, context, next);
export const load = (url, context, next) => own.load(url, context, next);
