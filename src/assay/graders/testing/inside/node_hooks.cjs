// How `import` finds what is not on disk; for either kind of node's module hooks.
'use strict';

function hooks({ facade, text, sources, root, entry, testCode }) {
  const known = new Map(Object.entries(sources));
  const pattern = new RegExp(testCode);
  const trusted = (url) =>
    url === entry || known.has(url) || (url.startsWith(root) && pattern.test(url.slice(root.length)));
  return {
    resolve(name, context, next) {
      const imported = context.conditions.includes('import');
      const counts = imported && name === 'node:test' && trusted(context.parentURL ?? '');
      if (counts || name === facade) return { url: facade, format: 'module', shortCircuit: true };
      return next(name, context);
    },
    load(url, context, next) {
      if (url === facade) return { format: 'module', source: text, shortCircuit: true };
      const served = known.get(url);
      if (served === undefined || served.format !== 'module') return next(url, context);
      return { ...served, shortCircuit: true };
    },
  };
}

module.exports = { hooks };
