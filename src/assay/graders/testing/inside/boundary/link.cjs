// One end of the socket between a judge and a solution host: bounded, length-prefixed frames.
//
// A thread of its own reads, so that a frame can be waited for (with a deadline) while nothing
// else runs, or be heard from the event loop; and so that both ends may write at once.
'use strict';

const { writeSync } = require('node:fs');
const { Socket } = require('node:net');
const workers = require('node:worker_threads');

const LONGEST = 32 * 1024 * 1024;
const MOST = 512 * 1024 * 1024;
const WHY = ['it ended', 'it said too much', 'it said too much at once'];
// What both threads see: how many messages there were, why no more will come (in WHY), and who has the descriptor.
const [COUNT, REASON, STATE] = [0, 1, 2];
const [FREE, WRITES, CLOSED] = [0, 1, 2];
const { add, compareExchange, load, notify, store, wait } = Atomics;
const { from } = Buffer;
const { receiveMessageOnPort } = workers;
const now = performance.now.bind(performance);

if (workers.workerData?.assayLink !== undefined) read(workers.workerData.assayLink);

function read({ fd, port, count, fatal }) {
  // Closed while nobody writes, and never written to again: its number may soon be that of a file of the tests.
  class Link extends Socket {
    _destroy(...given) {
      while (compareExchange(count, STATE, FREE, CLOSED) === WRITES) wait(count, STATE, WRITES);
      super._destroy(...given);
    }
  }
  const socket = new Link({ fd, readable: true, writable: false });
  let length;
  let total = 0;
  const tell = (message) => {
    port.postMessage(message);
    add(count, COUNT, 1);
    notify(count, COUNT);
  };
  // Whether there was a frame, or the head of one.
  const next = () => {
    const wanted = length ?? 4;
    const part = socket.read(wanted);
    if (part === null || part.length < wanted) return false;
    if (length !== undefined) tell(part.toString());
    length = length === undefined ? part.readUInt32LE(0) : undefined;
    total += part.length;
    if (length > LONGEST || total > MOST) {
      store(count, REASON, total > MOST ? 1 : 2); // first, for whoever sends as it closes
      socket.destroy();
    }
    return !socket.destroyed;
  };
  socket.on('error', () => {});
  socket.on('close', () => {
    if (fatal) process.kill(process.pid, 'SIGKILL'); // it may be in a loop, and wait for nobody
    tell({ why: WHY[load(count, REASON)] });
  });
  socket.on('readable', () => {
    while (next());
  });
}

// With `fatal`, the process dies with the socket.
function open(fd, fatal = false) {
  const { port1, port2 } = new workers.MessageChannel();
  const count = new Int32Array(new SharedArrayBuffer(12));
  new workers.Worker(__filename, {
    workerData: { assayLink: { fd, port: port2, count, fatal } },
    transferList: [port2],
    execArgv: [],
    env: {},
  }).unref();
  const link = {
    // Why nothing more will come; undefined while something may.
    lost: undefined,
    // Called for each frame that nobody waited for, and at the end.
    heard: () => {},
    send(text) {
      const body = from(`0000${text}`, 'utf8');
      if (body.length - 4 > LONGEST) throw new RangeError('the value is too large to cross');
      body.writeUInt32LE(body.length - 4, 0);
      for (let at = 0; at < body.length; ) {
        const written = write(body, at);
        if (written === undefined) {
          link.lost ??= WHY[load(count, REASON)];
          return;
        }
        if (written === 0) wait(count, COUNT, load(count, COUNT), 1);
        at += written;
      }
    },
    // The next frame; undefined if there is none within a time, or will be none.
    wait(milliseconds) {
      const until = now() + milliseconds;
      while (link.lost === undefined) {
        const seen = load(count, COUNT);
        const got = receiveMessageOnPort(port1);
        if (got !== undefined) return text(got.message);
        if (wait(count, COUNT, seen, until - now()) === 'timed-out') return undefined;
      }
      return undefined;
    },
    hold: () => port1.ref(),
    release: () => port1.unref(),
  };
  // How many bytes were written, of a body from somewhere on; undefined if nobody reads them any more.
  const write = (body, at) => {
    if (compareExchange(count, STATE, FREE, WRITES) === CLOSED) return undefined;
    try {
      return writeSync(fd, body, at);
    } catch (error) {
      return error.code === 'EAGAIN' ? 0 : undefined;
    } finally {
      store(count, STATE, FREE);
      notify(count, STATE);
    }
  };
  // A frame; undefined at the end.
  const text = (message) => {
    if (typeof message === 'string') return message;
    link.lost ??= message.why;
    return undefined;
  };
  port1.on('message', (message) => link.heard(text(message)));
  port1.unref();
  return link;
}

module.exports = { open };
