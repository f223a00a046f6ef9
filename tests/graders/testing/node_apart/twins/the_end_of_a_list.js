class Node { constructor(v) { this.value = v; this.next = null; } }
exports.List = class List { constructor() { this.head = null; } push(v) { const one = new Node(v); one.next = this.head; this.head = one; return this; } };
// ---- submission
class Node { constructor(v) { this.value = v; } }
exports.List = class List { push(v) { const one = new Node(v); if (this.head) one.next = this.head; this.head = one; return this; } };
// ---- tests
const { List } = require('./kit.js');
test('walks', () => { const list = new List().push(1).push(2); assert.strictEqual(list.head.next.value, 1); let n = 0; for (let at = list.head; at; at = at.next) n += 1; assert.strictEqual(n, 2); });
