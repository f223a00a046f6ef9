// Numbered, signed lines: `HMAC NUMBER PAYLOAD`, as the reader at the other end checks them.
//
// SHA-256 is written out here because code of the submission shares the process: it can replace
// the methods of every object that node's own crypto hands the key to. Here nothing is called that
// was not taken hold of beforehand, and nothing is looked up on an object that others can reach.
'use strict';

const bind = Function.prototype.call.bind.bind(Function.prototype.call);
const charCodeAt = bind(String.prototype.charCodeAt);
const Words = Uint32Array;
const Bytes = Uint8Array;
const HEX = '0123456789abcdef';

const CONSTANTS = new Words(64);
const START = new Words(8);
for (let found = 0, candidate = 2; found < 64; candidate += 1) {
  let prime = true;
  for (let factor = 2; factor * factor <= candidate; factor += 1) {
    if (candidate % factor === 0) prime = false;
  }
  if (!prime) continue;
  // The first 32 bits behind the point of the primes' cube and square roots.
  CONSTANTS[found] = ((Math.cbrt(candidate) % 1) * 4294967296) >>> 0;
  if (found < 8) START[found] = ((Math.sqrt(candidate) % 1) * 4294967296) >>> 0;
  found += 1;
}

const turn = (word, by) => (word >>> by) | (word << (32 - by));

function mix(state, block, at) {
  const w = new Words(64);
  for (let i = 0; i < 16; i += 1) {
    const j = at + i * 4;
    w[i] = (block[j] << 24) | (block[j + 1] << 16) | (block[j + 2] << 8) | block[j + 3];
  }
  for (let i = 16; i < 64; i += 1) {
    const s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
    const s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  let a = state[0];
  let b = state[1];
  let c = state[2];
  let d = state[3];
  let e = state[4];
  let f = state[5];
  let g = state[6];
  let h = state[7];
  for (let i = 0; i < 64; i += 1) {
    const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + CONSTANTS[i] + w[i]) | 0;
    const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

// The digest of one 64-byte block followed by a message.
function digest(block, message) {
  const size = 64 + message.length;
  const padded = new Bytes(((size + 8) >> 6) * 64 + 64);
  for (let i = 0; i < 64; i += 1) padded[i] = block[i];
  for (let i = 0; i < message.length; i += 1) padded[64 + i] = message[i];
  padded[size] = 0x80;
  for (let i = 0; i < 4; i += 1) padded[padded.length - 1 - i] = (size * 8) >>> (8 * i);
  const state = new Words(8);
  for (let i = 0; i < 8; i += 1) state[i] = START[i];
  for (let at = 0; at < padded.length; at += 64) mix(state, padded, at);
  const bytes = new Bytes(32);
  for (let i = 0; i < 32; i += 1) bytes[i] = state[i >> 2] >>> (24 - 8 * (i & 3));
  return bytes;
}

// Escape what is not ASCII, so that characters are bytes.
function ascii(text) {
  let plain = '';
  for (let i = 0; i < text.length; i += 1) {
    const code = charCodeAt(text, i);
    if (code < 0x7f) plain += text[i];
    else {
      plain += '\\u';
      for (let by = 12; by >= 0; by -= 4) plain += HEX[(code >> by) & 15];
    }
  }
  return plain;
}

// A function from the JSON of a payload to the next line.
function signer(hexKey) {
  const inner = new Bytes(64);
  const outer = new Bytes(64);
  for (let i = 0; i < 64; i += 1) {
    const byte = i < 32 ? parseInt(hexKey.slice(2 * i, 2 * i + 2), 16) : 0;
    inner[i] = byte ^ 0x36;
    outer[i] = byte ^ 0x5c;
  }
  let count = 0;
  return (json) => {
    const payload = ascii(json);
    const text = `${count}\n${payload}`;
    const message = new Bytes(text.length);
    for (let i = 0; i < text.length; i += 1) message[i] = charCodeAt(text, i);
    const code = digest(outer, digest(inner, message));
    let hex = '';
    for (let i = 0; i < 32; i += 1) hex += HEX[code[i] >> 4] + HEX[code[i] & 15];
    const line = `${hex} ${count} ${payload}\n`;
    count += 1;
    return line;
  };
}

module.exports = { signer };
