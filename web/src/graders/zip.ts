const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

function checksum(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = (sum >>> 8) ^ (TABLE[(sum ^ byte) & 0xff] ?? 0);
  return ~sum >>> 0;
}

/** Files in one: a ZIP without compression, for browsers save one file at a time. */
export function zipped(files: Readonly<Record<string, string>>): Blob {
  const encoder = new TextEncoder();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const listed: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const [title, body] = [encoder.encode(name), encoder.encode(text)];
    // Version 2.0, names in UTF-8, stored as it is, midnight of 1 January 1980.
    const how = [20, 0x800, 0, 0, 0x21];
    const sizes = [checksum(body), body.length, body.length];
    const head = record(0x04034b50, how, sizes, [title.length, 0]);
    parts.push(head, title, body);
    const nothing = [0, 0, 0, 0, 0, 0];
    const place = [offset & 0xffff, offset >>> 16];
    listed.push(
      record(0x02014b50, [20, ...how], sizes, [title.length, ...nothing, ...place]),
      title,
    );
    offset += head.length + title.length + body.length;
  }
  const size = listed.reduce((sum, part) => sum + part.length, 0);
  const many = Object.keys(files).length;
  const end = record(0x06054b50, [0, 0, many, many], [size, offset], [0]);
  return new Blob([...parts, ...listed, end], { type: "application/zip" });
}

/** A signature, numbers of two bytes, of four, and of two again. */
function record(
  signature: number,
  shorts: number[],
  longs: number[],
  more: number[],
): Uint8Array<ArrayBuffer> {
  const view = new DataView(
    new ArrayBuffer(4 + 2 * (shorts.length + more.length) + 4 * longs.length),
  );
  let place = 4;
  view.setUint32(0, signature, true);
  const put = (bytes: 2 | 4) => (value: number) => {
    if (bytes === 2) view.setUint16(place, value, true);
    else view.setUint32(place, value, true);
    place += bytes;
  };
  shorts.forEach(put(2));
  longs.forEach(put(4));
  more.forEach(put(2));
  return new Uint8Array(view.buffer);
}
