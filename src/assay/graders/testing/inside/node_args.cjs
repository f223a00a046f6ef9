// Reads the command line of `node --test`: the options for the process of each file, and the files.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

// Options whose value may be a word of its own.
const VALUED = new Set([
  '-C',
  '-r',
  '--conditions',
  '--env-file',
  '--experimental-loader',
  '--import',
  '--loader',
  '--require',
  '--test-concurrency',
  '--test-name-pattern',
  '--test-reporter',
  '--test-reporter-destination',
  '--test-skip-pattern',
  '--test-timeout',
]);
// Options that are about the run as a whole. Coverage and inspection are not for grading.
const OWN =
  /^--(test|watch.*|inspect.*|test-(concurrency|reporter|reporter-destination|shard|isolation|force-exit|update-snapshots|coverage.*)|experimental-test-(coverage|isolation))(=|$)/;
const SELECTING = /^--test-(name-pattern|skip-pattern|only)(=|$)/;

function read(words) {
  const options = [];
  let concurrency;
  let at = 0;
  for (; at < words.length && words[at].startsWith('-'); at += 1) {
    const word = words[at];
    if (word === '--') {
      at += 1;
      break;
    }
    const value = VALUED.has(word) ? words[(at += 1)] : undefined;
    const given = value ?? word.slice(word.indexOf('=') + 1);
    if (/^--test-concurrency(=|$)/.test(word)) concurrency = Number(given);
    if (!OWN.test(word)) options.push(word, ...(value === undefined ? [] : [value]));
  }
  return {
    options,
    concurrency,
    selecting: options.some((word) => SELECTING.test(word)),
    byName: options.some((word) => /^--test-name-pattern(=|$)/.test(word)),
    only: options.includes('--test-only'),
    patterns: words.slice(at).filter((word) => !word.startsWith('-')),
  };
}

const NAMED_AS_TEST = /^(test|test-.+|.+[.\-_]test)\.[cm]?js$/;
const SCRIPT = /\.[cm]?js$/;

function* walk(directory, below = false) {
  const entries = fs.readdirSync(directory, { withFileTypes: true });
  entries.sort((one, other) => (one.name < other.name ? -1 : 1));
  for (const entry of entries) {
    const place = path.join(directory, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== 'node_modules' && entry.name !== '.git') {
        yield* walk(place, below || entry.name === 'test');
      }
    } else if (entry.isFile()) {
      yield { place, isTest: SCRIPT.test(entry.name) && (below || NAMED_AS_TEST.test(entry.name)) };
    }
  }
}

// A glob as a regular expression over a path: ** * ? {a,b} [abc] and @(a|b), ?(a|b), +(a|b), *(a|b).
function expression(glob) {
  let depth = 0;
  const closing = [];
  const source = glob.replace(/\*\*\/|\*\*|[@?+*]\(|[*?{},()|.^$+\\]/g, (part) => {
    if (part === '**/') return '(?:[^/]+/)*';
    if (part === '**') return '.*';
    if (part.length === 2) {
      closing.push(part[0] === '@' ? ')' : `)${part[0]}`);
      return '(?:';
    }
    if (part === ')' && closing.length > 0) return closing.pop();
    if (part === '|' && closing.length > 0) return '|';
    if (part === '*') return '[^/]*';
    if (part === '?') return '[^/]';
    if (part === '{') {
      depth += 1;
      return '(?:';
    }
    if (part === '}' && depth > 0) {
      depth -= 1;
      return ')';
    }
    if (part === ',' && depth > 0) return '|';
    return part === ',' ? part : `\\${part}`;
  });
  return new RegExp(`^${source}$`);
}

// The test files that a command means, as node finds them.
function files(patterns) {
  const cwd = process.cwd();
  if (patterns.length === 0) {
    return [...walk(cwd)].filter(({ isTest }) => isTest).map(({ place }) => place);
  }
  const found = new Set();
  for (const pattern of patterns) {
    const place = path.resolve(cwd, pattern);
    const kind = fs.statSync(place, { throwIfNoEntry: false });
    if (kind?.isFile()) found.add(place);
    else if (kind?.isDirectory()) {
      const inTest = path.basename(place) === 'test';
      for (const file of walk(place, inTest)) if (file.isTest) found.add(file.place);
    } else {
      const meant = expression(path.normalize(pattern));
      for (const file of walk(cwd)) {
        if (meant.test(path.relative(cwd, file.place))) found.add(file.place);
      }
    }
  }
  return [...found];
}

module.exports = { files, read };
