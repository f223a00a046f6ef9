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
const { add, load, notify, store, wait } = Atomics;
const { from } = Buffer;
const { receiveMessageOnPort } = workers;
const now = performance.now.bind(performance);

if (workers.workerData?.assayLink !== undefined) read(workers.workerData.assayLink);

function read({ fd, port, count, fatal }) {
  const socket = new Socket({ fd, readable: true, writable: false });
  let length;
  let total = 0;
  const tell = (message) => {
    port.postMessage(message);
    add(count, 0, 1);
    notify(count, 0);
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
      store(count, 1, total > MOST ? 1 : 2); // first, for whoever sends as it closes
      socket.destroy();
    }
    return !socket.destroyed;
  };
  socket.on('error', () => {});
  socket.on('close', () => {
    if (fatal) process.kill(process.pid, 'SIGKILL'); // it may be in a loop, and wait for nobody
    tell({ why: WHY[load(count, 1)] });
  });
  socket.on('readable', () => {
    while (next());
  });
}

// With `fatal`, the process dies with the socket.
function open(fd, fatal = false) {
  const { port1, port2 } = new workers.MessageChannel();
  const count = new Int32Array(new SharedArrayBuffer(8)); // of messages; then why no more will come, in WHY
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
        try {
          at += writeSync(fd, body, at);
        } catch (error) {
          if (error.code !== 'EAGAIN') {
            link.lost ??= WHY[load(count, 1)];
            return;
          }
          wait(count, 0, load(count, 0), 1);
        }
      }
    },
    // The next frame; undefined if there is none within a time, or will be none.
    wait(milliseconds) {
      const until = now() + milliseconds;
      while (link.lost === undefined) {
        const seen = load(count, 0);
        const got = receiveMessageOnPort(port1);
        if (got !== undefined) return text(got.message);
        if (wait(count, 0, seen, until - now()) === 'timed-out') return undefined;
      }
      return undefined;
    },
    hold: () => port1.ref(),
    release: () => port1.unref(),
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
