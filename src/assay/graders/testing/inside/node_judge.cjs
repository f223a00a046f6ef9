// What the process of one test file told, checked, and what follows from it.
'use strict';

const { signer } = require('./node_sign.cjs');

const LONGEST = 64 * 1024 * 1024;
const UNPROVEN = { outcome: 'failed', message: 'the file ended before its tests did' };
const EVENTS = new Set(['registered', 'start', 'ran', 'said', 'loaded', 'ended', 'broke', 'lost', 'undecided', 'note', 'needs']);

// Reads the signed lines of one process.
class Reader {
  constructor(key, canary) {
    this.forged = '';
    this.tests = new Map(); // serial: {id, empty, started, ok, message}
    this.reports = new Map(); // id: node's reports of it
    this.evaluated = false;
    this.why = '';
    this.undecidable = new Set();
    this.notes = new Set();
    this.needed = []; // [test, what]
    this.broken = false;
    this.canary = undefined;
    this.planted = canary;
    this.verify = signer(key);
    this.total = 0;
    this.rest = '';
  }

  // Returns whether to go on.
  feed(chunk) {
    this.total += chunk.length;
    if (this.total > LONGEST) this.forged = 'the report of a file is too long';
    const lines = (this.rest + chunk.toString('latin1')).split('\n');
    this.rest = lines.pop();
    for (const line of lines) {
      if (this.forged === '') this.take(line);
    }
    return this.forged === '';
  }

  take(line) {
    // Signing the same payload with the same number must give the same line.
    const payload = line.slice(line.indexOf(' ', 65) + 1);
    if (this.verify(payload) !== `${line}\n`) {
      this.forged = 'a line of a file\'s report is not the runner\'s';
      return;
    }
    const event = JSON.parse(payload);
    if (EVENTS.has(event.event)) this[event.event](event);
  }

  registered({ serial, id, empty }) {
    this.tests.set(serial, { id, empty, started: false, ok: undefined, message: '' });
  }

  start({ serial }) {
    this.tests.get(serial).started = true;
  }

  ran({ serial, ok, message }) {
    const test = this.tests.get(serial);
    if (test.ok !== false) Object.assign(test, { ok, message });
  }

  said(report) {
    if (report.id === this.planted.name) {
      this.ended({ outcome: report.ok ? 'passed' : 'failed', message: report.message });
    } else this.reports.set(report.id, [...(this.reports.get(report.id) ?? []), report]);
  }

  loaded() {
    this.evaluated = true;
  }

  // The process of the submission said or can say no more.
  lost({ why }) {
    this.why = `the submission's process: ${why}`;
  }

  undecided({ what }) {
    this.undecidable.add(what);
  }

  note({ what }) {
    this.notes.add(what);
  }

  needs({ test, what }) {
    this.needed.push([test, what]);
  }

  broke({ why }) {
    this.broken = true;
    this.why ||= why ?? '';
  }

  // A file without tests, where the check that must fail is made at the end.
  ended({ outcome, message }) {
    // One that was cancelled is as good as one that did not report.
    const meant = outcome === 'passed' || message.includes(this.planted.planted);
    if (meant) this.canary = { outcome, message };
  }

  // Whether nothing of the file's tests is left to come.
  done() {
    if (this.canary === undefined) return false;
    return [...this.tests.values()].every(({ started, ok }) => !started || ok !== undefined);
  }
}

function outcomeOf(tests, reports) {
  const bad = reports.find(({ ok }) => !ok);
  const broken = tests.find(({ ok }) => ok === false);
  if (bad !== undefined) {
    return { outcome: bad.todo ? 'xfailed' : 'failed', message: bad.message || broken?.message || '' };
  }
  if (broken !== undefined) return { outcome: 'failed', message: broken.message };
  if (reports.some(({ skipped }) => skipped)) return { outcome: 'skipped', message: 'skipped' };
  if (reports.length === 0 || tests.some(({ ok, empty }) => ok === undefined && !empty)) {
    return { outcome: 'failed', message: 'it did not come to an end' };
  }
  return { outcome: reports.some(({ todo }) => todo) ? 'xpassed' : 'passed', message: '' };
}

// The results of a file, from a Reader and how the process ended.
function judge({ reader, code, signal }, { name, selecting, crashed }) {
  const tampering = reader.forged === '' ? [] : [reader.forged];
  const undecided = [...reader.undecidable];
  const notes = [...reader.notes];
  const verdict = { results: [], canary: reader.canary, tampering, undecided, notes, crash: undefined };
  const fail = (id, message) => verdict.results.push({ id, seconds: 0, outcome: 'error', message });
  if (reader.canary === undefined) {
    const open = [...reader.tests.values()].filter(({ started, ok }) => started && ok === undefined);
    if (open.length > 0) verdict.crash = open.at(-1).id;
    fail(name, reader.why || `the file ended before its tests did${signal ? ` (${signal})` : ''}`);
  }
  const byId = new Map();
  for (const test of reader.tests.values()) byId.set(test.id, [...(byId.get(test.id) ?? []), test]);
  for (const [id, tests] of byId) {
    const reports = reader.reports.get(id) ?? [];
    const left = selecting && !tests.some(({ started }) => started);
    if (left && reports.every(({ ok, skipped }) => ok && skipped)) continue;
    const seconds = reports.reduce((sum, report) => sum + report.seconds, 0);
    const ended = crashed.get(id);
    const judged =
      ended === undefined ? outcomeOf(tests, reports) : { outcome: 'failed', message: ended };
    verdict.results.push({ id: `${name}::${id}`, seconds, ...judged });
  }
  if (reader.canary === undefined) {
    for (const result of verdict.results) {
      if (result.outcome === 'passed') Object.assign(result, UNPROVEN);
    }
  }
  if (reader.tests.size === 0) {
    if (reader.evaluated && !reader.broken && code === 0 && verdict.results.length === 0) {
      verdict.results.push({ id: name, seconds: 0, outcome: 'passed', message: '' });
    } else if (verdict.results.length === 0) fail(name, reader.why || 'the file ended with an error');
  }
  for (const [id, reports] of reader.reports) {
    const below = [...byId.keys()].some((test) => test.startsWith(`${id} > `));
    const broken = reports.find(({ ok, suite, todo }) => suite && !ok && !todo);
    const explained = verdict.results.some(
      (result) => result.id.startsWith(`${name}::${id} > `) && result.outcome === 'failed',
    );
    if (broken !== undefined && !explained && !(below && selecting)) {
      fail(`${name}::${id}`, broken.message);
    }
  }
  return verdict;
}

module.exports = { judge, Reader };
