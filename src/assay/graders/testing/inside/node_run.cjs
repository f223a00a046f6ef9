// Runs `node --test ...` and reports over the private channel. No code of the submission is ever
// loaded here: each test file has a process of its own, which is told its sources over a pipe.
'use strict';

process.on('SIGUSR1', () => {}); // which would open a debugger's port

const { spawn } = require('node:child_process');
const { randomBytes } = require('node:crypto');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const vm = require('node:vm');

const args = require('./node_args.cjs');
const { judge, Reader } = require('./node_judge.cjs');
const { signer } = require('./node_sign.cjs');

const CHANNEL = '/opt/assay/channel';
const ROOT = process.env.ASSAY_ROOT ?? '/workspace';
const LONGEST_MESSAGE = 4000;
const MOST_CRASHES = 5;
const SETTLE_MS = 1000;
const NO_HOST = 'no process of the submission was there';
const HOST_MS = 10_000; // that may pass until a solution host is there

function connect() {
  return new Promise((resolve, reject) => {
    const handed = process.env.ASSAY_CHANNEL;
    const socket = handed === undefined ? net.connect(CHANNEL) : new net.Socket({ fd: Number(handed) });
    delete process.env.ASSAY_CHANNEL;
    let text = '';
    const failed = () => reject(new Error('the channel is closed'));
    socket.once('error', failed).once('close', failed).setEncoding('utf8');
    socket.on('data', (chunk) => {
      text += chunk;
      if (text.endsWith('\n')) {
        socket.removeListener('close', failed);
        resolve({ socket, brief: JSON.parse(text) });
      }
    });
  });
}

// A run of tests below another that is reported already: plain node, nobody listens.
function runUnreported() {
  const child = spawn(process.execPath, process.argv.slice(2), { stdio: 'inherit' });
  child.on('close', (code) => {
    process.exitCode = code ?? 1;
  });
}

function nameOf(file) {
  const relative = path.relative(ROOT, file);
  return relative.startsWith('..') ? file : relative;
}

// One process for one file, once. Resolves to what it told and how it ended.
function runOnce(file, brief, command, skip, [host, asked]) {
  const key = randomBytes(32).toString('hex');
  const options = [...command.options];
  // What lets a source from memory use import() before there was a constant for it.
  if (vm.constants === undefined) options.push('--experimental-vm-modules');
  if (command.byName) options.push(`--test-name-pattern=^${brief.canary.name}$`);
  const child = spawn(
    process.execPath,
    [
      '--require',
      path.join(__dirname, 'node_child.cjs'),
      ...options,
      `--test-reporter=${path.join(__dirname, 'node_reporter.cjs')}`,
      '--test-reporter-destination=stdout',
      path.join(__dirname, 'node_file.cjs'),
    ],
    {
      stdio: ['ignore', 'inherit', 'inherit', 'pipe', ...(host ? [host] : []), ...(asked ? [asked] : [])],
      env: { ...process.env, ...(host && { ASSAY_LINK: '4' }), ...(asked && { ASSAY_ASKED: '5' }) },
      detached: true,
    },
  );
  host?.destroy();
  asked?.destroy();
  const reader = new Reader(key, brief.canary);
  const link = child.stdio[3];
  link.on('error', () => {});
  link.write(
    `${JSON.stringify({
      key,
      entry: file,
      canary: brief.canary.name,
      planted: brief.canary.planted,
      hidden: brief.hidden,
      apart: brief.apart,
      root: ROOT,
      name: nameOf(file),
      only: command.only,
      skip,
    })}\n`,
  );
  const stop = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      child.kill('SIGKILL');
    }
  };
  return new Promise((resolve) => {
    let patience;
    link.on('data', (chunk) => {
      if (!reader.feed(chunk)) stop();
      // Every test has ended; what they left open must not hold us for ever.
      if (reader.done() && patience === undefined) patience = setTimeout(stop, SETTLE_MS);
    });
    child.on('error', () => resolve({ reader, code: 1 }));
    child.on('exit', (code, signal) => {
      clearTimeout(patience);
      const settled = () => resolve({ reader, code: signal === null ? code : 1, signal });
      stop();
      if (link.readableEnded || link.destroyed) settled();
      else {
        // A process that the tests left behind may hold the other end.
        const late = setTimeout(() => link.destroy(), 1000);
        link.once('close', () => {
          clearTimeout(late);
          settled();
        });
      }
    });
  });
}

