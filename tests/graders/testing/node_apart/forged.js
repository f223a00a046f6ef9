// What a host sends that is not what our code would have sent, for the answer to question n.
module.exports = {
  'no JSON': (n) =>
    '{]',
  'no list': (n) =>
    '{"ok": true}',
  'an unknown kind': (n) =>
    JSON.stringify(['z', 1]),
  'an answer that nobody asked for': (n) =>
    JSON.stringify(['a', 999, true, 3, null]),
  'a value of an unknown form': (n) =>
    JSON.stringify(['a', n, true, ['zz', 1], null]),
  'an object in a form': (n) =>
    JSON.stringify(['a', n, true, { length: 3 }, null]),
  'a builtin function': (n) =>
    JSON.stringify(['a', n, true, ['B', 'process'], null]),
  "a function of node's": (n) =>
    JSON.stringify(['a', n, true, ['B', 'Object.is'], null]),
  'something of ours that was not given': (n) =>
    JSON.stringify(['a', n, true, ['t', 7], null]),
  'a back reference to nothing': (n) =>
    JSON.stringify(['a', n, true, ['c', 0], null]),
  'a call of what was not given': (n) =>
    JSON.stringify(['q', 1, 'call', 1, ['u']]),
  'another request than a call': (n) =>
    JSON.stringify(['q', 1, 'load', '/opt/assay/inside/node_run.cjs', 'x', 'require']),
  'a copy that is named as an object': (n) =>
    JSON.stringify(['a', n, true, ['Array', 1, 0, [['Object', 5, 0, [], []], ['R', 5]], []], null]),
  'a settled promise that nobody has': (n) =>
    JSON.stringify(['n', 'settle', 5, true, 3, null]),
  'depth': (n) =>
    '["a",' + n + ',true,' + '["Array",1,0,['.repeat(5000) + '],[]]'.repeat(5000) + ',null]',
  'a list that claims a length': (n) =>
    JSON.stringify(['a', n, true, ['Array', 1, 0, { length: 1e9 }, []], null]),
  'a prototype of its own': (n) =>
    JSON.stringify(['a', n, true, ['Error', 5, 0, [['Object', 6, 0, [], []], 'bad'], []], null]),
  'a view of a made up class': (n) =>
    JSON.stringify(['a', n, true, ['Function', 1, 0, ['AAAA'], []], null]),
  'a symbol of the language by a wrong name': (n) =>
    JSON.stringify(['a', n, true, ['B', 'Symbol.constructor'], null]),
  'an honest one': (n) => JSON.stringify(['a', n, true, ['Object', 1, 0, [], ['a', 1]], null]),
};
