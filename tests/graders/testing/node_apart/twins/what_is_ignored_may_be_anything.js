exports.start = () => 3; exports.stop = (job) => true; exports.push = (list, one) => list.push(one);
// ---- submission
class Job { constructor() { this.on = true; } valueOf() { return 1; } }
exports.start = () => new Job(); exports.stop = (job) => job instanceof Job; exports.push = (list, one) => { list.push(one); };
// ---- tests
const { start, stop, push } = require('./kit.js');
test('job', () => { const job = start(); assert.ok(stop(job)); const list = []; push(list, 1); assert.deepStrictEqual(list, [1]); });
