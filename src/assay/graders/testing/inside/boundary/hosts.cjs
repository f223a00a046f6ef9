// Keeps two connections at hand, at the socket ASSAY_LINK: a test file may need one more, which is
// asked about near misses. With one byte the judge says that a file takes it; then a host starts at
// it, beside the process of the file, and another connection waits in its place. So none is waited
// for, and none starts that nobody needs.
'use strict';

const { spawn } = require('node:child_process');
const net = require('node:net');
const path = require('node:path');

const { ASSAY_LINK: link } = process.env;
delete process.env.ASSAY_LINK;

function stand() {
  const callback = () => {
    start(socket);
    return false;
  };
  // No more than that byte is read: what the judge says then is the host's to read.
  const socket = net.connect({ path: link, onread: { buffer: Buffer.alloc(1), callback } });
  socket.on('error', () => process.exit(0));
}

function start(socket) {
  const host = spawn(process.execPath, [path.join(__dirname, 'host.cjs')], {
    stdio: ['ignore', 'inherit', 'inherit', socket],
  });
  host.on('error', () => {});
  socket.destroy();
  stand();
}

stand();
stand();
