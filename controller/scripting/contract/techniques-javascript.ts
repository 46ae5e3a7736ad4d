import type { Technique } from "./sandbox.ts";

/** Escape attempts in JavaScript. */
export const JAVASCRIPT_TECHNIQUES: readonly Technique[] = [
  [
    "globals",
    "OUT = ['process', 'global', 'Buffer', 'fetch', 'setTimeout', 'Worker', 'std', 'os', 'scriptArgs', 'postMessage', 'WebAssembly'].find(function (name) { return typeof globalThis[name] !== 'undefined' })",
  ],
  [
    "what the engine left",
    "OUT = Object.getOwnPropertyNames(globalThis).find(function (name) { return /odp/.test(name) })",
  ],
  ["constructor chain", "OUT = (function () {}).constructor.constructor('return typeof process !== \"undefined\"')()"],
  ["constructor of a host function", "OUT = host.add.constructor('return typeof process !== \"undefined\"')()"],
  [
    "constructor of a host error",
    "try { host.refuse() } catch (error) { OUT = error.constructor.constructor('return typeof process !== \"undefined\"')() }",
  ],
  [
    "stack of a host error",
    "try { host.refuse() } catch (error) { OUT = /node:|worker|task|\\.ts/.test(error.stack) }",
  ],
  [
    "constructor of generators",
    "OUT = Object.getPrototypeOf(function* () {}).constructor('yield typeof process !== \"undefined\"')().next().value",
  ],
  [
    "constructor of asynchronous functions",
    "OUT = Object.getPrototypeOf(async function () {}).constructor('return typeof process !== \"undefined\"')()",
  ],
  ["indirect eval", "OUT = (0, eval)('typeof process') !== 'undefined'"],
  ["with", "with (globalThis) { OUT = typeof process !== 'undefined' }"],
  [
    "prepareStackTrace that answers frames",
    "Error.prepareStackTrace = function (error, frames) { return frames }; var s = new Error().stack; OUT = Array.isArray(s) && s.some(function (f) { return f.getThis && f.getThis() !== undefined && f.getThis().process || f.getFunction && /answerOf/.test(f.getFunction()) })",
  ],
  ["prepareStackTrace that throws", "Error.prepareStackTrace = function () { throw 1 }; host.where(); host.refuse()"],
  [
    "prepareStackTrace that never ends",
    "Error.prepareStackTrace = function () { for (;;); }; host.where(); throw new Error('x')",
  ],
  ["stackTraceLimit", "Error.stackTraceLimit = Infinity; (function f(n) { if (n) f(n - 1); else host.refuse() })(500)"],
  ["caller of toJSON", "host.add({ toJSON: function f() { OUT = f.caller; return 1 } }, 1)"],
  [
    "arguments of a caller",
    "host.add({ toJSON: function f() { OUT = f.arguments && f.arguments.callee.caller; return 1 } }, 1)",
  ],
  [
    "setter on Array.prototype",
    "Object.defineProperty(Array.prototype, '0', { set: function () { OUT = this.process || this.host } }); host.add(1, 2)",
  ],
  [
    "setter on Object.prototype",
    "Object.defineProperty(Object.prototype, 'code', { set: function () { OUT = this.process } }); try { host.refuse() } catch (error) {}",
  ],
  [
    "library replaced",
    "JSON.stringify = JSON.parse = Reflect.apply = String.prototype.slice = Function.prototype.call = Function.prototype.apply = function () { return 7 }; OUT = host.add(1, 2) !== 3",
  ],
  ["Promise replaced", "Promise.prototype.then = function (f) { f(true) }; OUT = Promise.resolve(false)"],
  ["__proto__ in an argument", 'host.add(JSON.parse(\'{"__proto__": {"polluted": 1}}\'), 1); OUT = ({}).polluted'],
  [
    "constructor.prototype in an argument",
    "host.add({ constructor: { prototype: { polluted: 1 } } }, 1); OUT = ({}).polluted",
  ],
  [
    "Proxy as argument",
    "var seen; host.add(new Proxy({}, { get: function f(target, name, receiver) { seen = f.caller }, ownKeys: function () { return ['a'] }, getOwnPropertyDescriptor: function () { return { enumerable: true, configurable: true, value: 1 } } }), 1); OUT = seen",
  ],
  [
    "Proxy of a host object",
    "host.add = new Proxy(host.add, { apply: function f(target, that, given) { return f.caller || target.apply(that, given) } }); OUT = host.add(1, 2) !== 3",
  ],
  [
    "Proxy as error",
    "throw new Proxy(new Error(), { get: function f() { throw f.caller || 1 }, getPrototypeOf: function () { throw 2 } })",
  ],
  ["getter on the answer", "Object.defineProperty(globalThis, 'OUT', { get: function f() { return f.caller } })"],
  ["toJSON of the answer", "OUT = { toJSON: function f() { return f.caller } }"],
  ["thenable answer", "OUT = { then: function (resolve) { resolve(true) }, toJSON: function () { return false } }"],
  ["asynchronous error", "Promise.reject({ get message() { return globalThis.process } })"],
  ["promise that answers itself", "var p; p = Promise.resolve().then(function () { return p }); OUT = p"],
  [
    "late host calls",
    "Promise.resolve().then(function again() { host.add(1, 1); return Promise.resolve().then(again) })",
  ],
  [
    "asynchronous generator",
    "(async function () { for await (var x of (async function* () { for (;;) yield 1 })()); })()",
  ],
  ["import()", "OUT = import('fs').then(function (fs) { return fs.readFileSync('/etc/passwd') })"],
  ["import() of a URL", "OUT = import('data:text/javascript,export default 1')"],
  ["import statement", "import fs from 'fs'; OUT = fs"],
  ["require of Node", "OUT = require('fs') || require('node:child_process')"],
  ["require of a path", "OUT = require('../../../../etc/passwd')"],
  ["require of an object", "OUT = require({ toString: function () { return '/etc/passwd' } })"],
  [
    "Symbol.species",
    "class A extends Array { static get [Symbol.species]() { return function () { return globalThis } } }; OUT = new A(1, 2).map(function (x) { return x }).process",
  ],
  [
    "Symbol.toPrimitive",
    "host.add({ [Symbol.toPrimitive]: function f() { OUT = f.caller } }, 1); require({ [Symbol.toPrimitive]: function f() { OUT = f.caller; return 'x' } })",
  ],
  [
    "Symbol.hasInstance",
    "Object.defineProperty(Error, Symbol.hasInstance, { value: function () { return true } }); throw null",
  ],
  [
    "sort that changes its array",
    "var a = []; for (var i = 0; i < 1e4; i++) a.push({ i: i }); a.sort(function () { a.length = 0; return 1 }); OUT = false",
  ],
  [
    "array that shrinks under a loop",
    "var a = [1, 2, 3]; a.forEach(function () { a.length = 0 }); a.concat({ get length() { a.length = 0; return 5 }, [Symbol.isConcatSpreadable]: true }); OUT = false",
  ],
  [
    "detached buffer",
    "var b = new ArrayBuffer(64), v = new Uint8Array(b); v[0] = 1; if (b.transfer) { b.transfer(); OUT = v[0] === 1 }",
  ],
  [
    "buffer resized by valueOf",
    "var b = new ArrayBuffer(64, { maxByteLength: 1024 }), v = new Uint8Array(b); v.fill({ valueOf: function () { b.resize(0); return 65 } }); OUT = v[0] === 65",
  ],
  ["resizable buffer", "new ArrayBuffer(8, { maxByteLength: 1 << 30 }).resize(1 << 30)"],
  [
    "typed array beyond its end",
    "var v = new Uint8Array(8); OUT = v[-1] || v[1e9] || v.subarray(-100, 1e9)[8] || new DataView(v.buffer).getUint8(9)",
  ],
  ["Atomics.wait", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"],
  ["repeat", "'x'.repeat(Math.pow(2, 30) - 1)"],
  ["padEnd", "'x'.padEnd(1e9, 'abc')"],
  ["replace that doubles", "var s = 'x'; for (;;) s = s.replace(/x/g, '$&$&')"],
  ["join of holes", "var a = []; a.length = 4e9; OUT = a.indexOf(1) > 0"],
  ["flat", "var a = [1]; for (;;) a = [a, a]; a.flat(Infinity)"],
  ["JSON that is deep", "JSON.parse('['.repeat(1e6))"],
  ["answer that is deep", "var o = {}; for (var i = 0; i < 1e6; i++) o = { o: o }; OUT = o"],
  ["answer that is wide", "var a = {}; for (var i = 0; i < 1e7; i++) a['k' + i] = 'xxxxxxxxxxxxxxxx'; OUT = a"],
  ["text that is deep", "eval('('.repeat(1e6))"],
  ["expression that is deep", "new RegExp('('.repeat(1e6) + ')'.repeat(1e6)).test('')"],
  ["expression that backtracks", "/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(200))"],
  ["lastIndex as object", "var r = /a/g; r.lastIndex = { valueOf: function () { for (;;); } }; r.exec('a')"],
  ["recursion", "(function f() { return f() + 1 })()"],
  ["recursion by getters", "var o = { get x() { return this.x } }; o.x"],
  ["recursion by toString", "var o = { toString: function () { return '' + o } }; '' + o"],
  ["recursion by Proxy", "var p = {}; for (var i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x; '' + p"],
  ["recursion by bind", "var f = function () {}; for (var i = 0; i < 1e5; i++) f = f.bind(null); f()"],
  ["BigInt", "var n = 3n; for (;;) n = n * n"],
  ["rejections without end", "for (;;) Promise.reject(new Error('x'))"],
  ["Symbol registry", "for (var i = 0; ; i++) Symbol.for('x' + i)"],
];
