// Keeps two solution hosts at hand, at the socket ASSAY_LINK: a test file may need one more, which
// is asked about near misses. The next one starts when the last has been taken, so that none is waited for.
'use strict';

const { spawn } = require('node:child_process');
const net = require('node:net');
const path = require('node:path');

const { ASSAY_LINK: link } = process.env;
delete process.env.ASSAY_LINK;

function start() {
  const socket = net.connect({ path: link });
  socket.pause(); // what the judge says is the host's to read
  socket.on('error', () => process.exit(0));
  socket.on('connect', () => {
    const host = spawn(process.execPath, [path.join(__dirname, 'host.cjs')], {
      stdio: ['ignore', 'inherit', 'inherit', 'pipe', socket],
    });
    socket.destroy();
    host.on('error', () => {});
    host.stdio[3].on('error', () => {}).resume().once('close', start);
  });
}

start();
start();
