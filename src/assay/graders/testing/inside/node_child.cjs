// Runs one test file. Preloaded (`--require`) before anything else, so that what it takes hold of
// is node's own.
//
// Descriptor 3 leads to node_run.cjs, which sends one line of JSON - the key to sign with, the
// sources that are not on disk, the canary - and then only listens. What is told there:
//   registered  a test was declared by the test file itself
//   start, ran  its function was called, came to an end
//   said        node's own report of a test
//   loaded      the file was evaluated to its end
//   ended       what became of a check that must fail (in files without tests)
'use strict';

const fs = require('node:fs');
const { StringDecoder } = require('node:string_decoder');
const { isMainThread } = require('node:worker_threads');

const apart = process.env.ASSAY_LINK !== undefined; // the submission is in another process
if (!apart) require('./node_guard.cjs');

// What tests or a submission start by fork() is a program of its own, and has nothing to tell here.
const isOurs = (word, next) => [word, next].includes(__filename) || word.startsWith('--test-reporter');
process.execArgv = process.execArgv.filter((word, at, all) => !isOurs(word, all[at + 1]));

// It is loaded by the thread of node's module hooks, too.
if (isMainThread) main();

function main() {
  const { signer } = require('./node_sign.cjs');
  const { facade } = require('./node_facade.cjs');
  const { loader } = require('./node_load.cjs');
  const { stringify } = JSON;
  const { writeSync } = fs;
  const bind = Function.prototype.call.bind.bind(Function.prototype.call);
  const slice = bind(String.prototype.slice);
  const { strictEqual } = require('node:assert');

  const brief = JSON.parse(readLine(3));
  const sign = signer(brief.key);
  brief.key = '';

  // Without a prototype, so that no `toJSON` or setter of the submission is asked.
  function tell(event, details) {
    let line = sign(stringify({ __proto__: null, event, ...details }));
    while (line !== '') line = slice(line, writeSync(3, line));
  }

  const plant = () => strictEqual(brief.planted, '');
  const ending = (test, failure) => (boundary.judge === undefined ? failure ?? test.failure : boundary.judge.ending(test, failure));
  const api = facade({ tell, skip: new Set(brief.skip), only: brief.only, ending });
  const boundary = apart ? { judge: judge(brief, api, tell), authors: brief.apart.hidden } : {};
  const load = loader({ ...brief, ...boundary });

  // Leaving from inside a test would hide the tests behind it.
  process.exit = (code) => {
    throw new Error(`process.exit(${code ?? ''}) was called`);
  };
  // A handler of the submission's must not make a script end well that was left by an error.
  const { emit } = process;
  const { apply } = Reflect;
  Object.defineProperty(process, 'emit', {
    value: function (name, ...others) {
      if (name === 'uncaughtExceptionMonitor' || name === 'unhandledRejection') {
        tell('broke', { __proto__: null });
      }
      return apply(emit, process, [name, ...others]);
    },
  });
  process.once('exit', () => {
    if (api.count() > 0) return;
    if (boundary.judge?.pending.size > 0) tell('broke', { __proto__: null }); // it was waited for
    const why = 'no test was declared, and for the reference there was';
    if (boundary.judge?.contract.has('tests', '')) tell('broke', { __proto__: null, why });
    try {
      plant();
      tell('ended', { __proto__: null, outcome: 'passed', message: '' });
    } catch (error) {
      tell('ended', { __proto__: null, outcome: 'failed', message: `${error.message}` });
    }
  });

  // node_reporter.cjs and node_file.cjs take these; neither can make a failing test pass.
  process[Symbol.for('assay.said')] = (details) => tell('said', details);
  process[Symbol.for('assay.start')] = async () => {
    api.plantWhenUsed(brief.canary, plant);
    await load.run(api.exports);
    tell('loaded', { __proto__: null });
    if (api.count() > 0) boundary.judge?.contract.learn('tests', '');
    api.loaded();
  };
}

// What stands in for the submission, and speaks with the process that has it.
function judge(brief, api, tell) {
  const { open } = require('./boundary/link.cjs');
  const { Judge } = require('./boundary/judge.cjs');
  const link = open(Number(process.env.ASSAY_LINK));
  const asked = process.env.ASSAY_ASKED === undefined ? undefined : open(Number(process.env.ASSAY_ASKED));
  delete process.env.ASSAY_LINK;
  delete process.env.ASSAY_ASKED;
  const { reallyExit } = process;
  const made = new Judge(link, {
    root: brief.root,
    patience: brief.apart.seconds * 1000,
    loose: brief.apart.allow,
    contract: brief.apart.contract,
    file: brief.name,
    asked,
    needs: (test, what) => tell('needs', { __proto__: null, test, what }),
    undecided: (what) => tell('undecided', { __proto__: null, what }),
    noted: (what) => tell('note', { __proto__: null, what }),
    current: api.current,
    lost(why) {
      tell('lost', { __proto__: null, why });
      reallyExit.call(process, 1);
    },
  });
  made.comparisons.guard();
  return made;
}

function readLine(descriptor) {
  const chunk = Buffer.alloc(65536); // of its own: small buffers share a pool that anybody can read
  const decoder = new StringDecoder('utf8');
  let text = '';
  for (;;) {
    const size = fs.readSync(descriptor, chunk, 0, chunk.length, null);
    text += decoder.write(chunk.subarray(0, size));
    if (size === 0 || chunk[size - 1] === 10) {
      chunk.fill(0);
      return text;
    }
  }
}
