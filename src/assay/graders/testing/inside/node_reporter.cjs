// Hands node's own report of each test on, with the names of the suites around it.
'use strict';

const said = process[Symbol.for('assay.said')];
delete process[Symbol.for('assay.said')];

module.exports = async function* report(source) {
  const names = [];
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      names.length = data.nesting;
      names.push(data.name);
    } else if (type === 'test:pass' || type === 'test:fail') {
      const error = data.details?.error;
      said({
        __proto__: null,
        ok: type === 'test:pass',
        id: [...names.slice(0, data.nesting), data.name].join(' > '),
        suite: data.details?.type === 'suite',
        skipped: data.skip !== undefined,
        todo: data.todo !== undefined,
        seconds: (data.details?.duration_ms ?? 0) / 1000,
        message: String(error?.cause?.message ?? error?.cause ?? error?.message ?? ''),
      });
    }
  }
  yield '';
};