// Connections to solution hosts, each for one run of one file, from a socket that was handed down.
function hostsAt(descriptor) {
  const free = [];
  const waiting = [];
  const server = net.createServer({ pauseOnConnect: true }, (socket) => {
    socket.on('error', () => {});
    const next = waiting.shift();
    if (next === undefined) free.push(socket);
    else next(socket);
  });
  server.listen({ fd: Number(descriptor) }).unref();
  const one = () =>
    new Promise((resolve) => {
      const late = setTimeout(() => resolve(undefined), HOST_MS);
      const take = (socket) => {
        clearTimeout(late);
        socket.write('\n'); // hosts.cjs starts a host there
        resolve(socket);
      };
      if (free.length > 0) take(free.shift());
      else waiting.push(take);
    });
  // One after the other: no two files have one of two each, and wait.
  let last = Promise.resolve();
  return (count) => {
    last = last.then(async () => {
      const taken = [await one()];
      while (taken.length < count) taken.push(await one());
      return taken;
    });
    return last;
  };
}

// Whether another host is asked about near misses of what tests make and compare.
function asksAnother(name, { apart }) {
  const { learns, needs = {} } = apart?.contract ?? {};
  const isCompared = ([test, entries]) => test.startsWith(name) && entries.some((entry) => entry.startsWith('op:equal:'));
  return learns === true || Object.entries(needs).some(isCompared);
}

// One file; again without the test that ended its process, if one did.
async function runFile(file, brief, command, hosts) {
  const crashed = new Map();
  const needed = []; // in every run of it
  let verdict = { results: [{ id: nameOf(file), seconds: 0, outcome: 'error', message: NO_HOST }], tampering: [], undecided: [], notes: [], needed };
  for (;;) {
    const links = (await hosts?.(asksAnother(nameOf(file), brief) ? 2 : 1)) ?? [];
    if (links.includes(undefined)) return verdict;
    const ended = await runOnce(file, brief, command, [...crashed.keys()], links);
    needed.push(...ended.reader.needed);
    verdict = judge(ended, { name: nameOf(file), selecting: command.selecting, crashed });
    verdict.needed = needed;
    if (verdict.crash === undefined || crashed.size >= MOST_CRASHES) return verdict;
    crashed.set(verdict.crash, ended.reader.why || 'it ended the process');
  }
}

function show({ id, outcome, message }) {
  const mark = outcome === 'passed' ? '\u2714' : '\u2716';
  const why = outcome === 'passed' ? '' : ` (${outcome}) ${message.split('\n')[0]}`;
  fs.writeSync(1, `${mark} ${id}${why}\n`);
}

async function run({ socket, brief }) {
  const sign = signer(brief.key);
  const tell = (payload) => socket.write(sign(JSON.stringify(payload)));
  const hidden = {};
  for (const [file, text] of Object.entries(brief.hidden)) hidden[path.join(ROOT, file)] = text;
  const told = { ...brief, hidden };
  const command = args.read(process.argv.slice(2));
  const files = args.files(command.patterns);
  const hosts = process.env.ASSAY_LINK && hostsAt(process.env.ASSAY_LINK);
  delete process.env.ASSAY_LINK;
  const canaries = [];
  let failed = files.length === 0;
  const queue = files.values();
  const work = async () => {
    for (const file of queue) {
      const { results, canary, tampering, undecided, notes, needed } = await runFile(file, told, command, hosts || undefined);
      if (canary !== undefined) canaries.push(canary);
      tell({ event: 'collected', ids: results.map(({ id }) => id) });
      for (const what of undecided) tell({ event: 'undecided', what });
      for (const what of notes) tell({ event: 'note', what });
      for (const [test, what] of needed) tell({ event: 'needs', test, what });
      for (const what of tampering) tell({ event: 'tamper', what });
      for (const result of results) {
        const message = result.message.slice(0, LONGEST_MESSAGE);
        failed ||= result.outcome !== 'passed' && result.outcome !== 'skipped';
        tell({ event: 'result', ...result, message });
        show(result);
      }
    }
  };
  const width = Math.max(1, command.concurrency || os.cpus().length - 1);
  await Promise.all(Array.from({ length: width }, work));
  const worst = canaries.find(({ outcome }) => outcome !== 'failed') ?? canaries[0];
  if (worst !== undefined) tell({ event: 'canary', name: brief.canary.name, ...worst });
  tell({ event: 'end', exit: failed ? 1 : 0 });
  process.exitCode = failed ? 1 : 0;
  await new Promise((resolve) => socket.end(resolve));
  socket.destroy();
}

connect().then(
  (open) => (open.brief.refused === undefined ? run(open) : runUnreported()),
  runUnreported,
);
