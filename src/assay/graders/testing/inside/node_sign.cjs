// Numbered, signed lines: `HMAC NUMBER PAYLOAD`, as the reader at the other end checks them.
'use strict';

const { createHmac, Hmac } = require('node:crypto');

const bind = Function.prototype.call.bind.bind(Function.prototype.call);
const charCodeAt = bind(String.prototype.charCodeAt);
const update = bind(Hmac.prototype.update);
const digest = bind(Hmac.prototype.digest);
const HEX = '0123456789abcdef';

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
  const key = Buffer.from(hexKey, 'hex');
  let count = 0;
  return (json) => {
    const payload = ascii(json);
    const code = digest(update(createHmac('sha256', key), `${count}\n${payload}`), 'hex');
    const line = `${code} ${count} ${payload}\n`;
    count += 1;
    return line;
  };
}

module.exports = { signer };
